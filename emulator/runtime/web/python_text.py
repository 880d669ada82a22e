"""Python objects that nobody converted, given where the web API takes anything as text.

JavaScript asks their proxies for a text, which is Python's own: `b'abc'` for bytes, `[1, 2]` for a
list. Production sends that without a word, and hardly anybody means it; here it is a finding.
"""

from __future__ import annotations

from array import array
from typing import Any, Final

from emulator.location import caller
from emulator.runtime.host import running
from emulator.runtime.pyproxy import PyProxy
from emulator.runtime.web import idl
from emulator.values import JsException, ProxiedDict, ProxiedList

_BUFFERS: Final = (bytes, bytearray, memoryview, array)
_CONTAINERS: Final = (dict, list, tuple, set, frozenset)
_SHOWN: Final = 40


def is_python(value: object) -> bool:
    """Whether a value is a Python object that nobody converted."""
    return isinstance(value, (PyProxy, ProxiedDict, ProxiedList))


def hinted(error: JsException, value: Any) -> JsException:
    """Add to the error of a buffer that is none what helps, where Python has one."""
    if is_python(value) and isinstance(value.obj, _BUFFERS):
        kind = type(value.obj).__name__
        error.add_note(f"Python's {kind} is no buffer in JavaScript: give to_js(the {kind}).")
    return error


def text_of(value: Any, what: str) -> str:
    """Return the text of a value, and report one that is the text of Python data.

    `what` is made of it, as `the body of a Response`.
    """
    text = idl.string(value)
    if is_python(value):
        report(value.obj, text, what)
    return text


def report(obj: object, text: str, what: str) -> None:
    """Make a finding of Python data that becomes a text, if a Worker's code runs."""
    host = running()
    if host is None or not isinstance(obj, (*_BUFFERS, *_CONTAINERS)):
        return
    kind = type(obj).__name__
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    wants = (
        f"to_js(the {kind})" if isinstance(obj, _BUFFERS) else "json.dumps(…) or a converted one"
    )
    host.find(
        "lossy_body",
        f"{what} becomes the text {shown}: JavaScript takes a Python {kind} that is not converted "
        f"for its text, in production too; give {wants}",
        caller(),
    )
