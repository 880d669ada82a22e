"""`crypto.subtle`: finding the algorithm, and the checks that all of them share."""

from __future__ import annotations

import hmac
from typing import Any, Final

from emulator.runtime.crypto import curves, derivation, rsa, symmetric
from emulator.runtime.crypto.keys import Algorithm, CryptoKey, KeyPair, unknown_form
from emulator.runtime.crypto.params import hash_named, settings
from emulator.runtime.js_text import display
from emulator.runtime.web import idl
from emulator.runtime.web.python_text import hinted
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    HostObject,
    JsException,
    ProxiedList,
    from_json,
    to_json,
)

_ALGORITHMS: Final[dict[str, Algorithm]] = {
    one.name.upper(): one
    for one in (
        *(symmetric.Hmac(), symmetric.AesGcm(), symmetric.AesCbc(), symmetric.AesCtr()),
        *(symmetric.AesKw(), derivation.Pbkdf2(), derivation.Hkdf()),
        *(rsa.RsaPkcs1(), rsa.RsaPss(), rsa.RsaOaep()),
        *(curves.Ecdsa(), curves.Ecdh(), curves.Ed25519(), curves.NodeEd25519(), curves.X25519()),
    )
}
_FORMS: Final = ("raw", "pkcs8", "spki", "jwk")
_NO_BUFFER: Final = "Import data provided for buffer-based import formats must be a buffer source."


class SubtleCrypto(HostObject):
    """`crypto.subtle`; every method but `timingSafeEqual` returns a promise."""

    js_class = "SubtleCrypto"
    js_members = frozenset(
        {
            *("encrypt", "decrypt", "sign", "verify", "digest", "generateKey", "deriveKey"),
            *("deriveBits", "importKey", "exportKey", "wrapKey", "unwrapKey", "timingSafeEqual"),
        }
    )

    @classmethod
    def js_new(cls) -> SubtleCrypto:
        """Refuse `new SubtleCrypto()`."""
        raise JsException("TypeError", "Illegal constructor")

    async def digest(self, algorithm: Any = UNDEFINED, data: Any = UNDEFINED) -> ArrayBuffer:
        """Return the hash of the data."""
        raw = _buffer("digest", 2, data)
        return ArrayBuffer(symmetric.digest(hash_named(algorithm), raw))

    async def encrypt(
        self, algorithm: Any = UNDEFINED, key: Any = UNDEFINED, data: Any = UNDEFINED
    ) -> ArrayBuffer:
        """Return the ciphertext."""
        used, raw = _key("encrypt", 2, key), _buffer("encrypt", 3, data)
        chosen = _checked(algorithm, used, "encrypt")
        return ArrayBuffer(used.owner.encrypt(chosen, used, raw))

    async def decrypt(
        self, algorithm: Any = UNDEFINED, key: Any = UNDEFINED, data: Any = UNDEFINED
    ) -> ArrayBuffer:
        """Return the plaintext."""
        used, raw = _key("decrypt", 2, key), _buffer("decrypt", 3, data)
        chosen = _checked(algorithm, used, "decrypt")
        return ArrayBuffer(used.owner.decrypt(chosen, used, raw))

    async def sign(
        self, algorithm: Any = UNDEFINED, key: Any = UNDEFINED, data: Any = UNDEFINED
    ) -> ArrayBuffer:
        """Return the signature of the data."""
        used, raw = _key("sign", 2, key), _buffer("sign", 3, data)
        chosen = _checked(algorithm, used, "sign")
        return ArrayBuffer(used.owner.sign(chosen, used, raw))

    async def verify(
        self,
        algorithm: Any = UNDEFINED,
        key: Any = UNDEFINED,
        signature: Any = UNDEFINED,
        data: Any = UNDEFINED,
    ) -> bool:
        """Return whether the signature is that of the data."""
        used, given = _key("verify", 2, key), _buffer("verify", 3, signature)
        raw = _buffer("verify", 4, data)
        chosen = _checked(algorithm, used, "verify")
        return used.owner.verify(chosen, used, given, raw)

    async def generateKey(
        self, algorithm: Any = UNDEFINED, extractable: Any = UNDEFINED, usages: Any = UNDEFINED
    ) -> CryptoKey | KeyPair:
        """Return a new key, or a pair of keys."""
        may, uses = _flags("generateKey", 2, extractable, usages)
        chosen = settings(algorithm)
        owner = _algorithm(chosen, "generation")
        return owner.generate(chosen, extractable=may, usages=uses)

    async def importKey(
        self,
        form: Any = UNDEFINED,
        data: Any = UNDEFINED,
        algorithm: Any = UNDEFINED,
        extractable: Any = UNDEFINED,
        usages: Any = UNDEFINED,
    ) -> CryptoKey:
        """Return a key from its data."""
        may, uses = _flags("importKey", 4, extractable, usages)
        return _import(display(form), data, settings(algorithm), uses, extractable=may)

    async def exportKey(self, form: Any = UNDEFINED, key: Any = UNDEFINED) -> Any:
        """Return the data of a key."""
        used = _key("exportKey", 2, key)
        return _export(display(form), used)

    async def deriveBits(
        self, algorithm: Any = UNDEFINED, key: Any = UNDEFINED, length: Any = None
    ) -> ArrayBuffer:
        """Return bits that a key and parameters give."""
        used = _key("deriveBits", 2, key)
        chosen = _checked(algorithm, used, "deriveBits")
        bits = None if length is None or length is UNDEFINED else idl.integer(length)
        return ArrayBuffer(used.owner.derive(chosen, used, bits))

    async def deriveKey(
        self,
        algorithm: Any = UNDEFINED,
        key: Any = UNDEFINED,
        derived: Any = UNDEFINED,
        extractable: Any = UNDEFINED,
        usages: Any = UNDEFINED,
    ) -> CryptoKey:
        """Return a key made of such bits."""
        used = _key("deriveKey", 2, key)
        may, uses = _flags("deriveKey", 4, extractable, usages)
        chosen = _checked(algorithm, used, "deriveKey")
        wanted = settings(derived)
        length = _algorithm(wanted, "import").length_of(wanted)
        raw = used.owner.derive(chosen, used, length)
        return _import("raw", raw, wanted, uses, extractable=may)

    async def wrapKey(
        self,
        form: Any = UNDEFINED,
        key: Any = UNDEFINED,
        wrapping: Any = UNDEFINED,
        algorithm: Any = UNDEFINED,
    ) -> ArrayBuffer:
        """Return a key's data, encrypted with another key."""
        used, wrapper = _key("wrapKey", 2, key), _key("wrapKey", 3, wrapping)
        chosen = _checked(algorithm, wrapper, "wrapKey")
        exported = _export(display(form), used)
        raw = bytes(exported) if isinstance(exported, ArrayBuffer) else to_json(exported).encode()
        return ArrayBuffer(wrapper.owner.wrap(chosen, wrapper, raw))

    async def unwrapKey(
        self,
        form: Any = UNDEFINED,
        wrapped: Any = UNDEFINED,
        wrapping: Any = UNDEFINED,
        algorithm: Any = UNDEFINED,
        imported: Any = UNDEFINED,
        extractable: Any = UNDEFINED,
        usages: Any = UNDEFINED,
    ) -> CryptoKey:
        """Return the key that `wrapKey` has wrapped."""
        data, wrapper = _buffer("unwrapKey", 2, wrapped), _key("unwrapKey", 3, wrapping)
        may, uses = _flags("unwrapKey", 6, extractable, usages)
        chosen = _checked(algorithm, wrapper, "unwrapKey")
        raw: Any = wrapper.owner.unwrap(chosen, wrapper, data)
        name = display(form)
        given = from_json(raw.decode()) if name == "jwk" else raw
        return _import(name, given, settings(imported), uses, extractable=may)

    def timingSafeEqual(self, left: Any = UNDEFINED, right: Any = UNDEFINED) -> bool:
        """Return whether two buffers are equal."""
        first = _buffer("timingSafeEqual", 1, left)
        second = _buffer("timingSafeEqual", 2, right)
        if len(first) != len(second):
            raise JsException("TypeError", "Input buffers must have the same byte length.")
        return hmac.compare_digest(first, second)


