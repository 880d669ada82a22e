"""`crypto` of the `js` module: digests, HMAC and random bytes from the emulator's seeded stream.

Encryption, key derivation and public keys are not here; they raise `NotSupportedError`.
"""

from __future__ import annotations

import hashlib
import hmac
import uuid
from typing import Any, Final

from emulator.runtime.host import current
from emulator.runtime.js_binary import buffer_bytes
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    Function,
    HostObject,
    JsException,
    TypedArray,
    class_of,
)

_HASHES: Final = {
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
    "MD5": "md5",
}
_QUOTA: Final = 65536


def _algorithm_name(algorithm: Any) -> str:
    name = algorithm.get("name") if isinstance(algorithm, dict) else algorithm
    return str(name).upper()


def _hash_of(algorithm: Any) -> str:
    name = _algorithm_name(algorithm)
    if name not in _HASHES:
        raise _unsupported(f"the hash {name}", f"it has {', '.join(_HASHES)}")
    return _HASHES[name]


def _unsupported(what: str, instead: str) -> JsException:
    return JsException(
        "NotSupportedError", f"The emulator's crypto does not have {what}; {instead}"
    )


class CryptoKey(HostObject):
    """A key for HMAC."""

    js_class = "CryptoKey"
    js_members = frozenset({"type", "extractable", "algorithm", "usages"})
    type = "secret"

    def __init__(self, data: bytes, hash_name: str, extractable: bool, usages: list[str]) -> None:
        self.data = data
        self.hash = _HASHES[hash_name]
        self.extractable = extractable
        self.usages = usages
        self.algorithm: dict[str, Any] = {
            "name": "HMAC",
            "hash": {"name": hash_name},
            "length": len(data) * 8,
        }

    def mac(self, data: Any) -> bytes:
        """Return the authentication code of the data."""
        return hmac.digest(self.data, buffer_bytes(data), self.hash)


class SubtleCrypto(HostObject):
    """`crypto.subtle`."""

    js_class = "SubtleCrypto"
    js_members = frozenset(
        {"digest", "importKey", "exportKey", "sign", "verify", "timingSafeEqual"}
    )
    _MISSING: Final = frozenset(
        {
            "encrypt",
            "decrypt",
            "generateKey",
            "deriveKey",
            "deriveBits",
            "wrapKey",
            "unwrapKey",
        }
    )

    def js_lookup(self, name: str) -> Any:
        if name in self._MISSING:
            raise _unsupported(f"subtle.{name}", "use a Python library such as cryptography")
        return super().js_lookup(name)

    async def digest(self, algorithm: Any, data: Any) -> ArrayBuffer:
        """Return the hash of the data."""
        return ArrayBuffer(hashlib.new(_hash_of(algorithm), buffer_bytes(data)).digest())

    async def importKey(
        self, form: str, data: Any, algorithm: Any, extractable: Any = False, usages: Any = ()
    ) -> CryptoKey:
        """Return an HMAC key from raw bytes."""
        if form != "raw" or _algorithm_name(algorithm) != "HMAC":
            raise _unsupported(
                f"importKey of {_algorithm_name(algorithm)} as {form}", "it has HMAC keys as raw"
            )
        hash_name = _algorithm_name(algorithm.get("hash", ""))
        _hash_of(hash_name)
        return CryptoKey(buffer_bytes(data), hash_name, bool(extractable), list(usages))

    async def exportKey(self, form: str, key: CryptoKey) -> ArrayBuffer:
        """Return the raw bytes of a key."""
        if not key.extractable:
            raise JsException(
                "InvalidAccessError",
                f"Attempt to export non-extractable {key.algorithm['name']} key.",
            )
        return ArrayBuffer(key.data)

    async def sign(self, algorithm: Any, key: CryptoKey, data: Any) -> ArrayBuffer:
        """Return the signature of the data."""
        self._check(key, "sign")
        return ArrayBuffer(key.mac(data))

    async def verify(self, algorithm: Any, key: CryptoKey, signature: Any, data: Any) -> bool:
        """Return whether the signature is that of the data."""
        self._check(key, "verify")
        return hmac.compare_digest(key.mac(data), buffer_bytes(signature))

    def timingSafeEqual(self, left: Any, right: Any) -> bool:
        """Return whether two buffers are equal."""
        first, second = buffer_bytes(left), buffer_bytes(right)
        if len(first) != len(second):
            raise JsException("TypeError", "Input buffers must have the same byte length.")
        return hmac.compare_digest(first, second)

    def _check(self, key: CryptoKey, usage: str) -> None:
        if usage not in key.usages:
            raise JsException(
                "InvalidAccessError",
                f'Requested key usage "{usage}" does not match any usage listed in this CryptoKey.',
            )


def _random_uuid(*_: Any) -> str:
    return str(uuid.UUID(bytes=current().urandom(16), version=4))


def _random_values(view: Any = UNDEFINED) -> Any:
    if not isinstance(view, TypedArray) or view.kind in (
        "DataView",
        "Float32Array",
        "Float64Array",
    ):
        raise JsException(
            "TypeMismatchError",
            f"crypto.getRandomValues() only accepts integer typed arrays, not {class_of(view)}",
        )
    if view.nbytes > _QUOTA:
        raise JsException(
            "QuotaExceededError",
            "getRandomValues() only accepts buffers of size <= 64K but provided "
            f"{view.nbytes} bytes.",
        )
    view.buffer.data[view.offset : view.offset + view.nbytes] = current().urandom(view.nbytes)
    return view


CRYPTO: Final[dict[str, Any]] = {
    "subtle": SubtleCrypto(),
    "randomUUID": Function(_random_uuid, "randomUUID", raw=True),
    "getRandomValues": Function(_random_values, "getRandomValues", raw=True),
}
