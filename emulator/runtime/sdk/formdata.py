"""`workers.FormData`."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from emulator.runtime.js_text import display
from emulator.runtime.proxies import JsProxy
from emulator.runtime.pyproxy import PyProxy, unwrap
from emulator.runtime.sdk.blob import Blob, File
from emulator.runtime.sdk.js_values import behind, wrap
from emulator.runtime.web import blob as web_blob
from emulator.runtime.web import formdata as web
from emulator.values import UNDEFINED

FormDataValue = "str | js.Blob | Blob"


class FormData(MutableMapping[str, Any]):
    """Names with texts and files; a name may come more than once."""

    _web: web.FormData

    def __init__(self, form_data: Any = None) -> None:
        """Make a form, empty or from a dict, or stand for a `js.FormData`."""
        if isinstance(form_data, web.FormData):
            self._web = form_data
            return
        self._web = web.FormData()
        if not form_data:
            return
        if isinstance(form_data, dict):
            for name, value in form_data.items():
                self._web.append(behind(name), _to_js(value))
            return
        found = behind(form_data) if isinstance(form_data, JsProxy) else None
        if not isinstance(found, web.FormData):
            raise TypeError("Expected form_data to be a dict or an instance of FormData")
        self._web = found

    def __getitem__(self, key: str) -> Any:
        """Return the first value of a name, null if there is none."""
        return _to_python(self._web.get(behind(key)))

    def __setitem__(self, key: str, value: Any) -> None:
        """Give a name one value instead of those it has."""
        if isinstance(value, list):
            raise TypeError("Expected single item in arguments to FormData.__setitem__")
        self._web.set(behind(key), _to_js(value))

    def append(self, key: str, value: Any, filename: str | None = None) -> None:
        """Add a value to a name."""
        name = UNDEFINED if filename is None else behind(filename)
        self._web.append(behind(key), _to_js(value), name)

    def delete(self, key: str) -> None:
        """Remove the values of a name."""
        self._web.delete(behind(key))

    def __contains__(self, key: object) -> bool:
        return self._web.has(behind(key))

    def values(self) -> Iterator[Any]:  # type: ignore[override]
        """Return the values in order."""
        for _, value in self._web.pairs:
            yield _to_python(value)

    def keys(self) -> Iterator[str]:  # type: ignore[override]
        """Return the names in order, each as often as it has values."""
        for key, _ in self._web.pairs:
            yield key

    def __iter__(self) -> Iterator[str]:
        yield from self.keys()

    def items(self) -> Iterator[tuple[str, Any]]:  # type: ignore[override]
        """Return names and values in order."""
        for key, value in self._web.pairs:
            yield key, _to_python(value)

    def __delitem__(self, key: str) -> None:
        self.delete(key)

    def __len__(self) -> int:
        # Upstream counts an iterator, which fails; code that relies on it fails there too.
        return len(self.keys())  # type: ignore[arg-type]

    def get_all(self, key: str) -> list[Any]:
        """Return every value of a name."""
        return [_to_python(value) for value in self._web.getAll(behind(key))]

    @property
    def js_object(self) -> Any:
        """Return the `js.FormData`."""
        return wrap(self._web)


def _to_js(value: Any) -> Any:
    if isinstance(value, Blob):
        return value._web
    if isinstance(value, JsProxy):
        return behind(value)
    held = unwrap(value)
    return display(held) if isinstance(held, PyProxy) else held


def _to_python(value: Any) -> Any:
    if isinstance(value, web_blob.File):
        return File(wrap(value), value.name)
    return wrap(value)


FormData.__module__ = "workers.formdata"
