"""Why the emulator shows something else than real Pyodide: docs/fidelity.md has a row for each.

A difference that no rule explains fails a test, and so does a rule that explains none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_ALL: Final = frozenset({"26-frozen", "28-frozen", "28", "314"})
_26: Final = frozenset({"26-frozen"})
_FROZEN: Final = frozenset({"26-frozen", "28-frozen"})


@dataclass(frozen=True, slots=True)
class Deviation:
    """Differences of one kind: by what real Pyodide shows, or by probes, or both."""

    reason: str
    shown: str = ""
    probe: str = ""
    settings: frozenset[str] = _ALL
    # Whether the difference goes away with the Python that runs the tests.
    by_python: bool = False

    def explains(self, setting: str, probe: str, shown: str) -> bool:
        """Whether this is the reason for a difference."""
        return (
            setting in self.settings
            and re.search(self.shown, shown) is not None
            and re.search(self.probe, probe) is not None
        )


def explained(setting: str, probe: str, shown: str) -> Deviation | None:
    """Return the reason for a difference, if one is known."""
    return next((one for one in DEVIATIONS if one.explains(setting, probe, shown)), None)


DEVIATIONS: Final = (
    Deviation(
        "web API of Node's",
        shown=(
            r"contructor: init\[0\]|ERR_INVALID_TUPLE|undefined\.headers|not instance of Arr"
            r'|init\["status"\]|Response constructor|Headers constructor|Headers\.append|GET/HEAD'
            r"|Failed to parse URL|Invalid URL|\"list\" argument|ERR_INVALID_ARG"
            r"|parameter 2 is not of type|in JSON at position|Content-Type was not one"
        ),
    ),
    Deviation("web API of Node's", shown=r"Response Response\(status=200[,)]"),
    Deviation("web API of Node's", probe=r"status_text(\)|\])?$|\.raise_for_status\(\)$"),
    Deviation(
        "web API of Node's",
        probe=r'method="patch"|body=\[1\]|req\(\)\.cf$|Blob\("x"\); f\["a"\]\.name|endings=',
    ),
    Deviation(
        "the first runtime's Pyodide is 0.26.0a2",
        shown=(
            r"LiteralMap|Unknown typed array type|^'\[1|^'\{\"a\":|^'1'|^1$"
            r"|\[\"a\"\]|\"\{'a': 1\}\"|an iterator was exhausted"
        ),
        settings=_26,
    ),
    Deviation(
        "`pyodide.http` of the first runtime",
        shown=r"^! OSError|has no attribute '(HttpStatusError|BodyUsedError|AbortError|abort)'",
        settings=_26,
    ),
    Deviation(
        "`pyodide.http` of the first runtime", probe=r"public\(workers\.Resp|pyodide\.http\.__all__"
    ),
    Deviation(
        "`pyodide.http` of the newest runtime",
        shown=r"pyodide\.http\._pyfetch",
        settings=frozenset({"314"}),
    ),
    Deviation(
        "modules of the frozen SDK", shown=r"workers\._workers|TypeAliasType", settings=_FROZEN
    ),
    Deviation(
        "details of the frozen SDK",
        probe=r"_EnvWrapper\(env\) is env|headers\) ?==|req\(\)\.headers|WorkerEntrypoint\(1, fakes"
        r"|E\(1, fakes\.env\(\)\)\.queue\(\)|wait_for_event\(|public\(workers\.Request",
        settings=_FROZEN,
    ),
    Deviation("names that nobody uses", probe=r"__all__|has\(\*ALL\)|^load\(|hasattr\(pyodide"),
    Deviation("names that nobody uses", probe=r"pyodide\.ffi\.nope|public\(workers\.Re"),
    Deviation("rejection by what is no error", shown=r"^\(never ends\)$"),
    Deviation("rejection by what is no error", shown=r"was thrown as an error"),
    Deviation(
        "`JsException` is no `JsProxy`",
        probe=r"\)\.args$|, JsProxy\)$|^JsException\(|JsException\.__mro__|raise_\(V\.error\)\)$",
    ),
    Deviation("promises are futures", probe=r'V\.resolved|kv\["get"\]|send_event|JsPromise'),
    Deviation(
        "proxies of proxies",
        probe=r"create_proxy\(h\)|create_proxy\(V\.object\)|once_callable|p\.get\(\"a\"\)$",
    ),
    Deviation("texts of Python's own about arguments", probe=r"^destroy_proxies\(\)|^_Binding"),
    Deviation("callbacks that a platform object keeps", probe=r"addEventListener"),
    Deviation("iterators are arrays", probe=r"\.entries\(\)$"),
    Deviation("texts cannot be subscripted", probe=r'String\.new\("abc"\)\[0\]'),
    Deviation("objects without a prototype", probe=r"V\.nothing"),
    Deviation(
        "order and identity of proxies", probe=r"V\.object < V\.object|js_id == V\.object\.js_id"
    ),
    Deviation("kinds of functions", probe=r"\.new$|\}\)\.get$|\"get\"\)$"),
    Deviation("kinds of functions", probe=r"V\.object(\.a)?\(\)|_RpcStub"),
    Deviation("a binding's call is an object of ours", probe=r"closed\(|iscoroutine"),
    Deviation("a binding is no sequence", probe=r"^kv\[0\]$"),
    Deviation("a host object gets copies", probe=r"^kv\.echo\(", settings=_FROZEN),
    Deviation("the module `js` is a module", probe=r"^type\(js\)|^import js\.nope"),
    Deviation(
        "texts of newer Pythons",
        shown=r"is not a container or iterable|can't be awaited|as a dict key|no __dict__ for",
        by_python=True,
    ),
)
