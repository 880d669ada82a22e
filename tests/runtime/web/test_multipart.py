"""`js.FormData` as a body: texts and results are workerd's (1.20261117)."""

import pytest

from emulator.runtime.web.blob import Blob, File
from emulator.runtime.web.formdata import FormData
from emulator.runtime.web.multipart import read_form, write_form
from emulator.values import UNDEFINED, JsException

DISPOSITION = 'Content-Disposition: form-data; name="a"'
OTHER_TYPE = (
    "Unrecognized Content-Type header value. FormData can only parse the following MIME types: "
    "multipart/form-data, application/x-www-form-urlencoded"
)


def shown(form):
    return [
        (name, value if isinstance(value, str) else (value.name, value.type, value.data))
        for name, value in form.pairs
    ]


def read(body, content_type="multipart/form-data; boundary=q"):
    return shown(read_form(body if isinstance(body, bytes) else body.encode(), content_type))


def error_of(action):
    with pytest.raises(JsException) as caught:
        action()
    assert caught.value.name == "TypeError"
    return caught.value.message


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"--q\r\n{DISPOSITION}\r\n\r\nx\r\n--q--", [("a", "x")]),
        (f"--q\n{DISPOSITION}\n\nx\n--q--", [("a", "x")]),
        (f"pre\r\n--q\r\n{DISPOSITION}\r\n\r\nx\r\n--q--\r\nepi", [("a", "x")]),
        ("--q--", []),
        (
            f"--q\r\n{DISPOSITION}\r\n\r\nx\r\n--q\r\n"
            'content-disposition: form-data; name="f"; filename="n.txt"\r\n'
            "Content-Type: text/x\r\n\r\nyy\r\n--q--\r\n",
            [("a", "x"), ("f", ("n.txt", "text/x", b"yy"))],
        ),
        (
            f'--q\r\n{DISPOSITION}; filename="n"\r\n\r\nyy\r\n--q--',
            [("a", ("n", "", b"yy"))],
        ),
        (f'--q\r\n{DISPOSITION}; filename=""\r\n\r\nx\r\n--q--', [("a", "x")]),
        (
            f"--q\r\n{DISPOSITION}; filename=\"x\"; filename*=UTF-8''y\r\n\r\nx\r\n--q--",
            [("a", ("x", "", b"x"))],
        ),
        (
            '--q\r\nContent-Disposition: form-data; name="a%22b\\"c\\n"\r\n\r\nx\r\n--q--',
            [('a%22b"cn', "x")],
        ),
        (
            f"--q\r\n{DISPOSITION}\r\nContent-Transfer-Encoding: base64\r\n\r\neA==\r\n--q--",
            [("a", "eA==")],
        ),
        (f"--q\r\n{DISPOSITION}\r\n\r\n".encode() + b"\xffA\r\n--q--", [("a", "�A")]),
    ],
)
def test_multipart_bodies_are_read_as_the_runtime_reads_them(body, expected):
    assert read(body) == expected


def test_binary_files_survive():
    data = bytes(range(256)) + b"\r\n--\r\n\n"
    content, kind = write_form(FormData([("f", File(data, "b.bin"))]))
    assert read(content, kind) == [("f", ("b.bin", "application/octet-stream", data))]


def test_a_quoted_boundary_may_have_spaces():
    body = f"--q w\r\n{DISPOSITION}\r\n\r\nx\r\n--q w--"
    assert read(body, 'multipart/form-data; boundary="q w"') == [("a", "x")]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("x", "No initial boundary string (or you have a truncated message)."),
        ("", "No initial boundary string (or you have a truncated message)."),
        (
            f"--qzz\r\n{DISPOSITION}\r\n\r\nx\r\n--q--",
            "Boundary string was not succeeded by CRLF, LF, or '--'.",
        ),
        (f"--q\r\n{DISPOSITION}\r\n", "No multipart message header termination found."),
        (
            f"--q\r\n{DISPOSITION}\r\n\r\nx\r\n--q",
            "No subsequent boundary string after multipart message.",
        ),
        (
            "--q\r\nX: y\r\n\r\nx\r\n--q--",
            "No valid Content-Disposition header found in FormData part.",
        ),
        ("--q\r\nfoo\r\n\r\nx\r\n--q--", "FormData part had invalid headers."),
        (
            "--q\r\nContent-Disposition: form-data\r\n\r\nx\r\n--q--",
            "Content-Disposition header in FormData part is missing a name.",
        ),
        (
            "--q\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--q--",
            "Content-Disposition header in FormData part is missing a name.",
        ),
        (
            '--q\r\nContent-Disposition: form-data; name=""\r\n\r\nx\r\n--q--',
            "Content-Disposition header in FormData part is missing a name.",
        ),
        (
            '--q\r\nContent-Disposition: attachment; name="a"\r\n\r\nx\r\n--q--',
            'Content-Disposition header for FormData part must have the value "form-data", '
            'possibly followed by parameters. Got: "attachment"',
        ),
    ],
)
def test_malformed_multipart_bodies_say_what_is_wrong(body, error):
    assert error_of(lambda: read(body)) == error


