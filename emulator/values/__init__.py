"""Values that may cross a boundary of the platform, in one canonical form.

Canonical values are plain Python: `None` is JavaScript's null, `UNDEFINED` is undefined, `int` and
`float` are numbers, `str`, `bool`, `list` (Array), `dict` with `str` keys (plain Object), `bytes`
(Uint8Array), `datetime` (Date, aware, millisecond precision), `set` (Set), `JsException` (Error)
and the few classes of `types.py`. Events, bindings and stores speak in these; only `runtime/` turns
them into what user code sees.
"""

from emulator.values.bodies import CONTENT_TYPES, body_size, decode_body, encode_body
from emulator.values.buffers import VIEW_KINDS, ArrayBuffer, TypedArray
from emulator.values.clone import from_v8, to_v8
from emulator.values.clone_writer import clone_error
from emulator.values.containers import JsMap, JsSet, LiteralMap
from emulator.values.dates import JsDate, from_milliseconds, iso_format, settled, to_milliseconds
from emulator.values.json import from_json, stringify, to_json
from emulator.values.json_losses import Loss, describe_losses, losses
from emulator.values.kinds import class_of, property_names, type_of
from emulator.values.numbers import format_number, js_int32, plain_number, to_number
from emulator.values.types import (
    SAFE,
    UNDEFINED,
    BigInt,
    Boxed,
    Function,
    HostObject,
    JsException,
    Opaque,
    ProxiedDict,
    ProxiedList,
    RegExp,
    Symbol,
    Undefined,
)

__all__ = [
    "CONTENT_TYPES",
    "SAFE",
    "UNDEFINED",
    "VIEW_KINDS",
    "ArrayBuffer",
    "BigInt",
    "Boxed",
    "Function",
    "HostObject",
    "JsDate",
    "JsException",
    "JsMap",
    "JsSet",
    "LiteralMap",
    "Loss",
    "Opaque",
    "ProxiedDict",
    "ProxiedList",
    "RegExp",
    "Symbol",
    "TypedArray",
    "Undefined",
    "body_size",
    "class_of",
    "clone_error",
    "decode_body",
    "describe_losses",
    "encode_body",
    "format_number",
    "from_json",
    "from_milliseconds",
    "from_v8",
    "iso_format",
    "js_int32",
    "losses",
    "plain_number",
    "property_names",
    "settled",
    "stringify",
    "to_json",
    "to_milliseconds",
    "to_number",
    "to_v8",
    "type_of",
]
