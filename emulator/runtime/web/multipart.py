"""`FormData` as a body: `multipart/form-data` and `application/x-www-form-urlencoded`.

The multipart reader is our own: a body is in memory, the format is a split at the boundary, and
Worker code sees the runtime's texts for every way to get it wrong, which the readers there are
(`python-multipart`, the standard library's for e-mail) do not give.
"""

from __future__ import annotations

import re
from typing import Final

from emulator.runtime.host import current
from emulator.runtime.web.blob import Blob, File
from emulator.runtime.web.formdata import FormData, Value
from emulator.runtime.web.text import decode, utf8
from emulator.runtime.web.url_parameters import parse_query
from emulator.values import JsException

_MULTIPART: Final = "multipart/form-data"
_URLENCODED: Final = "application/x-www-form-urlencoded"
_UTF8: Final = frozenset({"utf-8", "utf8", "unicode-1-1-utf-8"})

_PARAMETER: Final = re.compile(r';\s*([^\s;=]+)=(?:"((?:[^"\\]|\\.)*)"|([^;]*))')
_HEADERS_END: Final = re.compile(rb"\r?\n\r?\n")
_HEADER: Final = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\r\n]*)")
_DISPOSITION: Final = re.compile(r"\s*([\w-]+)\s*")
_DISPOSITION_PARAMETER: Final = re.compile(
    r';\s*([\w-]+)\s*=\s*"((?:[^"\n\\]|\\[^\n])+)"\s*'  # an empty value does not count
)
_QUOTED_PAIR: Final = re.compile(r"\\(.)")

_TEXTS: Final = {
    "no type": "Parsing a Body as FormData requires a Content-Type header.",
    "other type": (
        "Unrecognized Content-Type header value. FormData can only parse the following MIME types: "
        f"{_MULTIPART}, {_URLENCODED}"
    ),
    "charset": f"Non-utf-8 {_URLENCODED} body.",
    "no boundary": (
        "No boundary string in Content-Type header. The multipart/form-data MIME type requires a "
        "boundary parameter, e.g. 'Content-Type: multipart/form-data; boundary=\"abcd\"'. "
        "See RFC 7578, section 4."
    ),
    "no start": "No initial boundary string (or you have a truncated message).",
    "after boundary": "Boundary string was not succeeded by CRLF, LF, or '--'.",
    "no headers": "No multipart message header termination found.",
    "bad headers": "FormData part had invalid headers.",
    "no disposition": "No valid Content-Disposition header found in FormData part.",
    "bad disposition": "Invalid Content-Disposition header found in FormData part.",
    "no name": "Content-Disposition header in FormData part is missing a name.",
    "no end": "No subsequent boundary string after multipart message.",
    "backslash": "Name or filename can't end with backslash",
}


def _error(key: str) -> JsException:
    return JsException("TypeError", _TEXTS[key])


def read_form(data: bytes, content_type: str | None) -> FormData:
    """Parse a body by its Content-Type; raises the runtime's TypeError for anything else."""
    if content_type is None:
        raise _error("no type")
    kind = content_type.partition(";")[0].strip().lower()
    parameters = {
        name.lower(): _QUOTED_PAIR.sub(r"\1", quoted) or plain.strip()
        for name, quoted, plain in _PARAMETER.findall(content_type)
    }
    if kind == _MULTIPART:
        if not parameters.get("boundary"):
            raise _error("no boundary")
        return FormData(_read_parts(data, parameters["boundary"].encode()))
    if kind != _URLENCODED:
        raise _error("other type")
    if parameters.get("charset", "utf-8").lower() not in _UTF8:
        raise _error("charset")
    return FormData(parse_query(decode(data)))


def _read_parts(data: bytes, boundary: bytes) -> list[tuple[str, Value]]:
    # As in the runtime: bare line feeds will do, and what stands before the first boundary counts
    # for nothing.
    delimiter = b"\n--" + boundary
    _, _, rest = data.partition(delimiter[1:])
    if not rest:
        raise _error("no start")
    parts: list[tuple[str, Value]] = []
    while not rest.startswith(b"--"):
        head, body = _split_head(rest)
        content, found, rest = body.partition(delimiter)
        if not found or not rest:
            raise _error("no end")
        parts.append(_read_part(head, content.removesuffix(b"\r")))
    return parts


def _split_head(rest: bytes) -> tuple[str, bytes]:
    for line_end in (b"\n", b"\r\n"):
        if rest.startswith(line_end):
            break
    else:
        raise _error("after boundary")
    end = _HEADERS_END.search(rest, len(line_end))
    if end is None:
        raise _error("no headers")
    return rest[len(line_end) : end.start()].decode("utf-8", "replace"), rest[end.end() :]


def _read_part(head: str, content: bytes) -> tuple[str, Value]:
    headers = _read_headers(head)
    if "content-disposition" not in headers:
        raise _error("no disposition")
    names = _read_disposition(headers["content-disposition"])
    if "name" not in names:
        raise _error("no name")
    if "filename" not in names:
        return names["name"], content.decode("utf-8", "replace")
    kind = headers.get("content-type", "")
    return names["name"], File(content, names["filename"], content_type=kind)


def _read_headers(head: str) -> dict[str, str]:
    matches = [_HEADER.fullmatch(line) for line in head.replace("\r\n", "\n").split("\n")]
    headers: dict[str, str] = {}
    for match in matches:
        if match is None:
            raise _error("bad headers")
        headers[match[1].lower()] = match[2].rstrip()
    return headers


def _read_disposition(value: str) -> dict[str, str]:
    kind = _DISPOSITION.match(value)
    if kind is None:
        raise _error("bad disposition")
    if kind[1] != "form-data":
        raise JsException(
            "TypeError",
            'Content-Disposition header for FormData part must have the value "form-data", '
            f'possibly followed by parameters. Got: "{kind[1]}"',
        )
    names: dict[str, str] = {}
    position = kind.end()
    # What follows the last well-formed parameter is ignored.
    while match := _DISPOSITION_PARAMETER.match(value, position):
        names[match[1]] = _QUOTED_PAIR.sub(r"\1", match[2])
        position = match.end()
    return names


def write_form(form: FormData) -> tuple[bytes, str]:
    """Return a form as a multipart body and its Content-Type."""
    boundary = current().urandom(16).hex()
    pieces: list[bytes] = []
    for name, value in form.pairs:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_quote(name)}"'
        pieces.append(utf8(head))
        pieces.append(_write_value(value))
    pieces.append(f"--{boundary}--".encode())
    return b"".join(pieces), f"{_MULTIPART}; boundary={boundary}"


def _write_value(value: Value) -> bytes:
    if not isinstance(value, Blob):
        return utf8(f"\r\n\r\n{value}\r\n")
    kind = value.type or "application/octet-stream"
    head = f'; filename="{_quote(value.name)}"\r\nContent-Type: {kind}\r\n\r\n'
    return utf8(head) + value.data + b"\r\n"


def _quote(name: str) -> str:
    if name.endswith("\\"):
        raise _error("backslash")
    return name.replace("\\", "\\\\").replace('"', "%22").replace("\n", "%0A")
