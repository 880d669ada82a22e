"""RSASSA-PKCS1-v1_5, RSA-PSS and RSA-OAEP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from emulator.runtime.crypto import jwk
from emulator.runtime.crypto.asymmetric import Asymmetric
from emulator.runtime.crypto.params import (
    base64url,
    field,
    from_base64url,
    hash_of,
    library_hash,
    octets,
    whole,
)
from emulator.runtime.crypto.primes import key_numbers
from emulator.runtime.host import current
from emulator.values import JsException

if TYPE_CHECKING:
    from emulator.runtime.crypto.keys import CryptoKey, KeyPair

_NO_SALT: Final = "Failed to provide salt for RSA-PSS key operation which requires a salt"
_OAEP: Final = "RSA-OAEP failed encrypt/decrypt."
_PRIVATE: Final = ("d", "p", "q", "dp", "dq", "qi")


class _Rsa(Asymmetric):
    key_type = "RSA"
    alg: ClassVar[dict[str, str]]  # of a JSON Web Key, by hash

    def describe(self, material: Any, chosen: dict[str, Any]) -> dict[str, Any]:
        public = self.public_of(material)
        exponent = public.public_numbers().e
        return {
            "name": self.name,
            "modulusLength": public.key_size,
            "publicExponent": exponent.to_bytes(-(-exponent.bit_length() // 8), "big"),
            "hash": {"name": hash_of(chosen)},
        }

    def check(self, material: Any, chosen: dict[str, Any]) -> None:
        from cryptography.hazmat.primitives.asymmetric import rsa

        if not isinstance(material, (rsa.RSAPrivateKey, rsa.RSAPublicKey)):
            raise JsException("DataError", "Input was not an RSA key.")

    def generate(self, chosen: dict[str, Any], *, extractable: bool, usages: list[str]) -> KeyPair:
        from cryptography.hazmat.primitives.asymmetric import rsa

        private, public = self.pair_usages(usages)
        hash_of(chosen)
        bits = whole(field(chosen, "modulusLength"))
        exponent = int.from_bytes(octets(chosen, "publicExponent"), "big")
        if bits % 8 or not 256 <= bits <= 16_384:
            text = (
                "The modulus length must be a multiple of 8 and between 256 and 16k, but "
                f"{bits} was requested."
            )
            raise JsException("OperationError", text)
        if exponent not in (3, 65_537):
            text = f'The "publicExponent" must be either 3 or 65537, but got {exponent}.'
            raise JsException("OperationError", text)
        p, q, d = key_numbers(bits, exponent, current().urandom)
        numbers = rsa.RSAPrivateNumbers(
            p=p,
            q=q,
            d=d,
            dmp1=rsa.rsa_crt_dmp1(d, p),
            dmq1=rsa.rsa_crt_dmq1(d, q),
            iqmp=rsa.rsa_crt_iqmp(p, q),
            public_numbers=rsa.RSAPublicNumbers(exponent, p * q),
        )
        material = numbers.private_key(unsafe_skip_rsa_key_validation=True)
        return self.pair(material, chosen, private, public, extractable=extractable)

    def from_jwk(self, found: dict[str, Any], chosen: dict[str, Any]) -> Any:
        from cryptography.hazmat.primitives.asymmetric import rsa

        expected = self.alg[hash_of(chosen)]
        if found.get("alg", expected) != expected:
            text = (
                f'JSON Web Key Algorithm parameter "alg" ("{found["alg"]}") does not match '
                f'requested hash algorithm "{hash_of(chosen)}".'
            )
            raise JsException("DataError", text)
        public = rsa.RSAPublicNumbers(_number(found, "e"), _number(found, "n"))
        if "d" not in found:
            return public.public_key()
        d, p, q, dp, dq, qi = (_number(found, name) for name in _PRIVATE)
        return rsa.RSAPrivateNumbers(p, q, d, dp, dq, qi, public).private_key()

    def to_jwk(self, key: CryptoKey) -> dict[str, Any]:
        alg = self.alg[key.algorithm["hash"]["name"]]
        public = self.public_of(key.material).public_numbers()
        parts = {"n": _octets(public.n), "e": _octets(public.e)}
        if key.type == "private":
            numbers = key.material.private_numbers()
            values = (numbers.d, numbers.p, numbers.q, numbers.dmp1, numbers.dmq1, numbers.iqmp)
            parts.update(zip(_PRIVATE, map(_octets, values), strict=True))
        return jwk.exported(key, "RSA", alg=alg, **parts)


def _number(found: dict[str, Any], name: str) -> int:
    raw = from_base64url(found.get(name))
    if raw is None:
        raise JsException("DataError", f'Invalid RSA key in JSON Web Key; missing "{name}".')
    return int.from_bytes(raw, "big")


def _octets(number: int) -> str:
    return base64url(number.to_bytes(-(-number.bit_length() // 8), "big"))


class _Signing(_Rsa):
    private_usages, public_usages = ("sign",), ("verify",)

    def padding(self, chosen: dict[str, Any], key: CryptoKey) -> Any:
        raise NotImplementedError

    def sign(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        signature: bytes = key.material.sign(data, self.padding(chosen, key), _hash(key))
        return signature

    def verify(self, chosen: dict[str, Any], key: CryptoKey, signature: bytes, data: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            key.material.verify(signature, data, self.padding(chosen, key), _hash(key))
        except InvalidSignature:
            return False
        return True


def _hash(key: CryptoKey) -> Any:
    return library_hash(key.algorithm["hash"]["name"])


class RsaPkcs1(_Signing):
    """RSASSA-PKCS1-v1_5."""

    name = "RSASSA-PKCS1-v1_5"
    alg: ClassVar = {"SHA-1": "RS1", "SHA-256": "RS256", "SHA-384": "RS384", "SHA-512": "RS512"}

    def padding(self, chosen: dict[str, Any], key: CryptoKey) -> Any:
        from cryptography.hazmat.primitives.asymmetric import padding

        return padding.PKCS1v15()


class RsaPss(_Signing):
    """RSA-PSS."""

    name = "RSA-PSS"
    alg: ClassVar = {"SHA-1": "PS1", "SHA-256": "PS256", "SHA-384": "PS384", "SHA-512": "PS512"}

    def padding(self, chosen: dict[str, Any], key: CryptoKey) -> Any:
        from cryptography.hazmat.primitives.asymmetric import padding

        if "saltLength" not in chosen:
            raise JsException("DataError", _NO_SALT)
        return padding.PSS(padding.MGF1(_hash(key)), whole(chosen["saltLength"]))


class RsaOaep(_Rsa):
    """RSA-OAEP."""

    name = "RSA-OAEP"
    private_usages = ("decrypt", "unwrapKey")
    public_usages = ("encrypt", "wrapKey")
    jwk_use = "enc"
    alg: ClassVar = {
        "SHA-1": "RSA-OAEP",
        "SHA-256": "RSA-OAEP-256",
        "SHA-384": "RSA-OAEP-384",
        "SHA-512": "RSA-OAEP-512",
    }

    def _padding(self, chosen: dict[str, Any], key: CryptoKey) -> Any:
        from cryptography.hazmat.primitives.asymmetric import padding

        label = octets(chosen, "label") if "label" in chosen else None
        return padding.OAEP(padding.MGF1(_hash(key)), _hash(key), label)

    def encrypt(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        try:
            text: bytes = key.material.encrypt(data, self._padding(chosen, key))
        except ValueError:
            raise JsException("OperationError", _OAEP) from None
        return text

    def decrypt(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        try:
            text: bytes = key.material.decrypt(data, self._padding(chosen, key))
        except ValueError:
            raise JsException("OperationError", _OAEP) from None
        return text
