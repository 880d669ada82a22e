"""PBKDF2 and HKDF."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from emulator.runtime.crypto.keys import Algorithm, CryptoKey, unknown_form
from emulator.runtime.crypto.params import HASHES, field, hash_of, octets, whole
from emulator.runtime.crypto.symmetric import mac
from emulator.runtime.host import current
from emulator.values import JsException

# Production's limit; the local runtime has none.
MOST_ITERATIONS: Final = 100_000


class _Derivation(Algorithm):
    secret_usages = ("deriveKey", "deriveBits")

    def import_key(
        self, form: str, data: Any, chosen: dict[str, Any], *, extractable: bool, usages: list[str]
    ) -> CryptoKey:
        used = self.imported_usages("secret", usages, self.secret_usages)
        if extractable:
            raise JsException("SyntaxError", f"{self.name} key cannot be extractable.")
        if form != "raw":
            raise unknown_form(form)
        return CryptoKey(
            "secret", self, {"name": self.name}, used, extractable=False, material=data
        )

    def _size(self, length: int | None) -> int:
        if length is None:
            text = f"{self.name} cannot derive a key with null length."
            raise JsException("OperationError", text)
        if length % 8:
            text = (
                f"{self.name} requires a derived key length that is a multiple of eight (requested "
                f"{length})."
            )
            raise JsException("OperationError", text)
        return length // 8


class Pbkdf2(_Derivation):
    """PBKDF2."""

    name = "PBKDF2"

    def derive(self, chosen: dict[str, Any], key: CryptoKey, length: int | None) -> bytes:
        hash_name = hash_of(chosen)
        salt = octets(chosen, "salt")
        iterations = whole(field(chosen, "iterations"))
        size = self._size(length)
        if iterations <= 0:
            text = f"PBKDF2 requires a positive iteration count (requested {iterations})."
            raise JsException("OperationError", text)
        if iterations > MOST_ITERATIONS and current().profile == "production":
            text = (
                f"Pbkdf2 failed: iteration counts above {MOST_ITERATIONS} are not supported "
                f"(requested {iterations})."
            )
            raise JsException("NotSupportedError", text)
        if not size:
            return b""
        return hashlib.pbkdf2_hmac(HASHES[hash_name][0], key.material, salt, iterations, size)


class Hkdf(_Derivation):
    """HKDF (RFC 5869)."""

    name = "HKDF"

    def derive(self, chosen: dict[str, Any], key: CryptoKey, length: int | None) -> bytes:
        hash_name = hash_of(chosen)
        salt, info = octets(chosen, "salt"), octets(chosen, "info")
        size = self._size(length)
        block = hashlib.new(HASHES[hash_name][0]).digest_size
        if size > 255 * block:
            raise JsException("OperationError", "HKDF deriveBits failed.")
        secret = mac(salt or bytes(block), hash_name, key.material)
        output, last = b"", b""
        for number in range(1, -(-size // block) + 1):
            last = mac(secret, hash_name, last + info + bytes([number]))
            output += last
        return output[:size]
