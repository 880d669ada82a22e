"""JSON Web Keys: what their common members say, and symmetric ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.crypto.params import base64url, from_base64url
from emulator.runtime.js_text import display
from emulator.runtime.web import idl
from emulator.values import UNDEFINED, JsException

if TYPE_CHECKING:
    from emulator.runtime.crypto.keys import CryptoKey

_NO_JWK: Final = 'Import data provided for "jwk" import format must be a JsonWebKey.'


def members(data: Any) -> dict[str, Any]:
    """Return the members of a JSON Web Key."""
    if idl.buffer(data) is not None or isinstance(data, (str, int, float)) or data is None:
        raise JsException("TypeError", _NO_JWK)
    return idl.options(data)


def check(
    jwk: dict[str, Any], name: str, usages: list[str], *, kind: str, use: str, extractable: bool
) -> None:
    """Raise the runtime's errors where a key's `use`, `key_ops` or `ext` forbid what is asked."""
    given = jwk.get("use", UNDEFINED)
    if usages and given is not UNDEFINED and given != use:
        text = f'{kind} "jwk" key must have a "use" of "{use}", not "{display(given)}".'
        raise JsException("DataError", text)
    operations = jwk.get("key_ops", UNDEFINED)
    if isinstance(operations, list):
        for usage in usages:
            if usage not in operations:
                text = f'"jwk" key missing usage "{usage}", in "key_ops".'
                raise JsException("DataError", text)
    if jwk.get("ext", True) is False and extractable:
        text = f'JWK ext field for "{name}" is set to false but extractable is true'
        raise JsException("DataError", text)


def import_symmetric(
    data: Any, name: str, usages: list[str], *, use: str, extractable: bool
) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of a symmetric key, and its members."""
    jwk = members(data)
    kind = jwk.get("kty", UNDEFINED)
    if kind != "oct":
        text = (
            'Symmetric "jwk" key import requires a JSON Web Key with Key Type parameter "kty" '
            f'equal to "oct" (encountered "{display(kind)}").'
        )
        raise JsException("DataError", text)
    check(jwk, name, usages, kind="Symmetric", use=use, extractable=extractable)
    raw = from_base64url(jwk.get("k"))
    if raw is None:
        text = 'Symmetric "jwk" key import requires a base64Url encoding of the key.'
        raise JsException("DataError", text)
    return raw, jwk


def exported(key: CryptoKey, kind: str, **parts: Any) -> dict[str, Any]:
    """Return a key as a JSON Web Key; parts that are bytes are encoded, those of None left out."""
    written = {
        name: base64url(value) if isinstance(value, bytes) else value
        for name, value in parts.items()
        if value is not None
    }
    return {"kty": kind, "key_ops": list(key.usages), "ext": key.extractable, **written}
