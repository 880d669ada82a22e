"""The pure parts of R2: buckets, pages, conditions, ranges, checks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.r2 import rules
from emulator.r2.conditions import Condition, Etag, etags_of_header, one_etag
from emulator.r2.ranges import Range, Slice, part_of
from emulator.r2.store import Bucket, Kept, Metadata, Part, Place, Stored, Upload
from emulator.values import JsException

EMPTY = Metadata({}, {})


def thing(key: str, *, etag: str = "e", parts: tuple[Any, ...] = (b"x",)) -> Stored:
    return Stored(key, "v", 1, etag, 1_000, EMPTY, {}, parts)


def bucket_of(*keys: str) -> Bucket:
    bucket = Bucket()
    for key in keys:
        bucket.put(thing(key))
    return bucket


def listed(bucket: Bucket, limit: int = 1_000, **place: Any) -> Any:
    page = bucket.page(Place(**place), limit)
    return [found.key for found in page.objects], page.prefixes, page.last


KEYS = ("a", "a/1", "a/2", "a/b/1", "b", "c/x", "d", "z", "é")


@pytest.mark.parametrize(
    ("place", "limit", "expected"),
    [
        ({}, 1_000, (list(KEYS), [], None)),
        ({}, 2, (["a", "a/1"], [], "a/1")),
        ({"prefix": "a/"}, 9, (["a/1", "a/2", "a/b/1"], [], None)),
        ({"prefix": "a/", "delimiter": "/"}, 9, (["a/1", "a/2"], ["a/b/"], None)),
        ({"delimiter": "/"}, 9, (["a", "b", "d", "z", "é"], ["a/", "c/"], None)),
        ({"delimiter": "/"}, 2, (["a"], ["a/"], "a/b/1")),
        ({"delimiter": "/", "after": "a/b/1"}, 2, (["b"], ["c/"], "c/x")),
        ({"after": "a/1"}, 2, (["a/2", "a/b/1"], [], "a/b/1")),
        ({"after": "a/1", "delimiter": "/"}, 9, (["b", "d", "z", "é"], ["a/", "c/"], None)),
        ({"after": "é"}, 9, ([], [], None)),
        ({"prefix": "x"}, 9, ([], [], None)),
        ({"delimiter": "b"}, 9, (["a", "a/1", "a/2", "c/x", "d", "z", "é"], ["a/b", "b"], None)),
    ],
)
def test_a_page_is_in_the_order_of_keys(place: dict[str, str], limit: int, expected: Any) -> None:
    """As seen in miniflare 4.20260426."""
    assert listed(bucket_of(*KEYS), limit, **place) == expected


@given(st.lists(st.text("ab/é", max_size=4), max_size=12), st.integers(1, 4))
def test_pages_together_are_the_whole_list(keys: list[str], limit: int) -> None:
    bucket = bucket_of(*keys)
    for delimiter in ("", "/"):
        whole = listed(bucket, 1_000, delimiter=delimiter)
        objects, prefixes, after = [], [], None
        while True:
            found = bucket.page(Place("", delimiter, after), limit)
            assert len(found.objects) + len(found.prefixes) <= limit
            objects += [one.key for one in found.objects]
            prefixes += found.prefixes
            after = found.last
            if after is None:
                break
        assert (objects, prefixes, None) == whole


def test_the_last_write_counts_and_what_was_there_is_handed_back() -> None:
    bucket = Bucket()
    first, second = thing("a", etag="1"), thing("a", etag="2")
    assert bucket.put(first) is None
    assert bucket.put(second) is first
    assert bucket.get("a") is second
    assert bucket.delete("a") is second
    assert bucket.delete("a") is None
    assert listed(bucket) == ([], [], None)


def test_an_upload_is_known_by_its_key_and_after_its_end() -> None:
    bucket = Bucket()
    bucket.start(Upload("u", "a", 0, EMPTY, {}))
    part = Part("e", b"m", Kept("n", 5))
    assert bucket.put_part("u", 1, part) is None
    assert bucket.put_part("u", 1, part) is part
    assert bucket.upload("u", "b") is None
    assert [*bucket.bodies()] == [Kept("n", 5)]
    assert bucket.end("u").parts == {1: part}
    ended = bucket.upload("u", "a")
    assert ended is not None
    assert (ended.ended, ended.parts) == (True, {})


def test_a_snapshot_is_the_whole_state() -> None:
    bucket = bucket_of("b", "a")
    bucket.put(thing("c", parts=(Kept("n", 7), b"x")))
    bucket.start(Upload("u", "a", 5, EMPTY, {2: Part("e", b"m", b"x")}))
    bucket.start(Upload("w", "a", 5, EMPTY, {}, ended=True))
    copy = Bucket()
    copy.restore(*_as_stored(bucket.snapshot()))
    assert copy.objects == bucket.objects
    assert copy.uploads == bucket.uploads


def _as_stored(value: Any) -> Any:
    """As msgpack gives it back: tuples are lists."""
    if isinstance(value, (list, tuple)):
        return [_as_stored(item) for item in value]
    return value


# -- conditions ------------------------------------------------------------------------------------

TIME = 1_767_225_600_500


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (Condition(), True),
        (Condition(matches=(Etag("strong", "e"),)), True),
        (Condition(matches=(Etag("strong", "x"), Etag("strong", "e"))), True),
        (Condition(matches=(Etag("strong", "x"),)), False),
        (Condition(matches=(Etag("weak", "e"),)), False),
        (Condition(matches=(Etag("wildcard"),)), True),
        (Condition(does_not_match=(Etag("strong", "e"),)), False),
        (Condition(does_not_match=(Etag("weak", "e"),)), False),
        (Condition(does_not_match=(Etag("strong", "x"),)), True),
        (Condition(does_not_match=(Etag("wildcard"),)), False),
        (Condition(after=TIME - 1), True),
        (Condition(after=TIME), False),
        (Condition(before=TIME + 1), True),
        (Condition(before=TIME), False),
        (Condition(after=TIME - 1, whole_seconds=True), False),
        (Condition(before=TIME + 500, whole_seconds=True), True),
        (Condition(before=TIME + 499, whole_seconds=True), False),
        # An etag that decides makes the date count no more.
        (Condition(matches=(Etag("strong", "e"),), before=0), True),
        (Condition(does_not_match=(Etag("strong", "x"),), after=TIME + 1), True),
        (Condition(matches=(Etag("strong", "x"),), before=TIME + 1), False),
    ],
)
def test_a_condition_holds_of_an_object(condition: Condition, holds: bool) -> None:
    """RFC 9110, 13.2.2, as the local simulator's validator has it."""
    assert condition.holds("e", TIME) is holds


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (Condition(), True),
        (Condition(matches=(Etag("wildcard"),)), False),
        (Condition(does_not_match=(Etag("wildcard"),)), True),
        (Condition(before=0), True),
        (Condition(after=0), False),
    ],
)
def test_a_condition_holds_where_nothing_is(condition: Condition, holds: bool) -> None:
    assert condition.holds_of_nothing is holds


