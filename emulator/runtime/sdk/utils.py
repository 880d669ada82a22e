"""`workers.utils`: what user code takes from the SDK's inside."""

from __future__ import annotations

from typing import Any

from emulator.runtime.javascript import import_from_javascript, patch_env
from emulator.runtime.profile import flags
from emulator.runtime.sdk.headers import HTTPMessageMapping, to_js_headers
from emulator.runtime.sdk.js_values import class_name, null_to_none, wrap


def get_compat_flag(flag: str) -> bool:
    """Return whether a compatibility flag of the Worker is set."""
    return flag in flags()


def _to_js_headers(headers: Any) -> Any:
    return wrap(to_js_headers(headers))


def _is_js_instance(val: Any, js_cls_names: str | set[str]) -> bool:
    names = js_cls_names if isinstance(js_cls_names, set) else {js_cls_names}
    return class_name(val) in names


_jsnull_to_none = null_to_none
_get_js_constructor_name = class_name

__all__ = [
    "HTTPMessageMapping",
    "_get_js_constructor_name",
    "_is_js_instance",
    "_jsnull_to_none",
    "_to_js_headers",
    "get_compat_flag",
    "import_from_javascript",
    "patch_env",
]
