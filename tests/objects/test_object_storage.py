"""`ctx.storage`: values by key, transactions, `storage.kv`, limits.

Results and texts were seen in runs of miniflare 4.20260730 with the same operations in JavaScript;
production's limits of classes without SQLite are from the source of workerd.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from object_bench import KV_BACKED, PROFILES, inside, kept, object_class, stub, told, worker

from emulator import Emulator

pytestmark = pytest.mark.asyncio

STORAGE = "DurableObjectStorage"
BAD_TYPE = "Failed to execute '{}' on '{}': parameter 1 is not of type '{}'."


async def in_object(body: Any, *, profile: Any = "production", **config: Any) -> Any:
    """What `body(storage)` returns inside an object."""

    async def go(self: Any) -> Any:
        value = body(self.ctx.storage)
        return await value if hasattr(value, "__await__") else value

    async with Emulator(worker(inside(go), **config), profile=profile) as emulator:
        return await stub(emulator).go()


# -- values ----------------------------------------------------------------------------------------


async def test_a_value_comes_back_as_a_copy() -> None:
    mine = {"list": [1, 2.5, None], "nested": {"date": datetime(2026, 1, 2)}, "bytes": b"ab"}
    taken: list[Any] = []

    async def body(storage: Any) -> None:
        await storage.put("key", mine)
        mine["list"].append("later")  # type: ignore[attr-defined]
        taken.append(await storage.get("key"))
        taken.append(await storage.get("key"))

    await in_object(body)
    found, again = taken
    assert found["list"] == [1, 2.5, None]
    assert found["nested"] == {"date": datetime(2026, 1, 2)}
    assert bytes(found["bytes"]) == b"ab"
    assert found is not again


async def test_several_values_at_once() -> None:
    async def body(storage: Any) -> Any:
        await storage.put({"b": 2, "a": 1, "c": 3})
        some = await storage.get(["c", "nope", "a", "a"])
        counts = [await storage.delete("a"), await storage.delete("a")]
        several = await storage.delete(["b", "nope", "c"])
        return [list(map(list, some.items())), counts, several, dict(await storage.list())]

    assert await in_object(body) == [[["a", 1], ["c", 3]], [True, False], 2, {}]


async def test_what_is_missing_is_nothing_and_null_is_null() -> None:
    async def body(storage: Any) -> Any:
        await storage.put("null", None)
        return [await storage.get("nope"), await storage.get("null"), list(await storage.list())]

    assert await in_object(body) == [None, None, ["null"]]


@pytest.mark.parametrize("key", [5, 5.5, True, None, "", "ä", ["a", "b"]])
async def test_keys_are_texts(key: Any) -> None:
    """As JavaScript makes a text of anything; a list is one key for `put` and several for `get`."""
    text = (
        {5: "5", 5.5: "5.5", True: "true", None: "null"}.get(key)
        if key
        != [
            "a",
            "b",
        ]
        else "a,b"
    )

    async def body(storage: Any) -> Any:
        await storage.put(key, 1)
        return list(await storage.list())

    assert await in_object(body) == [key if isinstance(key, str) else text]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, ["a", "a/1", "a/2", "b", "c"]),
        ({"prefix": "a/"}, ["a/1", "a/2"]),
        ({"start": "a/2", "end": "c"}, ["a/2", "b"]),
        ({"startAfter": "a/2"}, ["b", "c"]),
        ({"limit": 2}, ["a", "a/1"]),
        ({"reverse": True, "limit": 2}, ["c", "b"]),
        ({"limit": "2"}, ["a", "a/1"]),
        ({"limit": 1.5}, ["a"]),
        ({"allowConcurrency": True, "noCache": True}, ["a", "a/1", "a/2", "b", "c"]),
        ({"reverse": 0}, ["a", "a/1", "a/2", "b", "c"]),
    ],
)
@pytest.mark.parametrize("as_keywords", [False, True])
async def test_a_list_has_options(options: Any, found: Any, as_keywords: bool) -> None:
    async def body(storage: Any) -> Any:
        await storage.put({"c": 1, "a": 1, "a/2": 1, "b": 1, "a/1": 1})
        call = storage.list(**options) if as_keywords else storage.list(options)
        return list(await call)

    assert await in_object(body) == found


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda s: s.get(), BAD_TYPE.format("get", STORAGE, "string or Array")),
        (lambda s: s.delete(), BAD_TYPE.format("delete", STORAGE, "string or Array")),
        (lambda s: s.put(), BAD_TYPE.format("put", STORAGE, "string or object")),
        (lambda s: s.put("a"), "put() called with undefined value."),
        (
            lambda s: s.put({"a": 1}, 5),
            "put() may only be called with a single key-value pair and optional options as "
            "put(key, value, options) or with multiple key-value pairs and optional options as "
            "put(entries, options)",
        ),
        (lambda s: s.list(5), BAD_TYPE.format("list", STORAGE, "ListOptions")),
        (
            lambda s: s.list(start="a", startAfter="b"),
            "list() cannot be called with both start and startAfter values.",
        ),
        (lambda s: s.list(limit=0), "List limit must be positive."),
        (lambda s: s.list(limit=-1), "List limit must be positive."),
        (lambda s: s.list(limit="x"), "List limit must be positive."),
        (
            lambda s: s.list(limit=5_000_000_000),
            "Value out of range. Must be between -2147483648 and 2147483647 (inclusive).",
        ),
        (lambda s: s.setAlarm("x"), BAD_TYPE.format("setAlarm", STORAGE, "date")),
        (lambda s: s.setAlarm(), BAD_TYPE.format("setAlarm", STORAGE, "date")),
        (lambda s: s.setAlarm(0), "setAlarm() cannot be called with an alarm time <= 0"),
        (
            lambda s: s.setAlarm(float("nan")),
            "The value cannot be converted because it is not a valid Date.",
        ),
        (lambda s: s.transaction(), BAD_TYPE.format("transaction", STORAGE, "function")),
        (lambda s: s.transaction(5), BAD_TYPE.format("transaction", STORAGE, "function")),
        (lambda s: s.transactionSync(), BAD_TYPE.format("transactionSync", STORAGE, "function")),
    ],
)
async def test_wrong_arguments_have_the_runtime_s_errors(call: Any, found: str) -> None:
    assert await in_object(lambda storage: told(lambda: call(storage))) == ["TypeError", found]


async def test_a_wrong_argument_is_the_promise_s_error() -> None:
    async def body(storage: Any) -> Any:
        calls = [storage.put("a"), storage.get(), storage.list(limit=0)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        return [type(result).__name__ for result in results]

    assert await in_object(body) == ["JsException"] * 3


async def test_what_cannot_be_stored_stores_nothing_of_the_call() -> None:
    class Thing:
        pass

    async def body(storage: Any) -> Any:
        return [
            await told(lambda: storage.put("f", lambda: 1)),
            await told(lambda: storage.put({"ok": 1, "thing": Thing()})),
            list(await storage.list()),
        ]

    first, second, left = await in_object(body)
    assert first[0] == second[0] == "DataCloneError"
    assert left == []


async def test_a_stub_cannot_be_stored() -> None:
    async def go(self: Any) -> Any:
        return await told(lambda: self.ctx.storage.put("s", self.env.OBJ.getByName("y")))

    async with Emulator(worker(inside(go))) as emulator:
        assert await stub(emulator).go() == [
            "DataCloneError",
            "ServiceStub cannot be serialized in this context.",
        ]


async def test_delete_all_leaves_nothing_and_what_follows_stays() -> None:
    async def body(storage: Any) -> Any:
        await storage.put({"a": 1, "b": 2})
        await storage.deleteAll()
        await storage.put("c", 3)
        return dict(await storage.list())

    assert await in_object(body) == {"c": 3}


async def test_sync_and_bookmarks() -> None:
    async def body(storage: Any) -> Any:
        return [
            await storage.sync(),
            await storage.getCurrentBookmark(),
            await told(lambda: storage.getBookmarkForTime(1)),
        ]

    assert await in_object(body) == [
        None,
        "00000000-00000000-00000000-00000000000000000000000000000000",
        [
            "Error",
            "This Durable Object's storage back-end does not implement point-in-time recovery.",
        ],
    ]


# -- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda s: s.put("k" * 2_048, 1), None),
        (
            lambda s: s.put("k" * 2_049, 1),
            "Keys cannot be larger than 2048 bytes. A key of size 2049 was provided.",
        ),
        (
            lambda s: s.get("é" * 1_025),
            "Keys cannot be larger than 2048 bytes. A key of size 2050 was provided.",
        ),
        (lambda s: s.put("k", "x" * 131_072), None),
        (
            lambda s: s.put("k", "x" * 131_200),
            "Values cannot be larger than 131072 bytes. A value of size 131206 was provided.",
        ),
        (lambda s: s.put({f"{i}": i for i in range(128)}), None),
        (
            lambda s: s.put({f"{i}": i for i in range(129)}),
            "Maximum number of key value pairs is 128. 129 pairs were provided.",
        ),
        (
            lambda s: s.get([f"{i}" for i in range(129)]),
            "Maximum number of key value pairs is 128. 129 pairs were provided.",
        ),
        (
            lambda s: s.delete([f"{i}" for i in range(129)]),
            "Maximum number of key value pairs is 128. 129 pairs were provided.",
        ),
    ],
)
async def test_limits_without_sqlite(call: Any, text: str | None) -> None:
    async def body(storage: Any) -> Any:
        found = await told(lambda: call(storage))
        return found if text is not None else "accepted"

    found = await in_object(body, migrations=KV_BACKED)
    assert found == ("accepted" if text is None else ["RangeError", text])
    # In SQLite, where the local runtime has all objects, there are none of these.
    for config in ({}, {"migrations": KV_BACKED, "profile": "miniflare"}):
        assert not isinstance(await in_object(body, **config), str) or text is None
        assert (await in_object(body, **config)) != ["RangeError", text]


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_row_of_sqlite_has_a_limit(profile: Any) -> None:
    async def body(storage: Any) -> Any:
        await storage.put("k", b"x" * 1_999_900)
        return await told(lambda: storage.put("k", b"x" * 2_000_000))

    text = "string or blob too big: SQLITE_TOOBIG"
    assert await in_object(body, profile=profile) == ["Error", text]


# -- transactions ----------------------------------------------------------------------------------


async def test_a_transaction_is_kept_as_a_whole_or_not_at_all() -> None:
    async def body(storage: Any) -> Any:
        await storage.put("a", 1)

        async def good(txn: Any) -> str:
            await txn.put("a", await txn.get("a") + 1)
            await asyncio.sleep(1)
            await txn.put("b", 1)
            return "returned"

        async def bad(txn: Any) -> None:
            await txn.put("a", 100)
            await txn.delete("b")
            await asyncio.sleep(1)
            raise ValueError("no")

        async def back(txn: Any) -> str:
            await txn.put("a", 200)
            txn.rollback()
            txn.rollback()
            return "rolled back"

        returned = await storage.transaction(good)
        name, text = await told(lambda: storage.transaction(bad))
        third = await storage.transaction(back)
        return [returned, name, text.splitlines()[-1], third, dict(await storage.list())]

    assert await in_object(body) == [
        *("returned", "PythonError", "ValueError: no", "rolled back", {"a": 2, "b": 1}),
    ]


async def test_a_transaction_that_is_over_cannot_be_used() -> None:
    async def body(storage: Any) -> Any:
        kept: list[Any] = []
        found: list[Any] = []

        async def rolls_back(txn: Any) -> None:
            txn.rollback()
            found.append(await told(lambda: txn.put("a", 1)))

        async def ends(txn: Any) -> None:
            kept.append(txn)

        await storage.transaction(rolls_back)
        await storage.transaction(ends)
        found.append(await told(lambda: kept[0].get("a")))
        found.append(await told(lambda: kept[0].rollback()))
        return found

    over = (
        "Cannot call {}() on transaction that has already committed: did you move `txn` outside of "
        "the closure?"
    )
    assert await in_object(body) == [
        ["Error", "Cannot put() on rolled back transaction"],
        ["Error", over.format("get")],
        ["Error", over.format("rollback")],
    ]


async def test_transactions_nest_and_writes_of_the_storage_belong_to_them() -> None:
    async def body(storage: Any) -> Any:
        async def inner(txn: Any) -> None:
            await txn.put("inner", 1)
            raise ValueError("inner fails")

        async def outer(txn: Any) -> None:
            await storage.put("outer", 1)
            await told(lambda: storage.transaction(inner))

        await storage.transaction(outer)
        return dict(await storage.list())

    assert await in_object(body) == {"outer": 1}


async def test_delete_all_is_refused_in_a_transaction() -> None:
    async def body(storage: Any) -> Any:
        async def by_transaction(txn: Any) -> None:
            await txn.deleteAll()

        async def by_storage(txn: Any) -> None:
            await storage.deleteAll()

        found = [
            await told(lambda: storage.transaction(by_transaction)),
            await told(lambda: storage.transaction(by_storage)),
        ]
        return [[name, text.splitlines()[-1]] for name, text in found]

    line = "pyodide.ffi.JsException: Error: Cannot call deleteAll() within a transaction"
    assert await in_object(body) == [["PythonError", line]] * 2


async def test_other_events_wait_for_a_transaction() -> None:
    async def add(self: Any) -> int:
        async def closure(txn: Any) -> int:
            count = await txn.get("count") or 0
            await asyncio.sleep(1)
            await txn.put("count", count + 1)
            return count + 1

        return await self.ctx.storage.transaction(closure)

    async with Emulator(worker(object_class(add=add))) as emulator:
        one = stub(emulator)
        assert await asyncio.gather(*(one.add() for _ in range(3))) == [1, 2, 3]


async def test_a_transaction_takes_30_seconds_at_most() -> None:
    async def body(storage: Any) -> Any:
        async def closure(txn: Any) -> None:
            await txn.put("a", 1)
            await asyncio.sleep(31)

        await storage.transaction(closure)

    async def go(self: Any) -> None:
        await body(self.ctx.storage)

    async with Emulator(worker(inside(go))) as emulator:
        name, text = await told(stub(emulator).go)
        assert (name, text[:35]) == ("Error", "A call to blockConcurrencyWhile() i")
        assert kept(emulator) == {}


async def test_what_a_transaction_writes_is_not_durable_before_it_ends() -> None:
    seen: list[Any] = []

    async def go(self: Any) -> None:
        async def closure(txn: Any) -> None:
            await txn.put("a", 1)
            await asyncio.sleep(1)
            seen.append(kept(emulator))

        await self.ctx.storage.transaction(closure)

    async with Emulator(worker(inside(go))) as emulator:
        await stub(emulator).go()
        assert seen == [{}]
        assert kept(emulator) == {"a": 1}


async def test_a_synchronous_transaction() -> None:
    async def body(storage: Any) -> Any:
        def good() -> str:
            storage.put("a", 1)
            return "returned"

        def bad() -> None:
            storage.put("a", 2)
            storage.kv.put("b", 2)
            raise LookupError("as it is")

        returned = storage.transactionSync(good)
        try:
            storage.transactionSync(bad)
        except LookupError as error:
            return [returned, str(error), dict(await storage.list())]

    assert await in_object(body) == ["returned", "as it is", {"a": 1}]


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_synchronous_transaction_needs_sqlite(profile: Any) -> None:
    def body(storage: Any) -> Any:
        return told(lambda: storage.transactionSync(lambda: "done"))

    found = await in_object(body, profile=profile, migrations=KV_BACKED)
    expected = ["Error", "Durable Object is not backed by SQL."]
    assert found == (expected if profile == "production" else "done")


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 9), st.booleans()), max_size=8
    )
)
@settings(max_examples=25, deadline=None)
async def test_transactions_do_what_copies_would(steps: list[tuple[str, int | None, bool]]) -> None:
    expected: dict[str, int] = {}
    for key, value, fails in steps:
        if not fails and value is not None:
            expected[key] = value
        elif not fails:
            expected.pop(key, None)

    async def body(storage: Any) -> Any:
        for key, value, fails in steps:

            async def closure(
                txn: Any, key: str = key, value: int | None = value, fails: bool = fails
            ) -> None:
                await (txn.delete(key) if value is None else txn.put(key, value))
                if fails:
                    raise ValueError

            await told(lambda closure=closure: storage.transaction(closure))
        return dict(await storage.list())

    assert await in_object(body) == expected


# -- storage.kv ------------------------------------------------------------------------------------


async def test_values_without_promises() -> None:
    def body(storage: Any) -> Any:
        kv = storage.kv
        kv.put("b", {"x": 1})
        kv.put("a", 1)
        kv.put(5, 6)
        listed = [[key, value] for key, value in kv.list()]
        some = [key for key, _ in kv.list(prefix="a")]
        return [kv.get("b"), kv.get("nope"), listed, some, kv.delete("a"), kv.delete("a")]

    assert await in_object(body) == [
        *({"x": 1}, None, [["5", 6], ["a", 1], ["b", {"x": 1}]], ["a"], True, False),
    ]


async def test_one_iterator_at_a_time_that_sees_what_comes() -> None:
    def body(storage: Any) -> Any:
        kv = storage.kv
        for key in "ac":
            kv.put(key, key)
        pairs = iter(kv.list())
        first = next(pairs)
        kv.put("b", "b")
        rest = [key for key, _ in pairs]
        old = iter(kv.list())
        kv.list()
        backwards = [key for key, _ in kv.list(reverse=True, limit=2)]
        return [list(first), rest, asyncio.ensure_future(told(lambda: next(old))), backwards]

    async def waits(storage: Any) -> Any:
        first, rest, old, backwards = body(storage)
        return [first, rest, await old, backwards]

    assert await in_object(waits) == [
        ["a", "a"],
        ["b", "c"],
        [
            "Error",
            "kv.list() iterator was invalidated because a new call to kv.list() was started. Only "
            "one kv.list() iterator can exist at a time.",
        ],
        ["c", "b"],
    ]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda kv: kv.get(), BAD_TYPE.format("get", "SyncKvStorage", "string")),
        (lambda kv: kv.delete(), BAD_TYPE.format("delete", "SyncKvStorage", "string")),
        (lambda kv: kv.list(5), BAD_TYPE.format("list", "SyncKvStorage", "ListOptions")),
        (
            lambda kv: kv.put("x"),
            "Failed to execute 'put' on 'SyncKvStorage': parameter 2 is not of type 'JsValue'.",
        ),
    ],
)
async def test_wrong_arguments_of_kv_are_raised(call: Any, text: str) -> None:
    found = await in_object(lambda storage: told(lambda: call(storage.kv)))
    assert found == ["TypeError", text]


async def test_kv_needs_sqlite() -> None:
    found = await in_object(lambda s: told(lambda: s.kv), migrations=KV_BACKED)
    assert found[0] == "Error"
    assert found[1].startswith("The storage.kv (synchronous KV) API is only available for SQLite-")