@pytest.mark.parametrize(
    ("header", "etags"),
    [
        ('"a"', [("strong", "a")]),
        (' "a" ,\t"b"', [("strong", "a"), ("strong", "b")]),
        ('W/"a", , "b,c"', [("weak", "a"), ("strong", "b,c")]),
        ("*", [("wildcard", "")]),
        ('"a", *', [("wildcard", "")]),
        ('"a", nonsense', [("strong", "a")]),
    ],
)
def test_a_header_has_several_etags(header: str, etags: list[tuple[str, str]]) -> None:
    assert [tuple(etag) for etag in etags_of_header("if-match", header)] == etags


@pytest.mark.parametrize(
    ("header", "error"),
    [
        ("abc", "Error: Invalid ETag in if-none-match header"),
        ("", "Error: Invalid ETag in if-none-match header"),
        ('"a', "Error: Unclosed double quote for Etag"),
        ('W"a"', "Error: Weak etags must start with W/ and their value must be quoted"),
        (
            '"a" "b"',
            "Error: Comma was expected to separate etags. Encountered a double quote character "
            "'\"' instead. This would otherwise indicate the start of a new strong etag.",
        ),
        (
            '"a" *',
            "Error: Comma was expected to separate etags. Encountered a wildcard character '*' "
            "instead.",
        ),
        (
            '"a" W/"b"',
            "Error: Comma was expected to separate etags. Encountered a weak quotation character "
            "'W' instead. This would otherwise indicate the start of a new weak etag.",
        ),
    ],
)
def test_a_header_that_has_none_is_refused(header: str, error: str) -> None:
    with pytest.raises(JsException) as caught:
        etags_of_header("if-none-match", header)
    assert str(caught.value) == error


