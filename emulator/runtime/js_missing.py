"""What the built-in classes of production have and those here lack, so that an error can say so.

By class: what its prototype has, and what its constructor has. Loaded when something was not found.
"""

from __future__ import annotations

from typing import Any, Final

from emulator.runtime.js_basics import Constructor
from emulator.runtime.not_yet import not_yet

_PROTOTYPES: Final = {
    "Object": "isPrototypeOf",
    "ArrayBuffer": "resize transfer transferToFixedLength",
    "RegExp": "compile",
    "Function": "length",
}
_STATICS: Final = {
    "RegExp": "input lastMatch lastParen leftContext rightContext $_ $& $+ $` $' "
    "$1 $2 $3 $4 $5 $6 $7 $8 $9",
}
# Objects that are no class, by a member that tells them.
_JSON: Final = "rawJSON isRawJSON"


def absent(value: Any, class_name: str, name: str) -> AttributeError:
    """Return the error for a property that a value has not; it tells of those of production."""
    for owner in (class_name, "Object"):
        if name in _PROTOTYPES.get(owner, "").split():
            return _told(f"{owner}.prototype.{name}")
    if isinstance(value, Constructor) and name in _STATICS.get(value.name, "").split():
        return _told(f"js.{value.name}.{name}")
    if isinstance(value, dict) and name in _JSON.split():
        from emulator.runtime.js_json import JSON

        if value is JSON:
            return _told(f"js.JSON.{name}")
    return AttributeError(name)


def _told(name: str) -> AttributeError:
    error = not_yet(name, imported=False)
    assert isinstance(error, AttributeError)
    return error
