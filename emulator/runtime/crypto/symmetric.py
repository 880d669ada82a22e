"""HMAC and the modes of AES."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, ClassVar, Final

from emulator.runtime.crypto import jwk
from emulator.runtime.crypto.keys import Algorithm, CryptoKey, unknown_export, unknown_form
from emulator.runtime.crypto.params import HASHES, field, hash_of, octets, whole
from emulator.runtime.host import current
from emulator.values import ArrayBuffer, JsException

_FAILED: Final = (
    "Decryption failed. This could be due to a ciphertext authentication failure, bad padding, "
    "incorrect CryptoKey, or another algorithm-specific reason. Input length was {}, output length "
    "expected to be {} for {}"
)
_TAGS: Final = (32, 64, 96, 104, 112, 120, 128)
_BLOCK: Final = 16


def mac(key: bytes, hash_name: str, data: bytes) -> bytes:
    """Return the authentication code of the data."""
    return hmac.digest(key, data, HASHES[hash_name][0])


def digest(hash_name: str, data: bytes) -> bytes:
    """Return the hash of the data."""
    return hashlib.new(HASHES[hash_name][0], data).digest()


class Hmac(Algorithm):
    """HMAC."""

    name = "HMAC"
    secret_usages = ("sign", "verify")

    def import_key(
        self, form: str, data: Any, chosen: dict[str, Any], *, extractable: bool, usages: list[str]
    ) -> CryptoKey:
        used = self.imported_usages("secret", usages, self.secret_usages)
        if form not in ("raw", "jwk"):
            raise unknown_form(form)
        hash_name = hash_of(chosen)
        if form == "raw":
            raw: bytes = data
        else:
            raw, found = jwk.import_symmetric(
                data, self.name, used, use="sig", extractable=extractable
            )
            _check_alg(found, hash_name)
        bits = len(raw) * 8
        length = whole(chosen["length"]) if "length" in chosen else bits
        if length == 0 or not bits - 7 <= length <= bits:
            text = (
                f"Imported HMAC key length ({length}) must be a non-zero value up to 7 bits less "
                f"than, and no greater than, the bit length of the raw key data ({bits})."
            )
            raise JsException("DataError", text)
        return self._key(raw, hash_name, length, used, extractable=extractable)

    def _key(
        self, raw: bytes, hash_name: str, length: int, usages: list[str], *, extractable: bool
    ) -> CryptoKey:
        described = {"name": "HMAC", "hash": {"name": hash_name}, "length": length}
        return CryptoKey(
            "secret", self, described, usages, extractable=extractable, material=(raw, hash_name)
        )

    def export_key(self, form: str, key: CryptoKey) -> Any:
        raw, hash_name = key.material
        if form == "raw":
            return ArrayBuffer(raw)
        if form != "jwk":
            raise unknown_export(form)
        return jwk.exported(key, "oct", alg=f"HS{hash_name[4:]}", k=raw)

    def generate(
        self, chosen: dict[str, Any], *, extractable: bool, usages: list[str]
    ) -> CryptoKey:
        used = self.generated_usages(usages, self.secret_usages)
        hash_name = hash_of(chosen)
        length = whole(chosen["length"]) if "length" in chosen else HASHES[hash_name][1] * 8
        if length <= 0:
            text = f"HMAC key length must be a non-zero unsigned long integer (requested {length})."
            raise JsException("OperationError", text)
        raw = bytearray(current().urandom(-(-length // 8)))
        if length % 8:
            raw[-1] &= 0xFF << (8 - length % 8) & 0xFF
        return self._key(bytes(raw), hash_name, length, used, extractable=extractable)

    def length_of(self, chosen: dict[str, Any]) -> int | None:
        if "length" in chosen:
            return whole(chosen["length"])
        return HASHES[hash_of(chosen)][1] * 8

    def sign(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        raw, hash_name = key.material
        return mac(raw, hash_name, data)

    def verify(self, chosen: dict[str, Any], key: CryptoKey, signature: bytes, data: bytes) -> bool:
        return hmac.compare_digest(self.sign(chosen, key, data), signature)


def _check_alg(found: dict[str, Any], hash_name: str) -> None:
    expected = f"HS{hash_name[4:]}"
    if found.get("alg", expected) != expected:
        text = (
            'HMAC "jwk" key import specifies "alg" that is incompatible with the hash name '
            f'(encountered "{found["alg"]}", expected "{expected}").'
        )
        raise JsException("DataError", text)


class Aes(Algorithm):
    """What the modes of AES have in common: their keys."""

    secret_usages: ClassVar[tuple[str, ...]] = ("encrypt", "decrypt", "wrapKey", "unwrapKey")
    suffix: ClassVar[str]

    def import_key(
        self, form: str, data: Any, chosen: dict[str, Any], *, extractable: bool, usages: list[str]
    ) -> CryptoKey:
        used = self.imported_usages("secret", usages, self.secret_usages)
        if form not in ("raw", "jwk"):
            raise unknown_form(form)
        if form == "raw":
            raw: bytes = data
            found: dict[str, Any] = {}
        else:
            raw, found = jwk.import_symmetric(
                data, self.name, used, use="enc", extractable=extractable
            )
        bits = len(raw) * 8
        if bits not in (128, 192, 256):
            text = f"Imported AES key length must be 128, 192, or 256 bits but provided {bits}."
            raise JsException("DataError", text)
        expected = f"A{bits}{self.suffix}"
        if found.get("alg", expected) != expected:
            text = (
                f'Symmetric "jwk" key contains invalid "alg" value "{found["alg"]}", expected '
                f'"{expected}".'
            )
            raise JsException("DataError", text)
        return self._key(raw, used, extractable=extractable)

    def _key(self, raw: bytes, usages: list[str], *, extractable: bool) -> CryptoKey:
        described = {"name": self.name, "length": len(raw) * 8}
        return CryptoKey("secret", self, described, usages, extractable=extractable, material=raw)

    def export_key(self, form: str, key: CryptoKey) -> Any:
        if form == "raw":
            return ArrayBuffer(key.material)
        if form != "jwk":
            raise unknown_export(form)
        alg = f"A{len(key.material) * 8}{self.suffix}"
        return jwk.exported(key, "oct", alg=alg, k=key.material)

    def generate(
        self, chosen: dict[str, Any], *, extractable: bool, usages: list[str]
    ) -> CryptoKey:
        used = self.generated_usages(usages, self.secret_usages)
        length = self.length_of(chosen)
        return self._key(current().urandom(length // 8), used, extractable=extractable)

    def length_of(self, chosen: dict[str, Any]) -> int:
        length = whole(field(chosen, "length"))
        if length not in (128, 192, 256):
            text = f"Generated AES key length must be 128, 192, or 256 bits but requested {length}."
            raise JsException("OperationError", text)
        return length

    def failed(self, given: int, expected: int) -> JsException:
        """Return the error of data that cannot be decrypted."""
        return JsException("OperationError", _FAILED.format(given, expected, self.name))


class AesGcm(Aes):
    """AES-GCM."""

    name, suffix = "AES-GCM", "GCM"

    def _cipher(self, chosen: dict[str, Any], key: CryptoKey, tag: bytes | None) -> Any:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        iv = octets(chosen, "iv")
        if not iv:
            raise JsException("OperationError", "AES-GCM IV must not be empty.")
        # The library wants 8 bytes or more; the mode does not (SP 800-38D).
        if len(iv) < 8:
            return _ShortIv(key.material, iv, tag)
        mode = modes.GCM(iv, tag, min_tag_length=4)
        return Cipher(algorithms.AES(key.material), mode)

    def _tag_length(self, chosen: dict[str, Any]) -> int:
        length = whole(chosen.get("tagLength", 128))
        if length not in _TAGS:
            raise JsException("OperationError", f"Invalid AES-GCM tag length {length}.")
        return length // 8

    def _additional(self, chosen: dict[str, Any]) -> bytes:
        return octets(chosen, "additionalData") if "additionalData" in chosen else b""

    def encrypt(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        field(chosen, "iv")
        size = self._tag_length(chosen)
        encryptor = self._cipher(chosen, key, None).encryptor()
        encryptor.authenticate_additional_data(self._additional(chosen))
        text = encryptor.update(data) + encryptor.finalize()
        return bytes(text + encryptor.tag[:size])

    def decrypt(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        field(chosen, "iv")
        size = self._tag_length(chosen)
        if len(data) < size:
            text = (
                f"Ciphertext length of {len(data) * 8} bits must be greater than or equal to the "
                f"size of the AES-GCM tag length of {size * 8} bits."
            )
            raise JsException("OperationError", text)
        from cryptography.exceptions import InvalidTag

        body, tag = data[: len(data) - size], data[len(data) - size :]
        decryptor = self._cipher(chosen, key, tag).decryptor()
        decryptor.authenticate_additional_data(self._additional(chosen))
        try:
            return bytes(decryptor.update(body) + decryptor.finalize())
        except InvalidTag:
            raise self.failed(len(body), len(body)) from None


class _ShortIv:
    """Refuses: the library has no AES-GCM with an IV of less than 8 bytes."""

    def __init__(self, key: bytes, iv: bytes, tag: bytes | None) -> None:
        self._size = len(iv)

    def encryptor(self) -> Any:
        text = (
            f"The emulator's AES-GCM needs an IV of 8 bytes or more (provided {self._size}); 12 is "
            "what the standard recommends"
        )
        raise JsException("NotSupportedError", text)

    decryptor = encryptor


class AesCbc(Aes):
    """AES-CBC, with PKCS #7 padding."""

    name, suffix = "AES-CBC", "CBC"

    def _cipher(self, chosen: dict[str, Any], key: CryptoKey) -> Any:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        iv = octets(chosen, "iv")
        if len(iv) != _BLOCK:
            text = f"AES-CBC IV must be 16 bytes long (provided {len(iv)} bytes)."
            raise JsException("OperationError", text)
        return Cipher(algorithms.AES(key.material), modes.CBC(iv))

    def encrypt(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        from cryptography.hazmat.primitives.padding import PKCS7

        encryptor = self._cipher(chosen, key).encryptor()
        padder = PKCS7(128).padder()
        padded = padder.update(data) + padder.finalize()
        return bytes(encryptor.update(padded) + encryptor.finalize())

    def decrypt(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        from cryptography.hazmat.primitives.padding import PKCS7

        decryptor = self._cipher(chosen, key).decryptor()
        unpadder = PKCS7(128).unpadder()
        try:
            padded = decryptor.update(data) + decryptor.finalize()
            return bytes(unpadder.update(padded) + unpadder.finalize())
        except ValueError:
            raise self.failed(len(data), 0) from None


class AesCtr(Aes):
    """AES-CTR, with a counter in the last `length` bits of the block."""

    name, suffix = "AES-CTR", "CTR"

    def encrypt(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        counter = octets(chosen, "counter")
        length = whole(field(chosen, "length"))
        if len(counter) != _BLOCK:
            text = f"Counter must have length of 16 bytes (provided {len(counter)})."
            raise JsException("OperationError", text)
        if not 1 <= length <= 128:
            text = f"Invalid counter of {length} bits length provided."
            raise JsException("OperationError", text)
        blocks = -(-len(data) // _BLOCK)
        if blocks > 1 << length:
            raise JsException("OperationError", "Counter block values will repeat.")
        start = int.from_bytes(counter, "big")
        left = (1 << length) - (start & ((1 << length) - 1))  # blocks until the counter wraps
        first = data[: left * _BLOCK]
        rest = data[left * _BLOCK :]
        wrapped = start >> length << length
        return self._run(key.material, start, first) + self._run(key.material, wrapped, rest)

    decrypt = encrypt

    @staticmethod
    def _run(key: bytes, counter: int, data: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        if not data:
            return b""
        mode = modes.CTR(counter.to_bytes(_BLOCK, "big"))
        encryptor = Cipher(algorithms.AES(key), mode).encryptor()
        return encryptor.update(data) + encryptor.finalize()


class AesKw(Aes):
    """AES-KW, which wraps keys."""

    name, suffix = "AES-KW", "KW"
    secret_usages = ("wrapKey", "unwrapKey")

    def wrap(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        from cryptography.hazmat.primitives.keywrap import aes_key_wrap

        if len(data) % 8 or len(data) < _BLOCK:
            text = f"Unwrapped key length ({len(data) * 8} bits) must be a multiple of 64 bits."
            raise JsException("OperationError", text)
        return aes_key_wrap(key.material, data)

    def unwrap(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap

        try:
            return aes_key_unwrap(key.material, data)
        except (InvalidUnwrap, ValueError):
            raise JsException("OperationError", "AES-KW key unwrapping failed.") from None
