"""`CryptoKey`, and what every algorithm is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from emulator.values import HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Collection

# In the order in which a key lists them.
USAGES: Final = (
    *("encrypt", "decrypt", "sign", "verify"),
    *("deriveKey", "deriveBits", "wrapKey", "unwrapKey"),
)
_NO_USAGE: Final = "Secret/private CryptoKeys must have at least one usage."
_NO_PRIVATE_USAGE: Final = "Attempt to generate asymmetric keys with no valid private key usages."


class CryptoKey(HostObject):
    """A key; `material` is what the algorithm makes of it."""

    js_class = "CryptoKey"
    js_members = frozenset({"type", "extractable", "algorithm", "usages"})

    def __init__(
        self,
        kind: str,
        owner: Algorithm,
        algorithm: dict[str, Any],
        usages: list[str],
        *,
        extractable: bool,
        material: Any,
    ) -> None:
        self.type = kind
        self.owner = owner
        self.algorithm = algorithm
        self.usages = usages
        self.extractable = extractable
        self.material = material

    @classmethod
    def js_new(cls) -> CryptoKey:
        """Refuse `new CryptoKey()`."""
        raise JsException("TypeError", "Illegal constructor")

    @property
    def name(self) -> str:
        """The name of its algorithm."""
        return str(self.algorithm["name"])


KeyPair = dict[str, CryptoKey]


class Algorithm:
    """A cryptographic algorithm; methods that one lacks are refused by the checks before them."""

    name: ClassVar[str]
    secret_usages: ClassVar[tuple[str, ...]] = ()
    private_usages: ClassVar[tuple[str, ...]] = ()
    public_usages: ClassVar[tuple[str, ...]] = ()

    def import_key(
        self, form: str, data: Any, chosen: dict[str, Any], *, extractable: bool, usages: list[str]
    ) -> CryptoKey:
        """Return a key from its data; raises the runtime's errors."""
        raise unknown_form(form)

    def export_key(self, form: str, key: CryptoKey) -> Any:
        """Return the data of a key."""
        raise unknown_export(form)

    def generate(
        self, chosen: dict[str, Any], *, extractable: bool, usages: list[str]
    ) -> CryptoKey | KeyPair:
        """Return a new key, or a pair."""
        text = f'Unrecognized key generation algorithm "{self.name}" requested.'
        raise JsException("NotSupportedError", text)

    def encrypt(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        """Return the ciphertext."""
        raise self.refusal("encrypt")

    def decrypt(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        """Return the plaintext."""
        raise self.refusal("decrypt")

    def sign(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        """Return the signature."""
        raise self.refusal("sign")

    def verify(self, chosen: dict[str, Any], key: CryptoKey, signature: bytes, data: bytes) -> bool:
        """Return whether the signature is that of the data."""
        raise self.refusal("verify")

    def derive(self, chosen: dict[str, Any], key: CryptoKey, length: int | None) -> bytes:
        """Return so many bits."""
        raise self.refusal("deriveBits")

    def wrap(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        """Return another key's data, encrypted."""
        return self.encrypt(chosen, key, data)

    def unwrap(self, chosen: dict[str, Any], key: CryptoKey, data: bytes) -> bytes:
        """Return another key's data, decrypted."""
        return self.decrypt(chosen, key, data)

    def length_of(self, chosen: dict[str, Any]) -> int | None:
        """Return how many bits a derived key of this algorithm has; None for any number."""
        return None

    def refusal(self, operation: str) -> JsException:
        """Return the error of an operation that this algorithm does not have."""
        text = f'The {operation} operation is not implemented for "{self.name}".'
        return JsException("NotSupportedError", text)

    # -- usages ----------------------------------------------------------------------------------

    def imported_usages(self, kind: str, usages: list[str], allowed: Collection[str]) -> list[str]:
        """Return the usages of an imported key, in order; raises the runtime's `SyntaxError`."""
        for usage in usages:
            if usage not in allowed:
                text = f'Attempt to import {kind} {self.name} key with invalid usage "{usage}".'
                raise JsException("SyntaxError", text)
        if not usages and kind != "public":
            raise JsException("SyntaxError", _NO_USAGE)
        return ordered(usages)

    def generated_usages(self, usages: list[str], allowed: Collection[str]) -> list[str]:
        """Return the usages of a secret key that is made."""
        self._check_generated(usages, allowed)
        if not usages:
            raise JsException("SyntaxError", _NO_USAGE)
        return ordered(usages)

    def pair_usages(self, usages: list[str]) -> tuple[list[str], list[str]]:
        """Return the usages of the private and the public key of a pair that is made."""
        self._check_generated(usages, (*self.private_usages, *self.public_usages))
        private = [usage for usage in ordered(usages) if usage in self.private_usages]
        if not private:
            raise JsException("SyntaxError", _NO_PRIVATE_USAGE)
        return private, [usage for usage in ordered(usages) if usage in self.public_usages]

    def _check_generated(self, usages: list[str], allowed: Collection[str]) -> None:
        for usage in usages:
            if usage not in allowed:
                text = f'Attempt to generate {self.name} key with invalid usage "{usage}".'
                raise JsException("SyntaxError", text)


def ordered(usages: list[str]) -> list[str]:
    """Return usages once each, in the order of keys."""
    return [usage for usage in USAGES if usage in usages]


def unknown_form(form: str) -> JsException:
    """Return the error of an import format."""
    return JsException("NotSupportedError", f'Unrecognized key import format "{form}".')


def unknown_export(form: str) -> JsException:
    """Return the error of an export format."""
    return JsException("NotSupportedError", f'Unimplemented key export format "{form}".')