@pytest.mark.parametrize(
    ("content_type", "error"),
    [
        (None, "Parsing a Body as FormData requires a Content-Type header."),
        ("", OTHER_TYPE),
        ("text/plain;charset=UTF-8", OTHER_TYPE),
        (
            "multipart/form-data",
            "No boundary string in Content-Type header. The multipart/form-data MIME type requires "
            "a boundary parameter, e.g. 'Content-Type: multipart/form-data; boundary=\"abcd\"'. "
            "See RFC 7578, section 4.",
        ),
        (
            "application/x-www-form-urlencoded; charset=latin1",
            "Non-utf-8 application/x-www-form-urlencoded body.",
        ),
    ],
)
def test_other_content_types_are_refused(content_type, error):
    assert error_of(lambda: read("x", content_type)) == error


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        (
            "application/x-www-form-urlencoded",
            "a=1&b=%20+x&a=2&c",
            [("a", "1"), ("b", "  x"), ("a", "2"), ("c", "")],
        ),
        (
            "Application/X-WWW-Form-Urlencoded; charset=UTF-8",
            "a=b;c=%ff&&=x",
            [("a", "b;c=�"), ("", "x")],
        ),
    ],
)
def test_urlencoded_bodies_are_read(content_type, body, expected):
    assert read(body, content_type) == expected


def test_a_form_is_written_with_a_boundary_from_the_seeded_stream():
    form = FormData.js_new()
    form.append("a", "1")
    form.append('b"\n', File(b"x", "n\\z.txt"))
    form.append("c", Blob(b"y\nz", "text/x"))
    boundary = "000102030405060708090a0b0c0d0e0f"
    content, kind = write_form(form)
    assert kind == f"multipart/form-data; boundary={boundary}"
    assert content.decode() == (
        f'--{boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="b%22%0A"; filename="n\\\\z.txt"\r\n'
        "Content-Type: application/octet-stream\r\n\r\nx\r\n"
        f'--{boundary}\r\nContent-Disposition: form-data; name="c"; filename="c"\r\n'
        "Content-Type: text/x\r\n\r\ny\nz\r\n"
        f"--{boundary}--"
    )


def test_a_name_cannot_end_with_a_backslash():
    assert error_of(lambda: write_form(FormData([("a\\", "x")]))) == (
        "Name or filename can't end with backslash"
    )


def test_values_become_texts_and_files():
    form = FormData.js_new()
    form.append("a", 5)
    form.append("a", None)
    form.append("a", UNDEFINED)
    form.append("f", Blob(b"x", "t/x"))
    form.append("f", File(b"x", "o.txt", content_type="t/x", last_modified=5), "z.txt")
    form.append("s", "x", "n.txt")
    assert shown(form) == [
        ("a", "5"),
        ("a", "null"),
        ("a", "undefined"),
        ("f", ("f", "t/x", b"x")),
        ("f", ("z.txt", "t/x", b"x")),
        ("s", "x"),
    ]


def test_set_takes_the_place_of_the_first():
    form = FormData([("a", "1"), ("b", "2"), ("a", "3")])
    form.set("a", "9")
    form.set("c", "0")
    form.delete("b")
    assert list(form) == [["a", "9"], ["c", "0"]]
    assert (form.get("zz"), form.getAll("a"), form.has("b")) == (None, ["9"], False)


def test_a_missing_name_is_named():
    assert error_of(FormData().append) == (
        "Failed to execute 'append' on 'FormData': parameter 1 is not of type 'string'."
    )
