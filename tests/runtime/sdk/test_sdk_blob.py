"""`workers.Blob` and `workers.File` (python-api.md 1.10)."""

import asyncio

import pytest

import emulator.runtime.web  # noqa: F401 - fills `js`
from emulator.runtime import js
from emulator.runtime.ffi import to_js
from emulator.runtime.sdk import Blob, BlobEnding, File
from emulator.values import JsException


def text(blob):
    return asyncio.run(blob.text())


@pytest.mark.parametrize(
    "parts",
    [
        "ab",
        b"ab",
        ["a", b"b"],
        ("a", memoryview(b"b")),
        [Blob("a"), bytearray(b"b")],
        [js.Blob.new(to_js(["ab"]))],
    ],
)
def test_parts_of_every_kind_are_joined(parts):
    blob = Blob(parts, content_type="Text/X")
    assert (blob.size, blob.content_type, text(blob)) == (2, "text/x", "ab")
    assert asyncio.run(blob.bytes()) == b"ab"


def test_a_single_blob_gives_its_type_and_a_list_does_not():
    blob = Blob("x", content_type="t/x")
    assert Blob(blob).content_type == "t/x"
    assert Blob(blob.js_object).content_type == "t/x"
    assert Blob(blob, content_type="t/y").content_type == "t/y"
    assert Blob([blob]).content_type == ""


@pytest.mark.parametrize("part", [5, None, object])
def test_other_parts_are_refused(part):
    with pytest.raises(TypeError, match=r"^Don't know how to handle .* for Blob"):
        Blob([part])


@pytest.mark.parametrize("ending", ["native", BlobEnding.TRANSPARENT])
def test_endings_are_not_implemented_in_the_runtime(ending):
    with pytest.raises(JsException, match=r"^Error: The 'endings' field on 'Options' is not"):
        Blob("x", endings=ending)


def test_slices_lose_the_type():
    blob = Blob("hello", content_type="t/x")
    assert [text(blob.slice(1, 3)), text(blob.slice(-2)), text(blob.slice())] == [
        "el",
        "lo",
        "hello",
    ]
    assert blob.slice(0, 1, "t/y").content_type == ""


def test_a_file_has_a_name_and_a_date():
    file = File(["x"], "n.txt", content_type="t/x", last_modified=7)
    assert (file.name, file.content_type, file.last_modified, file.size) == ("n.txt", "t/x", 7, 1)
    copy = File(file, "m.txt")
    assert (copy.name, copy.content_type, copy.last_modified) == ("m.txt", "t/x", 7)
    assert File(file.js_object, "m.txt").last_modified == 7
    assert str(file.js_object) == "[object File]"
    assert not hasattr(Blob("x"), "name")
