"""Arguments and results on their way: copies, stubs, bodies, and what cannot cross.

A message is a structured clone (workerd, `worker-rpc.c++` and `jsg/ser.c++`): nothing is shared
with the other side. Functions become stubs of the sender's, and so do stubs; requests, responses
and streams give their bodies away. What else is an instance of a class is refused, in the words of
the runtime.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from emulator.rpc.bodies import across
from emulator.rpc.errors import ENHANCED, carried, properties
from emulator.runtime.pyproxy import PyProxy
from emulator.runtime.web.blob import Blob, File
from emulator.runtime.web.boundary import response_from_web, response_to_web
from emulator.runtime.web.headers import Headers
from emulator.runtime.web.request import Request
from emulator.runtime.web.response import Response
from emulator.runtime.web.sources import IteratorSource
from emulator.runtime.web.streams import ReadableStream
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    Function,
    HostObject,
    JsException,
    JsMap,
    JsSet,
    LiteralMap,
    Opaque,
    ProxiedDict,
    ProxiedList,
    TypedArray,
    clone_error,
    to_v8,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.invocation import Invocation

LIMIT: Final = 32 * 1024 * 1024
# From here on a message is measured exactly; below it cannot be too large.
_SUSPICIOUS: Final = LIMIT // 4
# What `measure` counts for a part of a message, at most.
_PART: Final = 16

_ATOMS: Final = frozenset({bool, int, float, type(None), type(UNDEFINED)})
_PROXY: Final = (
    "Proxy could not be serialized because it is not a valid RPC receiver type. The Proxy must "
    "emulate either a plain object or an RpcTarget, as indicated by the Proxy's prototype chain."
)


@runtime_checkable
class Transferable(Protocol):
    """A host object that the other side gets one of its own of."""

    def transferred(self, sender: Invocation) -> HostObject:
        """Return the one for the other side."""


def carry(value: Any, sender: Invocation) -> Any:
    """Return a value as the other side gets it.

    Raises `JsException`: `DataCloneError` for what cannot cross, `Error` above 32 MiB.
    """
    kind = type(value)
    if kind in _ATOMS or (kind is str and len(value) < _SUSPICIOUS):
        return value
    return Carrier(sender).message(value)


def carry_all(values: list[Any], sender: Invocation) -> list[Any]:
    """Return the arguments of a call as the other side gets them; raises as `carry` does."""
    for value in values:
        kind = type(value)
        if not (kind in _ATOMS or (kind is str and len(value) < _SUSPICIOUS)):
            return Carrier(sender).message(values)  # type: ignore[no-any-return]
    return values


class Carrier:
    """Copies one message."""

    def __init__(self, sender: Invocation) -> None:
        self._sender = sender
        self._known: dict[int, Any] = {}
        self._size = 0

    def message(self, value: Any) -> Any:
        """Return the copy of a whole message."""
        try:
            copy = self.copy(value, "$")
        except RecursionError:
            raise JsException("RangeError", "Maximum call stack size exceeded") from None
        if self._size > _SUSPICIOUS:
            self._check_size(copy)
        return copy

    def _check_size(self, copy: Any) -> None:
        try:
            size = len(to_v8(copy))
        except JsException:
            size = self._size  # it has stubs or bodies, which are not part of the bytes
        if size > LIMIT:
            raise JsException(
                "Error",
                "Serialized RPC arguments or return values are limited to 32MiB, but the size of "
                f"this value was: {size} bytes.",
            )

    def copy(self, value: Any, path: str) -> Any:
        """Return the copy of a part of it."""
        kind = type(value)
        self._size += _PART
        if kind in _ATOMS:
            return value
        if kind is str or kind is bytes:
            self._size += 2 * len(value)
            return value
        known = self._known.get(id(value))
        if known is not None:
            return known
        for known_kind, method in _WAYS:
            if isinstance(value, known_kind):
                return method(self, value, path)
        return value  # a number, a date, a regular expression: nobody can change it

    def _keep(self, value: Any, copy: Any) -> Any:
        self._known[id(value)] = copy
        return copy

    def _dict(self, value: dict[str, Any], path: str) -> dict[str, Any]:
        copy: dict[str, Any] = self._keep(value, {})
        for key, item in value.items():
            self._size += 2 * len(key)
            copy[key] = self.copy(item, f"{path}.{key}")
        return copy

    def _list(self, value: list[Any], path: str) -> list[Any]:
        copy: list[Any] = self._keep(value, [])
        for index, item in enumerate(value):
            copy.append(self.copy(item, f"{path}[{index}]"))
        return copy

    def _map(self, value: JsMap, path: str) -> JsMap:
        copy: JsMap = self._keep(value, JsMap())
        for key, item in value.items():
            copy.set(self.copy(key, f"{path}.keys()"), self.copy(item, f"{path}.get({key!r})"))
        return copy

    def _set(self, value: Any, path: str) -> JsSet:
        items = [self.copy(item, f"{path}.values()") for item in _ordered(value)]
        return self._keep(value, JsSet(items))  # type: ignore[no-any-return]

    def _buffer(self, value: ArrayBuffer, path: str) -> ArrayBuffer:
        self._size += len(value.data)
        return self._keep(value, ArrayBuffer(bytes(value.data)))  # type: ignore[no-any-return]

    def _view(self, value: TypedArray, path: str) -> TypedArray:
        self._size += value.nbytes
        return self._keep(value, TypedArray(value.kind, ArrayBuffer(bytes(value))))  # type: ignore[no-any-return]

    def _error(self, value: JsException, path: str) -> JsException:
        flags = self._sender.flags
        if ENHANCED in flags:
            copy = JsException(value.name, value.message)
            copy.__dict__.update(properties(value))
            return copy
        return carried(value, flags, frozenset({ENHANCED}), remote=False)

    def _refuse_proxy(self, value: Any, path: str) -> Any:
        raise JsException("DataCloneError", _PROXY).at(path)

    def _opaque(self, value: Opaque, path: str) -> Any:
        if isinstance(value, Function):
            from emulator.rpc.stub import RpcStub

            return self._keep(value, RpcStub(self._sender.lasting, value))
        if isinstance(value, PyProxy):
            raise JsException("DataCloneError", _PROXY).at(path)
        raise clone_error(value.clone_text(), path)

    def _host(self, value: HostObject, path: str) -> HostObject:
        if isinstance(value, Transferable):
            return self._keep(value, value.transferred(self._sender))  # type: ignore[no-any-return]
        for kind, method in _CLASSES:
            if isinstance(value, kind):
                return self._keep(value, method(self, value))  # type: ignore[no-any-return]
        raise JsException(
            "DataCloneError",
            f'Could not serialize object of type "{value.js_class}". '
            "This type does not support serialization.",
        ).at(path)

    def _response(self, value: Response) -> Response:
        sent = response_to_web(value)
        return response_from_web(replace(sent, body=across(sent.body, self._sender)))

    def _request(self, value: Request) -> Request:
        body = across(value.take(), self._sender)
        return Request(
            value.url,
            method=value.method,
            headers=value.headers.pairs,
            content=_content(body),
            redirect=value.redirect,
            cf=value.cf,
        )

    def _headers(self, value: Headers) -> Headers:
        return value.copy()

    def _file(self, value: File) -> Blob:
        self._size += len(value.data)
        return File(
            value.data, value.name, content_type=value.type, last_modified=value.lastModified
        )

    def _blob(self, value: Blob) -> Blob:
        self._size += len(value.data)
        return Blob(value.data, value.type)

    def _stream(self, value: ReadableStream) -> ReadableStream:
        # A stream that was read from, or has a reader, is refused as a body is.
        body = across(Response(value).take(), self._sender)
        if isinstance(body, bytes):
            return ReadableStream.of_bytes(body)
        return ReadableStream(IteratorSource(body))


def _content(body: Any) -> Any:
    if isinstance(body, bytes):
        return body or None
    return ReadableStream(IteratorSource(body))


def _ordered(values: Any) -> Any:
    """A set's elements; one of Python's has no order of its own."""
    return values if isinstance(values, JsSet) else sorted(values, key=to_v8)


_WAYS: Final[tuple[tuple[Any, Callable[[Carrier, Any, str], Any]], ...]] = (
    ((ProxiedDict, ProxiedList, LiteralMap), Carrier._refuse_proxy),
    (dict, Carrier._dict),
    (list, Carrier._list),
    (JsMap, Carrier._map),
    ((set, frozenset, JsSet), Carrier._set),
    (ArrayBuffer, Carrier._buffer),
    (TypedArray, Carrier._view),
    (JsException, Carrier._error),
    (Opaque, Carrier._opaque),
    (HostObject, Carrier._host),
)
_CLASSES: Final[tuple[tuple[Any, Callable[[Carrier, Any], HostObject]], ...]] = (
    (Response, Carrier._response),
    (Request, Carrier._request),
    (Headers, Carrier._headers),
    (File, Carrier._file),
    (Blob, Carrier._blob),
    (ReadableStream, Carrier._stream),
)
