"""The canonical values that plain Python has no class for, and the questions asked about any value.

`None` is JavaScript's null, `UNDEFINED` is undefined, `int` and `float` are numbers, `str`, `bool`,
`list` (Array), `dict` with `str` keys (plain Object), `bytes` (Uint8Array), `datetime` (Date:
aware, millisecond precision) and `set` (Set) stand for themselves. An Error is a `JsException`,
which is also what is raised. Everything else is here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


# Every int strictly between -SAFE and SAFE is a JavaScript number; Pyodide makes a BigInt of the
# others, 2**53 - 1 included.
SAFE: Final = 2**53 - 1


class Undefined:
    """The type of `UNDEFINED`, JavaScript's undefined."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "undefined"

    def __reduce__(self) -> str:
        return "UNDEFINED"


UNDEFINED: Final = Undefined()


class JsException(Exception):
    """An error of the platform's JavaScript side, `pyodide.ffi.JsException` in user code.

    `name` is the JavaScript class (`TypeError`), `message` its text; `str()` is `Name: message`.
    With one argument it is a plain message. `path` says which part of a value was at fault, as
    `$.rows[0].id`; the platform does not tell, so it is a note and no part of the text.
    """

    stack: str = ""
    cause: Any = UNDEFINED
    path: str | None = None
    # What an error has in user code as any JavaScript object has: the runtime's.
    js_attribute: ClassVar[Callable[[JsException, str], Any] | None] = None

    def __init__(self, name: str, message: str | None = None) -> None:
        super().__init__(": ".join(filter(None, (name, message))))
        self.name = "Error" if message is None else name
        self.message = name if message is None else message

    def __getattr__(self, name: str) -> Any:
        resolve = type(self).js_attribute
        if resolve is None or name[:2] == "__":
            raise AttributeError(name)
        return resolve(self, name)

    def __repr__(self) -> str:
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.name, self.message))

    def at(self, path: str) -> JsException:
        """Remember and note the part of the value at fault; returns self."""
        self.path = path
        self.add_note(f"emulator: the value at {path} is the cause")
        return self


JsException.__module__ = "pyodide.ffi"


class HostObject:
    """An instance of one of the platform's JavaScript classes, as Python.

    `js_class` is the constructor's name (`WorkerQueue`); `js_members` lists the attributes user
    code may see. Members take and return canonical values; a method may return an awaitable, which
    user code sees as a promise. Methods get keyword arguments of user code as one trailing dict,
    and surplus arguments are dropped, as JavaScript does; give parameters `UNDEFINED` as default
    where the call may leave them out. A class that defines `__iter__` is iterable in JavaScript.
    One with `__aiter__` can be iterated with `async for`. User code may assign only to members that
    are properties with a setter, and to event handlers (`onabort`).

    `sdk_results` has, for methods whose promise is of something that is always made in the same
    way, a quicker way to do with it what the SDK does with a result.

    A class that user code may construct (`js.Headers.new(...)`) is called with canonical values,
    through a classmethod `js_new` if it has one; `js_statics` lists its static methods.
    """

    js_class: ClassVar[str]
    js_members: ClassVar[frozenset[str]] = frozenset()
    js_statics: ClassVar[frozenset[str]] = frozenset()
    sdk_results: ClassVar[Mapping[str, Callable[[Any], Any]]] = MappingProxyType({})
    # What user code set on one instance, under names that are no members.
    _js_own: dict[str, Any] | None = None

    def js_lookup(self, name: str) -> Any:
        """Return the member `name`; raises `AttributeError` if there is none."""
        if name in self.js_members:
            return getattr(self, name)
        raise AttributeError(name)

    def js_keys(self) -> Iterable[str]:
        """Return the own enumerable properties (`Object.keys`): none, accessors are inherited."""
        return ()


@dataclass(frozen=True, slots=True)
class BigInt:
    """A BigInt, which JSON cannot carry."""

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Boxed:
    """A number, text or boolean as an object (`new Number(5)`), or a Date that is invalid."""

    kind: str
    value: Any


@dataclass(slots=True, unsafe_hash=True)
class RegExp:
    """A regular expression; `flags` are JavaScript's letters, `last_index` where to go on."""

    source: str
    flags: str = ""
    last_index: Any = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"/{self.source}/{self.flags}"


class Opaque:
    """A JavaScript value that no boundary carries: a function, a symbol, a Python object.

    `obj` is the Python object, where it is one.
    """

    typeof: ClassVar[str] = "object"
    js_class: str = "Object"
    obj: Any = UNDEFINED

    def clone_text(self) -> str:
        """Return how `DataCloneError` names the value."""
        return "[object Object]"

    def to_json_value(self) -> Any:
        """Return what `JSON.stringify` writes in its place; `UNDEFINED` leaves it out."""
        return {}


class Function(Opaque):
    """A JavaScript function, or a Python one that was passed to JavaScript.

    Calling it takes and returns canonical values; `python` is the Python one, `kept` unless its
    proxy ends with the call it was made for. With `raw` it gets its arguments as JavaScript has
    them, proxies of Python objects included; only the emulator's own built-ins do.
    """

    typeof: ClassVar[str] = "function"
    js_class: str = "Function"
    python: Callable[..., Any] | None = None
    kept = True
    raw = False
    _source: str | None = None

    def __init__(
        self,
        call: Callable[..., Any],
        name: str = "",
        *,
        raw: bool = False,
        source: str | None = None,
        python: Callable[..., Any] | None = None,
    ) -> None:
        self.call = call
        self.name = name
        # A function is made for each access to a method: what most have is their class's.
        if python is not None:
            self.python = python
        if raw:
            self.raw = raw
        if source is not None:
            self._source = source

    @property
    def source(self) -> str:
        """The text of the function."""
        return self._source or f"function {self.name}() {{ [native code] }}"

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)

    def clone_text(self) -> str:
        return self.source

    def to_json_value(self) -> Any:
        return UNDEFINED


class Symbol(Opaque):
    """A symbol."""

    typeof: ClassVar[str] = "symbol"
    js_class: str = "Symbol"

    def __init__(self, description: str = "") -> None:
        self.description = description

    def __str__(self) -> str:
        return f"Symbol({self.description})"

    def clone_text(self) -> str:
        return str(self)

    def to_json_value(self) -> Any:
        return UNDEFINED


class ProxiedDict(dict[str, Any]):
    """A Python dict that reached the platform as a Pyodide proxy, because nobody converted it.

    Properties can be read and JSON shows what JavaScript can see of it (everything from Pyodide
    0.28, nothing on 0.26); structured clone refuses it. `obj` is the Python object.
    """

    __slots__ = ("obj",)

    def __init__(self, *values: Any, obj: Any = None, **items: Any) -> None:
        super().__init__(*values, **items)
        self.obj = obj


class ProxiedList(list[Any]):
    """A Python sequence that reached the platform as a Pyodide proxy; see `ProxiedDict`.

    It can be iterated; where `hidden` (Pyodide 0.26) JSON takes it for an empty object. `obj` is
    the Python object.
    """

    __slots__ = ("hidden", "obj")

    def __init__(
        self, values: Iterable[Any] = (), *, hidden: bool = False, obj: Any = None
    ) -> None:
        super().__init__(values)
        self.hidden = hidden
        self.obj = obj
