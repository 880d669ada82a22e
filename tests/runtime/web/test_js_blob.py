"""`js.Blob` and `js.File`: texts and results are workerd's (1.20261117)."""

import asyncio

import pytest

from emulator.runtime.web.blob import Blob, File
from emulator.values import UNDEFINED, ArrayBuffer, JsException


def run(awaitable):
    async def main():
        return await awaitable

    return asyncio.run(main())


def error_of(action):
    with pytest.raises(JsException) as caught:
        action()
    return str(caught.value)


def test_parts_are_joined():
    blob = Blob.js_new(["a", b"b", Blob(b"c"), ArrayBuffer(b"d")], {"type": "TEXT/X"})
    assert (blob.size, blob.type, run(blob.text())) == (4, "text/x", "abcd")
    assert run(blob.bytes()) == b"abcd"
    assert run(blob.arrayBuffer()) == ArrayBuffer(b"abcd")


def test_other_parts_become_text():
    assert run(Blob.js_new([5, None, {}]).text()) == "5null[object Object]"


@pytest.mark.parametrize("parts", ["x", {}, 5])
def test_parts_are_an_array(parts):
    assert error_of(lambda: Blob.js_new(parts)) == (
        "TypeError: Failed to construct 'Blob': constructor parameter 1 is not of type 'Array'."
    )


@pytest.mark.parametrize(
    ("options", "kind"),
    [({"type": "é"}, ""), ({"type": UNDEFINED}, ""), ({"type": None}, "null"), ({}, "")],
)
def test_the_type_is_ascii_in_lower_case(options, kind):
    assert Blob.js_new(["x"], options).type == kind


def test_endings_are_not_implemented():
    assert error_of(lambda: Blob.js_new(["x"], {"endings": "native"})) == (
        "Error: The 'endings' field on 'Options' is not implemented."
    )
    assert Blob.js_new(["x"], {"endings": UNDEFINED}).size == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((1, 3), ("el", "")),
        ((-2,), ("lo", "")),
        ((0, -1), ("hell", "")),
        ((3, 1), ("", "")),
        ((1, UNDEFINED, "T/X"), ("ello", "t/x")),
        ((None, None), ("", "")),
        ((UNDEFINED, UNDEFINED), ("hello", "")),
    ],
)
def test_slices_count_from_either_end(arguments, expected):
    part = Blob(b"hello", "a/b").slice(*arguments)
    assert (run(part.text()), part.type) == expected


def test_a_blob_can_be_streamed():
    async def main():
        return [chunk async for chunk in Blob(b"ab").stream()]

    assert asyncio.run(main()) == [b"ab"]


def test_a_file_has_a_name_and_a_date():
    file = File.js_new(["x"], "n/a.txt", {"type": "t/x", "lastModified": "7.0"})
    assert (file.name, file.type, file.size, file.lastModified) == ("n/a.txt", "t/x", 1, 7)
    assert File.js_new(["x"], 5).name == "5"
    assert File.js_new(["x"], "n", {"lastModified": UNDEFINED}).lastModified > 10**12


def test_a_file_needs_a_name():
    assert error_of(lambda: File.js_new(["x"])) == (
        "TypeError: Failed to construct 'File': constructor parameter 2 is not of type 'string'."
    )