def _algorithm(chosen: dict[str, Any], what: str) -> Algorithm:
    name = display(chosen.get("name", UNDEFINED))
    found = _ALGORITHMS.get(name.upper())
    if found is None:
        text = f'Unrecognized key {what} algorithm "{name}" requested.'
        raise JsException("NotSupportedError", text)
    return found


def _import(
    form: str, data: Any, chosen: dict[str, Any], usages: list[str], *, extractable: bool
) -> CryptoKey:
    owner = _algorithm(chosen, "import")
    if form not in _FORMS:
        raise unknown_form(form)
    if form != "jwk":
        raw = idl.buffer(data)
        if raw is None:
            raise JsException("TypeError", _NO_BUFFER)
        data = raw
    return owner.import_key(form, data, chosen, extractable=extractable, usages=usages)


def _export(form: str, key: CryptoKey) -> Any:
    if not key.extractable:
        text = f"Attempt to export non-extractable {key.name} key."
        raise JsException("InvalidAccessError", text)
    return key.owner.export_key(form, key)


def _checked(algorithm: Any, key: CryptoKey, usage: str) -> dict[str, Any]:
    chosen = settings(algorithm)
    name = display(chosen.get("name", UNDEFINED))
    if name.upper() != key.name.upper():
        text = (
            f'Requested algorithm "{name}" does not match this CryptoKey\'s algorithm "{key.name}".'
        )
        raise JsException("InvalidAccessError", text)
    if usage not in key.usages:
        text = f'Requested key usage "{usage}" does not match any usage listed in this CryptoKey.'
        raise JsException("InvalidAccessError", text)
    return chosen


def _key(method: str, place: int, value: Any) -> CryptoKey:
    if not isinstance(value, CryptoKey):
        raise idl.wrong_argument(method, "SubtleCrypto", place, "CryptoKey")
    return value


def _buffer(method: str, place: int, value: Any) -> bytes:
    raw = idl.buffer(value)
    if raw is None:
        raise hinted(idl.wrong_argument(method, "SubtleCrypto", place, "BufferSource"), value)
    return raw


def _flags(method: str, place: int, extractable: Any, usages: Any) -> tuple[bool, list[str]]:
    if extractable is UNDEFINED:
        raise idl.wrong_argument(method, "SubtleCrypto", place, "boolean")
    # A Python list that nobody converted is a proxy, and no array.
    if not isinstance(usages, list) or isinstance(usages, ProxiedList):
        raise idl.wrong_argument(method, "SubtleCrypto", place + 1, "Array")
    return bool(extractable), [display(usage) for usage in usages]
