"""What all algorithms with a public and a private key have in common: their keys' formats."""

from __future__ import annotations

from typing import Any, ClassVar

from emulator.runtime.crypto import jwk
from emulator.runtime.crypto.keys import (
    Algorithm,
    CryptoKey,
    KeyPair,
    unknown_export,
    unknown_form,
)
from emulator.runtime.js_text import display
from emulator.values import UNDEFINED, ArrayBuffer, JsException


class Asymmetric(Algorithm):
    """An algorithm with pairs of keys; `material` is the library's key."""

    key_type: ClassVar[str]  # of a JSON Web Key
    jwk_use: ClassVar[str] = "sig"
    has_raw: ClassVar[bool] = False

    def describe(self, material: Any, chosen: dict[str, Any]) -> dict[str, Any]:
        """Return the `algorithm` of a key."""
        raise NotImplementedError

    def check(self, material: Any, chosen: dict[str, Any]) -> None:
        """Raise the runtime's error for a key of another kind."""
        raise NotImplementedError

    def from_jwk(self, found: dict[str, Any], chosen: dict[str, Any]) -> Any:
        """Return the library's key for a JSON Web Key."""
        raise NotImplementedError

    def to_jwk(self, key: CryptoKey) -> dict[str, Any]:
        """Return a JSON Web Key."""
        raise NotImplementedError

    def from_raw(self, data: bytes, chosen: dict[str, Any]) -> Any:
        """Return the library's public key for raw bytes."""
        raise NotImplementedError

    def to_raw(self, key: CryptoKey) -> bytes:
        """Return a public key as raw bytes."""
        raise NotImplementedError

    # -- making ----------------------------------------------------------------------------------

    def pair(
        self,
        material: Any,
        chosen: dict[str, Any],
        private: list[str],
        public: list[str],
        *,
        extractable: bool,
    ) -> KeyPair:
        """Return a pair of keys; the public one may always be exported."""
        described = self.describe(material, chosen)
        return {
            "publicKey": CryptoKey(
                *("public", self, dict(described), public),
                extractable=True,
                material=self.public_of(material),
            ),
            "privateKey": CryptoKey(
                *("private", self, described, private),
                extractable=extractable,
                material=material,
            ),
        }

    @staticmethod
    def public_of(material: Any) -> Any:
        """Return the public key of a private one, or the same."""
        return material.public_key() if hasattr(material, "public_key") else material

    def import_key(
        self, form: str, data: Any, chosen: dict[str, Any], *, extractable: bool, usages: list[str]
    ) -> CryptoKey:
        if form not in ("spki", "pkcs8", "jwk") and not (form == "raw" and self.has_raw):
            raise unknown_form(form)
        material = self._read(form, data, chosen, usages, extractable=extractable)
        self.check(material, chosen)
        kind = "private" if hasattr(material, "public_key") else "public"
        allowed = self.private_usages if kind == "private" else self.public_usages
        used = self.imported_usages(kind, usages, allowed)
        described = self.describe(material, chosen)
        return CryptoKey(kind, self, described, used, extractable=extractable, material=material)

    def _read(
        self, form: str, data: Any, chosen: dict[str, Any], usages: list[str], *, extractable: bool
    ) -> Any:
        if form == "jwk":
            found = jwk.members(data)
            self._check_type(found)
            jwk.check(
                *(found, self.name, usages),
                kind="Asymmetric",
                use=self.jwk_use,
                extractable=extractable,
            )
            return self.from_jwk(found, chosen)
        if form == "raw":
            return self.from_raw(data, chosen)
        from cryptography.hazmat.primitives import serialization

        try:
            if form == "spki":
                return serialization.load_der_public_key(data)
            return serialization.load_der_private_key(data, None)
        except Exception:
            raise JsException("DataError", f"Invalid {form.upper()} input.") from None

    def _check_type(self, found: dict[str, Any]) -> None:
        kind = found.get("kty", UNDEFINED)
        if kind != self.key_type:
            text = (
                f'{self.name} "jwk" key import requires a JSON Web Key with Key Type parameter '
                f'"kty" ("{display(kind)}") equal to "{self.key_type}".'
            )
            raise JsException("DataError", text)

    def export_key(self, form: str, key: CryptoKey) -> Any:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            PublicFormat,
        )

        if form == "jwk":
            return self.to_jwk(key)
        if form == "raw":
            return ArrayBuffer(self._raw(key))
        if form == "spki":
            if key.type != "public":
                text = f'Asymmetric spki export requires public key (not "{key.type}").'
                raise JsException("InvalidAccessError", text)
            spki = PublicFormat.SubjectPublicKeyInfo
            return ArrayBuffer(key.material.public_bytes(Encoding.DER, spki))
        if form == "pkcs8":
            if key.type != "private":
                text = f'Asymmetric pkcs8 export requires private key (not "{key.type}").'
                raise JsException("InvalidAccessError", text)
            how = (Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
            return ArrayBuffer(key.material.private_bytes(*how))
        raise unknown_export(form)

    def _raw(self, key: CryptoKey) -> bytes:
        if not self.has_raw:
            text = f'Cannot export "{self.name}" in "raw" format.'
            raise JsException("InvalidAccessError", text)
        if key.type != "public":
            of = "elliptic curve" if self.key_type == "EC" else self.name
            text = f"Raw export of {of} keys is only allowed for public keys."
            raise JsException("InvalidAccessError", text)
        return self.to_raw(key)
