"""The state of a namespace, compared with a plain dict, and what a stale read shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.kv.store import STALE_FOR, Entry, Namespace

SECOND = 1_000_000
# Characters whose order in UTF-16 and in UTF-8 differ are among them.
KEYS = st.text(st.sampled_from("ab:\uff5e\U0001f600é"), min_size=1, max_size=3)
WRITES = st.lists(
    st.tuples(KEYS, st.none() | st.binary(max_size=2), st.integers(0, 3)), max_size=12
)


@given(writes=WRITES, prefix=st.sampled_from(["", "a", "\uff5e", "é"]), limit=st.integers(1, 4))
def test_a_list_is_paged_in_the_order_of_utf8(
    writes: list[tuple[str, bytes | None, int]], prefix: str, limit: int
) -> None:
    namespace, model, now = Namespace(), dict[str, bytes](), 0
    for key, value, pause in writes:
        now += pause * SECOND
        if value is None:
            assert namespace.delete(key, now) == (key in model)
            model.pop(key, None)
        else:
            namespace.put(key, Entry(value), now)
            model[key] = value
    expected = sorted((key for key in model if key.startswith(prefix)), key=str.encode)
    found: list[str] = []
    while True:
        page = namespace.page(prefix, limit, found[-1] if found else "", now)
        assert len(page.rows) <= limit
        found += [row.name for row in page.rows]
        if not page.more:
            break
        assert page.rows
    assert found == expected
    for key, value in model.items():
        assert namespace.get(key, now) == Entry(value)
    for size in (1, limit, 100):
        pages = [namespace.page(prefix, size, "", now, stale=stale) for stale in (False, True)]
        assert namespace.page_differs(prefix, size, "", now) == (pages[0] != pages[1])
    copy = Namespace()
    copy.restore([[key, *rest] for key, *rest in namespace.snapshot(now)])
    assert copy.page("", 100, "", now) == namespace.page("", 100, "", now)
    assert copy.page("", 100, "", now, stale=True) == namespace.page("", 100, "", now, stale=True)


def test_an_entry_is_gone_at_the_second_of_its_expiration() -> None:
    namespace = Namespace()
    namespace.put("a", Entry(b"1", 100), 0)
    assert namespace.get("a", 100 * SECOND - 1) == Entry(b"1", 100)
    assert namespace.get("a", 100 * SECOND) is None
    assert namespace.page("", 10, "", 100 * SECOND).rows == []
    assert len(namespace) == 1
    assert namespace.snapshot(100 * SECOND) == []
    assert len(namespace) == 0


@pytest.mark.parametrize(("later", "shown"), [(0, b"1"), (STALE_FOR, b"1"), (STALE_FOR + 1, b"2")])
def test_a_stale_read_is_as_before_the_last_write_for_a_minute(later: int, shown: bytes) -> None:
    namespace = Namespace()
    for at, value in enumerate((b"0", b"1", b"2")):
        namespace.put("a", Entry(value), at)
    entry = namespace.get("a", 2 + later, stale=True)
    assert entry is not None
    assert entry.value == shown
    assert namespace.get("a", 2 + later) == Entry(b"2")
    assert namespace.is_fresh(2 + later) == (later <= STALE_FOR)


def test_a_stale_read_finds_what_was_deleted_and_not_what_is_new() -> None:
    namespace = Namespace()
    namespace.put("old", Entry(b"1"), 0)
    namespace.delete("old", STALE_FOR * 2)
    namespace.put("new", Entry(b"2"), STALE_FOR * 2)
    now = STALE_FOR * 2
    assert [row.name for row in namespace.page("", 9, "", now).rows] == ["new"]
    assert [row.name for row in namespace.page("", 9, "", now, stale=True).rows] == ["old"]
    assert namespace.get("new", now, stale=True) is None
    # a delete of nothing is no write
    namespace.delete("old", now + STALE_FOR)
    assert namespace.get("old", now + STALE_FOR + 1, stale=True) is None


def test_a_stale_read_of_what_expired_meanwhile_finds_nothing() -> None:
    namespace = Namespace()
    namespace.put("a", Entry(b"1", 60), 0)
    namespace.put("a", Entry(b"2"), 59 * SECOND)
    assert namespace.get("a", 59 * SECOND, stale=True) == Entry(b"1", 60)
    assert namespace.get("a", 60 * SECOND, stale=True) is None
