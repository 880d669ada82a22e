"""`workers.FormData` (python-api.md 1.10)."""

import asyncio

import pytest

import emulator.runtime.web  # noqa: F401 - fills `js`
from emulator.runtime import js
from emulator.runtime.pyproxy import jsnull
from emulator.runtime.sdk import Blob, File, FormData


def test_a_form_is_made_of_a_dict_or_a_js_form():
    assert list(FormData({"a": "1", "b": "2"}).items()) == [("a", "1"), ("b", "2")]
    assert list(FormData()) == list(FormData({})) == list(FormData(None)) == []
    proxy = js.FormData.new()
    proxy.append("a", "1")
    form = FormData(proxy)
    assert form["a"] == "1"
    form["a"] = "2"
    assert proxy.get("a") == "2"
    assert form.js_object.get("a") == "2"


@pytest.mark.parametrize("wrong", [[("a", "b")], "x", 5, js.Headers.new()])
def test_other_things_are_refused(wrong):
    text = "^Expected form_data to be a dict or an instance of FormData$"
    with pytest.raises(TypeError, match=text):
        FormData(wrong)


def test_a_name_may_have_several_values():
    form = FormData({"a": "1"})
    form.append("a", "2")
    form.append("b", "3")
    assert (form["a"], form.get_all("a"), list(form.keys())) == ("1", ["1", "2"], ["a", "a", "b"])
    assert list(form.values()) == ["1", "2", "3"]
    form["a"] = "9"
    assert list(form.items()) == [("a", "9"), ("b", "3")]
    del form["a"]
    form.delete("zz")
    assert list(form) == ["b"]
    assert "b" in form
    assert "a" not in form


def test_a_missing_name_is_null_and_no_key_error(host):
    assert FormData()["a"] is jsnull
    host.flags = host.flags - {"python_workers_20250116"}
    assert FormData()["a"] is None


def test_a_list_is_no_value():
    with pytest.raises(TypeError, match=r"^Expected single item in arguments to FormData"):
        FormData()["a"] = ["1"]


def test_len_is_broken_as_upstream():
    with pytest.raises(TypeError, match=r"object of type 'generator' has no len"):
        len(FormData({"a": "1"}))


def test_files_come_back_as_files():
    form = FormData({"f": File("x", "n.txt", content_type="t/x", last_modified=5)})
    form.append("g", Blob("y", content_type="t/y"))
    form.append("h", Blob("z"), "h.bin")
    found = [form["f"], form["g"], form["h"]]
    assert [type(file) for file in found] == [File, File, File]
    assert [(file.name, file.content_type) for file in found] == [
        ("n.txt", "t/x"),
        ("g", "t/y"),
        ("h.bin", ""),
    ]
    assert found[0].last_modified == 5
    assert asyncio.run(found[1].text()) == "y"
