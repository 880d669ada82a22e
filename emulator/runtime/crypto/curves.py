"""ECDSA and ECDH, Ed25519 and X25519."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from emulator.runtime.crypto import jwk
from emulator.runtime.crypto.asymmetric import Asymmetric
from emulator.runtime.crypto.keys import CryptoKey, KeyPair
from emulator.runtime.crypto.params import (
    field,
    from_base64url,
    hash_named,
    library_hash,
)
from emulator.runtime.host import current
from emulator.runtime.js_text import display
from emulator.values import JsException

# By WebCrypto's names: the library's, and the size of a coordinate in bytes.
_CURVES: Final = {
    "P-256": ("SECP256R1", 32),
    "P-384": ("SECP384R1", 48),
    "P-521": ("SECP521R1", 66),
}
_NO_HASH: Final = (
    'Missing "hash" in AlgorithmIdentifier. (ECDSA requires that the hash algorithm be specified '
    "at call time rather than on the key. This differs from other WebCrypto algorithms for "
    "historical reasons.)"
)
_NO_POINT: Final = "Failed to import raw EC key data: Invalid point encoding.."


def curve_of(chosen: dict[str, Any]) -> str:
    """Return the curve that is asked for."""
    name = display(field(chosen, "namedCurve"))
    if name not in _CURVES:
        text = f'Unrecognized or unimplemented EC curve "{name}" requested.'
        raise JsException("NotSupportedError", text)
    return name


def _library_curve(name: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return getattr(ec, _CURVES[name][0])()


class _Elliptic(Asymmetric):
    key_type = "EC"
    has_raw = True
    comma: ClassVar[str] = ""  # in a text of the runtime's

    def describe(self, material: Any, chosen: dict[str, Any]) -> dict[str, Any]:
        return {"name": self.name, "namedCurve": curve_of(chosen)}

    def check(self, material: Any, chosen: dict[str, Any]) -> None:
        name = curve_of(chosen)
        curve = getattr(material, "curve", None)
        if curve is None or curve.name != _library_curve(name).name:
            text = (
                f'"algorithm.namedCurve" "{name}"{self.comma} does not match the curve specified '
                "by the input key data."
            )
            raise JsException("DataError", text)

    def generate(self, chosen: dict[str, Any], *, extractable: bool, usages: list[str]) -> KeyPair:
        from cryptography.hazmat.primitives.asymmetric import ec

        name = curve_of(chosen)
        private, public = self.pair_usages(usages)
        size = _CURVES[name][1]
        # 8 bytes more than needed, so that the remainder is even enough (FIPS 186-5, A.2.1).
        number = int.from_bytes(current().urandom(size + 8), "big") % ((1 << (size * 8 - 8)) - 1)
        material = ec.derive_private_key(number + 1, _library_curve(name))
        return self.pair(material, chosen, private, public, extractable=extractable)

    def from_raw(self, data: bytes, chosen: dict[str, Any]) -> Any:
        from cryptography.hazmat.primitives.asymmetric import ec

        curve = _library_curve(curve_of(chosen))
        try:
            return ec.EllipticCurvePublicKey.from_encoded_point(curve, data)
        except ValueError:
            raise JsException("DataError", _NO_POINT) from None

    def to_raw(self, key: CryptoKey) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        point: bytes = key.material.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return point

    def from_jwk(self, found: dict[str, Any], chosen: dict[str, Any]) -> Any:
        from cryptography.hazmat.primitives.asymmetric import ec

        curve = _library_curve(curve_of(chosen))
        x, y = from_base64url(found.get("x")), from_base64url(found.get("y"))
        if x is None or y is None:
            text = 'Invalid EC key in JSON Web Key; missing or invalid "x" or "y".'
            raise JsException("DataError", text)
        numbers = ec.EllipticCurvePublicNumbers(
            int.from_bytes(x, "big"), int.from_bytes(y, "big"), curve
        )
        try:
            if "d" not in found:
                return numbers.public_key()
            d = from_base64url(found["d"]) or b""
            return ec.EllipticCurvePrivateNumbers(int.from_bytes(d, "big"), numbers).private_key()
        except ValueError:
            raise JsException("DataError", "Invalid EC key in JSON Web Key.") from None

    def to_jwk(self, key: CryptoKey) -> dict[str, Any]:
        curve = key.algorithm["namedCurve"]
        size = _CURVES[curve][1]
        public = self.public_of(key.material).public_numbers()
        x, y = (number.to_bytes(size, "big") for number in (public.x, public.y))
        private = None
        if key.type == "private":
            private = key.material.private_numbers().private_value.to_bytes(size, "big")
        return jwk.exported(key, "EC", crv=curve, x=x, y=y, d=private)


class Ecdsa(_Elliptic):
    """ECDSA; signatures are the two numbers one after the other, and deterministic (RFC 6979)."""

    name = "ECDSA"
    private_usages, public_usages = ("sign",), ("verify",)

    def _hash(self, chosen: dict[str, Any]) -> Any:
        if "hash" not in chosen:
            raise JsException("TypeError", _NO_HASH)
        return library_hash(hash_named(chosen["hash"]))

    def sign(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        hash_ = self._hash(chosen)
        try:
            how = ec.ECDSA(hash_, deterministic_signing=True)
        except UnsupportedAlgorithm:  # an old OpenSSL
            how = ec.ECDSA(hash_)
        r, s = utils.decode_dss_signature(key.material.sign(data, how))
        size = _CURVES[key.algorithm["namedCurve"]][1]
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")

    def verify(self, chosen: dict[str, Any], key: CryptoKey, signature: bytes, data: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        hash_ = self._hash(chosen)
        size = _CURVES[key.algorithm["namedCurve"]][1]
        if len(signature) != 2 * size:
            return False
        r, s = (int.from_bytes(part, "big") for part in (signature[:size], signature[size:]))
        try:
            key.material.verify(utils.encode_dss_signature(r, s), data, ec.ECDSA(hash_))
        except InvalidSignature:
            return False
        return True


class _Agreement(Asymmetric):
    """What ECDH and X25519 have in common."""

    private_usages: ClassVar = ("deriveKey", "deriveBits")

    def derive(self, chosen: dict[str, Any], key: CryptoKey, length: int | None) -> bytes:
        other = field(chosen, "public", "derivedKeyParams")
        if not isinstance(other, CryptoKey):
            raise JsException("TypeError", 'Missing field "public" in "derivedKeyParams".')
        if other.type != "public":
            text = f'The provided key has type "{other.type}", not "public"'
            raise JsException("InvalidAccessError", text)
        if other.name != key.name:
            text = (
                f"Base {key.name} private key cannot be used to derive a key from a peer "
                f"{other.name} public key"
            )
            raise JsException("InvalidAccessError", text)
        secret = self.exchange(key, other)
        return _shortened(secret, length)

    def exchange(self, key: CryptoKey, other: CryptoKey) -> bytes:
        """Return the shared secret."""
        raise NotImplementedError


def _shortened(secret: bytes, length: int | None) -> bytes:
    if length is None:
        return secret
    most = len(secret) * 8
    if length > most:
        text = f"Derived key length ({length} bits) is too long (should be at most {most} bits)."
        raise JsException("OperationError", text)
    cut = bytearray(secret[: -(-length // 8)])
    if length % 8:
        cut[-1] &= 0xFF << (8 - length % 8) & 0xFF
    return bytes(cut)


class Ecdh(_Agreement, _Elliptic):
    """ECDH."""

    name = "ECDH"
    comma = ","

    def exchange(self, key: CryptoKey, other: CryptoKey) -> bytes:
        from cryptography.hazmat.primitives.asymmetric import ec

        own, peer = key.algorithm["namedCurve"], other.algorithm["namedCurve"]
        if own != peer:
            text = (
                f'Private key for derivation is using curve "{own}" while public key is using '
                f'"{peer}".'
            )
            raise JsException("InvalidAccessError", text)
        secret: bytes = key.material.exchange(ec.ECDH(), other.material)
        return secret


class _Edwards(Asymmetric):
    """Keys of 32 bytes."""

    key_type = "OKP"
    has_raw = True
    curve: ClassVar[str]
    alg: ClassVar[str | None] = None

    def _classes(self) -> tuple[Any, Any]:
        raise NotImplementedError

    def describe(self, material: Any, chosen: dict[str, Any]) -> dict[str, Any]:
        return {"name": self.name}

    def check(self, material: Any, chosen: dict[str, Any]) -> None:
        if not isinstance(material, self._classes()):
            text = f"The key that is imported is not one of {self.name}."
            raise JsException("DataError", text)

    def generate(self, chosen: dict[str, Any], *, extractable: bool, usages: list[str]) -> KeyPair:
        private, public = self.pair_usages(usages)
        material = self._classes()[0].from_private_bytes(current().urandom(32))
        return self.pair(material, chosen, private, public, extractable=extractable)

    def from_raw(self, data: bytes, chosen: dict[str, Any]) -> Any:
        try:
            return self._classes()[1].from_public_bytes(data)
        except ValueError:
            text = f"{self.name} raw keys must be exactly 32-bytes (provided {len(data)})."
            raise JsException("DataError", text) from None

    def to_raw(self, key: CryptoKey) -> bytes:
        raw: bytes = key.material.public_bytes_raw()
        return raw

    def from_jwk(self, found: dict[str, Any], chosen: dict[str, Any]) -> Any:
        private, public = self._classes()
        name = "d" if "d" in found else "x"
        raw = from_base64url(found.get(name))
        if found.get("crv") != self.curve or raw is None or len(raw) != 32:
            text = f'Invalid {self.name} key in JSON Web Key; "crv" or "{name}" is wrong.'
            raise JsException("DataError", text)
        return private.from_private_bytes(raw) if name == "d" else public.from_public_bytes(raw)

    def to_jwk(self, key: CryptoKey) -> dict[str, Any]:
        private = key.material.private_bytes_raw() if key.type == "private" else None
        x = self.public_of(key.material).public_bytes_raw()
        return jwk.exported(key, "OKP", alg=self.alg, crv=self.curve, x=x, d=private)


class Ed25519(_Edwards):
    """Ed25519."""

    name = curve = "Ed25519"
    alg: ClassVar[str | None] = "EdDSA"
    private_usages, public_usages = ("sign",), ("verify",)

    def _classes(self) -> tuple[Any, Any]:
        from cryptography.hazmat.primitives.asymmetric import ed25519

        return ed25519.Ed25519PrivateKey, ed25519.Ed25519PublicKey

    def sign(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        signature: bytes = key.material.sign(data)
        return signature

    def verify(self, chosen: dict[str, Any], key: CryptoKey, signature: bytes, data: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        if len(signature) != 64:
            text = f"Invalid {self.name} signature length {len(signature)}"
            raise JsException("OperationError", text)
        try:
            key.material.verify(signature, data)
        except InvalidSignature:
            return False
        return True


class NodeEd25519(Ed25519):
    """Ed25519 by its older name."""

    name = "NODE-ED25519"
    alg = None

    def describe(self, material: Any, chosen: dict[str, Any]) -> dict[str, Any]:
        return {"name": self.name, "namedCurve": self.name}


class X25519(_Agreement, _Edwards):
    """X25519."""

    name = curve = "X25519"

    def _classes(self) -> tuple[Any, Any]:
        from cryptography.hazmat.primitives.asymmetric import x25519

        return x25519.X25519PrivateKey, x25519.X25519PublicKey

    def exchange(self, key: CryptoKey, other: CryptoKey) -> bytes:
        secret: bytes = key.material.exchange(other.material)
        return secret