def test_an_etag_in_quotes_is_refused() -> None:
    assert one_etag("a") == (Etag("strong", "a"),)
    assert one_etag("*") == (Etag("wildcard"),)
    with pytest.raises(JsException, match=r'not be wrapped in quotes \("a"\)\.'):
        one_etag('"a"')


# -- ranges ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, (0, 5)),
        (Range(), (0, 5)),
        (Range(1), (1, 4)),
        (Range(length=2), (0, 2)),
        (Range(4, 99), (4, 1)),
        (Range(suffix=2), (3, 2)),
        (Range(suffix=99), (0, 5)),
        (Range(5), None),
        (Range(6), None),
        (Range(length=0), None),
        (Range(suffix=0), None),
        ("bytes=1-2", (1, 2)),
        ("bytes=1-", (1, 4)),
        ("bytes=-2", (3, 2)),
        ("BYTES = 4-99", (4, 1)),
        ("bytes=0-0,2-3", (0, 5)),
        ("bytes=9-", (0, 5)),
        ("bytes=2-1", (0, 5)),
        ("bytes=-0", (0, 5)),
        ("bytes=-", (0, 5)),
        ("bytes=", (0, 5)),
        ("lines=1-2", (0, 5)),
    ],
)
def test_a_range_of_five_bytes(asked: Any, expected: tuple[int, int] | None) -> None:
    """As seen in miniflare 4.20260426."""
    assert part_of(asked, 5) == (None if expected is None else Slice(*expected))


@given(
    st.integers(0, 20), st.none() | st.integers(0, 25), st.none() | st.integers(0, 25), st.data()
)
def test_a_range_is_inside_the_object(
    size: int, offset: int | None, length: int | None, data: st.DataObject
) -> None:
    suffix = None
    if offset is None and length is None:
        suffix = data.draw(st.none() | st.integers(0, 25))
    found = part_of(Range(offset, length, suffix), size)
    if found is not None:
        assert 0 <= found.offset <= found.offset + found.length <= size


# -- checks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "code"),
    [
        ([(1, rules.SMALLEST_PART), (2, 1)], 0),
        ([(1, 1)], 0),
        ([], 0),
        ([(1, 1), (2, 1)], 10011),
        ([(2, 1), (1, rules.SMALLEST_PART)], 10011),  # in the order given
        ([(1, rules.SMALLEST_PART), (2, rules.SMALLEST_PART + 1)], 10048),
        ([(1, rules.SMALLEST_PART + 1), (2, rules.SMALLEST_PART), (3, 1)], 10048),
        ([(2, rules.SMALLEST_PART), (1, 1)], 10048),  # by their numbers
    ],
)
def test_parts_that_make_an_object(sizes: list[tuple[int, int]], code: int) -> None:
    try:
        rules.check_parts(sizes, "production")
        found = 0
    except rules.Refusal as refusal:
        found = refusal.code
    assert found == code


@pytest.mark.parametrize(
    ("value", "profile", "fits"),
    [
        ("b" * 2_047, "miniflare", True),
        ("b" * 2_048, "miniflare", False),
        ("b" * 8_191, "production", True),
        ("b" * 8_192, "production", False),
        ("é" * 8_191, "production", True),
        ("€" * 4_095, "production", True),
        ("€" * 4_096, "production", False),
        ("", "production", True),
    ],
)
def test_metadata_have_a_limit(value: str, profile: rules.Profile, fits: bool) -> None:
    if fits:
        rules.check_metadata({"a": value}, profile)
    else:
        with pytest.raises(rules.Refusal, match="maximum allowed metadata size"):
            rules.check_metadata({"a": value}, profile)


@given(st.text())
def test_a_cursor_leads_back_to_its_key(key: str) -> None:
    assert rules.key_of(rules.cursor(key)) == key


def test_what_is_no_cursor_is_read_as_far_as_it_goes() -> None:
    assert rules.key_of("") == ""
    assert rules.key_of("YS8y") == "a/2"
    assert isinstance(rules.key_of("nope!"), str)
