"""Reading what user code passes to `crypto.subtle`: names, hashes, buffers, numbers."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from emulator.runtime.js_text import display
from emulator.runtime.web import idl
from emulator.runtime.web.python_text import hinted
from emulator.values import UNDEFINED, JsException, to_number

# By the names of WebCrypto: hashlib's name, and the size in bytes of a block.
HASHES: Final = {
    "SHA-1": ("sha1", 64),
    "SHA-256": ("sha256", 64),
    "SHA-384": ("sha384", 128),
    "SHA-512": ("sha512", 128),
    "MD5": ("md5", 64),
}
_BAD_HASH: Final = "Unrecognized or unimplemented digest algorithm requested."
_NULL: Final = (
    "Cannot initialize N7workerd3api12SubtleCrypto{}AlgorithmE with required members from an "
    "undefined or null value."
)


def error(name: str, text: str) -> JsException:
    """Return an error of the runtime's."""
    return JsException(name, text)


def settings(algorithm: Any) -> dict[str, Any]:
    """Return an algorithm as its members; a text is its name alone."""
    if algorithm is None:
        raise JsException("TypeError", _NULL.format("13Hash"))
    return {"name": algorithm} if isinstance(algorithm, str) else idl.options(algorithm)


def name_of(algorithm: Any) -> str:
    """Return the name that user code gave."""
    return display(settings(algorithm).get("name", UNDEFINED))


def field(chosen: dict[str, Any], name: str, of: str = "algorithm") -> Any:
    """Return a member; raises the runtime's `TypeError` where it is missing."""
    value = chosen.get(name, UNDEFINED)
    if value is UNDEFINED:
        raise JsException("TypeError", f'Missing field "{name}" in "{of}".')
    return value


def hash_named(algorithm: Any) -> str:
    """Return the name of a hash, as WebCrypto writes it."""
    name = name_of(algorithm).upper()
    if name not in HASHES:
        raise JsException("NotSupportedError", _BAD_HASH)
    return name


def hash_of(chosen: dict[str, Any]) -> str:
    """Return the hash that an algorithm has."""
    return hash_named(field(chosen, "hash"))


def library_hash(name: str) -> Any:
    """Return the hash as `cryptography` has it."""
    from cryptography.hazmat.primitives import hashes

    classes: dict[str, Any] = {
        "SHA-1": hashes.SHA1,
        "SHA-256": hashes.SHA256,
        "SHA-384": hashes.SHA384,
        "SHA-512": hashes.SHA512,
        "MD5": hashes.MD5,
    }
    return classes[name]()


def whole(value: Any) -> int:
    """Return a number cut towards zero."""
    number = to_number(value)
    return int(number) if number == number and abs(number) != float("inf") else 0


def octets(chosen: dict[str, Any], name: str) -> bytes:
    """Return a member that is a buffer."""
    value = field(chosen, name)
    data = idl.buffer(value)
    if data is None:
        raise hinted(idl.wrong_field(name, "Algorithm", "BufferSource"), value)
    return data


def base64url(data: bytes) -> str:
    """Return bytes as a JSON Web Key has them."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(value: Any) -> bytes | None:
    """Return the bytes of a member of a JSON Web Key; None for what is none."""
    if not isinstance(value, str):
        return None
    try:
        padded = value.encode("ascii") + b"=" * (-len(value) % 4)
        return base64.b64decode(padded.replace(b"-", b"+").replace(b"_", b"/"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
