"""`crypto` of the `js` module: random values from the emulator's seeded stream, and `subtle`."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.host import current
from emulator.values import UNDEFINED, Function, HostObject, JsException, TypedArray

if TYPE_CHECKING:
    from emulator.runtime.crypto.subtle import SubtleCrypto

_QUOTA: Final = 65_536
_NO_INTEGERS: Final = "ArrayBufferView argument to getRandomValues() must be an integer-typed view."
_NO_VIEW: Final = (
    "Failed to execute 'getRandomValues' on 'Crypto': parameter 1 is not of type 'ArrayBufferView'."
)


class Crypto(HostObject):
    """`crypto`."""

    js_class = "Crypto"
    js_members = frozenset({"subtle", "randomUUID", "getRandomValues"})
    _subtle: SubtleCrypto | None = None

    @classmethod
    def js_new(cls) -> Crypto:
        """Refuse `new Crypto()`."""
        raise JsException("TypeError", "Illegal constructor")

    @property
    def subtle(self) -> SubtleCrypto:
        """Return the algorithms, which are loaded when they are first asked for."""
        if self._subtle is None:
            from emulator.runtime.crypto.subtle import SubtleCrypto

            self._subtle = SubtleCrypto()
        return self._subtle

    @property
    def randomUUID(self) -> Function:
        """Return a random UUID."""
        return Function(_random_uuid, "randomUUID", raw=True)

    @property
    def getRandomValues(self) -> Function:
        """Fill a typed array with random values."""
        return Function(_random_values, "getRandomValues", raw=True)


def _random_uuid(*_: Any) -> str:
    return str(uuid.UUID(bytes=_random(16), version=4))


def _random(size: int) -> bytes:
    host = current()
    host.forbid_in_global_scope()
    return host.urandom(size)


def _random_values(view: Any = UNDEFINED) -> Any:
    if not isinstance(view, TypedArray):
        raise JsException("TypeError", _NO_VIEW)
    if view.kind in ("DataView", "Float32Array", "Float64Array"):
        raise JsException("TypeMismatchError", _NO_INTEGERS)
    if view.nbytes > _QUOTA:
        raise JsException(
            "QuotaExceededError",
            "getRandomValues() only accepts buffers of size <= 64K but provided "
            f"{view.nbytes} bytes.",
        )
    view.buffer.data[view.offset : view.offset + view.nbytes] = _random(view.nbytes)
    return view


CRYPTO: Final = Crypto()
