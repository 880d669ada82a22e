"""What is in KV namespaces: `/accounts/{account}/storage/kv/namespaces`.

Namespaces are those of the configs. Keys, values and limits are checked as those of a Worker are;
values are what a Worker reads at once, without the delay that the real service may have.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.responses import Response

from emulator.kv import rules
from emulator.kv.store import Entry
from emulator.runtime.web.blob import Blob
from emulator.runtime.web.multipart import read_form
from emulator.runtime.web.text import well_formed
from emulator.server.rest.answers import ApiError, Page, not_found
from emulator.server.rest.fields import Fields, body, invalid, paged, whole
from emulator.values import JsException, from_json, to_json

if TYPE_CHECKING:
    from emulator.kv.store import Namespace
    from emulator.server.rest.calls import Call, Operations

_NO_NAMESPACE: Final = ApiError(404, 10013, "namespace not found")
_NO_KEY: Final = ApiError(404, 10009, "get: 'key not found'")
_MOST_AT_ONCE: Final = 10_000
_SECOND: Final = 1_000_000
_LATEST: Final = 2**53
# Of errors whose code is not known.
_OTHER: Final = 10001
_FAILED: Final = re.compile(r"KV \w+ failed: (\d{3}) (.*)", re.DOTALL)


class _Named(NamedTuple):
    """A namespace: its id, its title, which is the first binding to it, and what is in it."""

    id: str
    title: str
    namespace: Namespace

    @property
    def shown(self) -> dict[str, Any]:
        """As the API shows it."""
        return {"id": self.id, "title": self.title, "supports_url_encoding": True}


def _all(call: Call) -> list[_Named]:
    titles = {
        one.id: one.binding
        for worker in reversed(call.platform.settings.workers)
        for one in reversed(worker.namespaces)
    }
    found = call.platform.kv.namespaces
    return [_Named(id, titles.get(id, id), namespace) for id, namespace in found.items()]


def _find(call: Call) -> _Named:
    wanted, known = call.path["namespace"], _all(call)
    for named in known:
        if named.id == wanted:
            return named
    raise not_found(_NO_NAMESPACE, "namespace", wanted, {one.title: one.id for one in known})


def _told(call: Call, named: _Named, what: str, **facts: Any) -> None:
    call.platform.kv.record(named.title, {"call": what, "by": "rest", **facts})


def _refusal(error: JsException) -> ApiError:
    failed = _FAILED.fullmatch(error.message)
    if failed is None:
        return ApiError(400, _OTHER, error.message)
    return ApiError(int(failed[1]), _OTHER, failed[2])


def list_namespaces(call: Call) -> Page:
    """Return the namespaces."""
    return paged([named.shown for named in _all(call)], call.query, per_page=20)


def get_namespace(call: Call) -> Any:
    """Return a namespace."""
    return _find(call).shown


# -- keys ----------------------------------------------------------------------------------------


def list_keys(call: Call) -> Page:
    """Return keys in order, with a cursor where there are more."""
    named, query = _find(call), call.query
    limit = whole(query, "limit", rules.MOST_KEYS, rules.MOST_KEYS)
    try:
        rules.check_length("GET", query.get("prefix", ""))
        after = rules.key_of(query["cursor"], strict=True) if query.get("cursor") else ""
    except JsException as error:
        raise _refusal(error) from None
    found = named.namespace.page(query.get("prefix", ""), limit, after, call.now)
    _told(call, named, "list", prefix=query.get("prefix", ""))
    keys = []
    for name, expiration, metadata in found.rows:
        shown: dict[str, Any] = {"name": name}
        if expiration is not None:
            shown["expiration"] = expiration
        if metadata is not None:
            shown["metadata"] = json.loads(metadata)
        keys.append(shown)
    cursor = rules.cursor(found.rows[-1].name) if found.more else ""
    return Page(keys, {"count": len(keys), "cursor": cursor})


def _key(call: Call) -> tuple[_Named, str]:
    """The namespace and the key in the path; raises `ApiError`."""
    named, key = _find(call), call.path["key"]
    try:
        rules.check_key("PUT", key)
    except JsException as error:
        raise _refusal(error) from None
    return named, key


def _entry(call: Call, what: str) -> Entry:
    named, key = _key(call)
    entry = named.namespace.get(key, call.now)
    _told(call, named, what, key=key)
    if entry is None:
        raise _NO_KEY
    return entry


def get_value(call: Call) -> Response:
    """Return a value as it is."""
    entry = _entry(call, "get")
    headers = {} if entry.expiration is None else {"expiration": str(entry.expiration)}
    return Response(entry.value, media_type="application/octet-stream", headers=headers)


def get_metadata(call: Call) -> Any:
    """Return the metadata of a key, null if it has none."""
    metadata = _entry(call, "getWithMetadata").metadata
    return None if metadata is None else json.loads(metadata)


def put_value(call: Call) -> Any:
    """Store a value: the body, or the part `value` of a form that may have `metadata` too."""
    named, key = _key(call)
    value, metadata = _form(call)
    at, ttl = (_seconds(call, name) for name in ("expiration", "expiration_ttl"))
    _put(call, named, key, value, metadata, at, ttl)
    return {}


def _seconds(call: Call, name: str) -> int | None:
    return whole(call.query, name, 0, _LATEST) if name in call.query else None


def _form(call: Call) -> tuple[bytes, str | None]:
    kind = call.headers.get("content-type", "")
    if not kind.lower().startswith("multipart/form-data"):
        return call.body, None
    try:
        form = read_form(call.body, kind)
        value, metadata = form.get("value"), form.get("metadata")
        if value is None:
            raise invalid('Required at "value"')
        kept = bytes(value.data) if isinstance(value, Blob) else value.encode()
        if isinstance(metadata, Blob):
            metadata = bytes(metadata.data).decode()
        return kept, None if metadata is None else to_json(from_json(metadata))
    except (JsException, UnicodeDecodeError) as error:
        raise ApiError(400, _OTHER, str(getattr(error, "message", error))) from None


def _put(
    call: Call,
    named: _Named,
    key: str,
    value: bytes,
    metadata: str | None,
    at: int | None,
    ttl: int | None,
) -> None:
    try:
        rules.check_value(value)
        rules.check_metadata(metadata)
        expiration = rules.expiration(at, ttl, call.now // _SECOND)
    except JsException as error:
        raise _refusal(error) from None
    call.platform.kv.put(named.namespace, key, Entry(value, expiration, metadata))
    _told(call, named, "put", key=key)


def delete_value(call: Call) -> Any:
    """Delete a key, whether it is there or not."""
    named, key = _key(call)
    _delete(call, named, key)
    return {}


def _delete(call: Call, named: _Named, key: str) -> None:
    call.platform.kv.delete(named.namespace, key)
    _told(call, named, "delete", key=key)


# -- several at once -----------------------------------------------------------------------------


class _Pair(NamedTuple):
    """A pair to be stored, checked as far as can be without storing it."""

    key: str
    value: bytes
    metadata: str | None
    at: int | None
    ttl: int | None


def put_values(call: Call) -> Any:
    """Store up to 10,000 pairs, all or none."""
    named, given = _find(call), _list(call)
    pairs = [_pair(call, Fields(item, str(place))) for place, item in enumerate(given)]
    for pair in pairs:
        _put(call, named, *pair)
    return {"successful_key_count": len(pairs), "unsuccessful_keys": []}


def _pair(call: Call, given: Fields) -> _Pair:
    key, value = given.text("key", required=True) or "", given.text("value", required=True) or ""
    at, ttl = (given.number(name, 0, _LATEST) for name in ("expiration", "expiration_ttl"))
    metadata = given.values.get("metadata")
    told = None if metadata is None else to_json(metadata)
    try:
        data = b64decode(value, validate=True) if given.boolean("base64") else value.encode()
        rules.check_key("PUT", key)
        rules.check_value(data)
        rules.check_metadata(told)
        rules.expiration(at, ttl, call.now // _SECOND)
    except JsException as error:
        raise _refusal(error) from None
    except ValueError:
        raise invalid(f'Invalid base64 at "{given.path("value")}"') from None
    return _Pair(key, data, told, at, ttl)


def delete_values(call: Call) -> Any:
    """Delete up to 10,000 keys."""
    named, keys = _find(call), _texts(_list(call))
    for key in keys:
        _delete(call, named, key)
    return {"successful_key_count": len(keys), "unsuccessful_keys": []}


def get_values(call: Call) -> Any:
    """Return the values of up to 100 keys; those that are not there are null."""
    named, given = _find(call), body(call)
    keys, kind = _texts(given.values.get("keys")), given.text("type") or "text"
    whole_entries = bool(given.boolean("withMetadata"))
    try:
        rules.check_keys(keys, kind)
        entries = {key: named.namespace.get(key, call.now) for key in keys}
        rules.check_size([entry.value for entry in entries.values() if entry is not None])
    except JsException as error:
        raise _refusal(error) from None
    _told(call, named, "get", keys=keys)
    shown = {key: _shown(entry, kind, whole=whole_entries) for key, entry in entries.items()}
    return {"values": shown}


def _shown(entry: Entry | None, kind: str, *, whole: bool) -> Any:
    if entry is None:
        return None
    text = entry.value.decode("utf-8", "replace")
    try:
        value = json.loads(text) if kind == "json" else text
    except ValueError:
        raise ApiError(400, _OTHER, "At least one of the requested keys is not JSON") from None
    if not whole:
        return value
    metadata = None if entry.metadata is None else json.loads(entry.metadata)
    shown = {"value": value, "metadata": metadata}
    return shown if entry.expiration is None else {**shown, "expiration": entry.expiration}


def _list(call: Call) -> list[Any]:
    given = call.json()
    if not isinstance(given, list):
        raise invalid("Expected array, received object")
    if len(given) > _MOST_AT_ONCE:
        raise invalid(f"Array must contain at most {_MOST_AT_ONCE} element(s)")
    return given


def _texts(given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        raise invalid("Expected array of strings")
    return [well_formed(item) for item in given]


_ALL = "/storage/kv/namespaces"
_ONE = f"{_ALL}/{{namespace}}"
OPERATIONS: Operations = (
    ("GET", _ALL, list_namespaces),
    ("GET", _ONE, get_namespace),
    ("GET", f"{_ONE}/keys", list_keys),
    ("PUT", f"{_ONE}/bulk", put_values),
    ("DELETE", f"{_ONE}/bulk", delete_values),
    ("POST", f"{_ONE}/bulk/delete", delete_values),
    ("POST", f"{_ONE}/bulk/get", get_values),
    ("GET", f"{_ONE}/values/{{key:path}}", get_value),
    ("PUT", f"{_ONE}/values/{{key:path}}", put_value),
    ("DELETE", f"{_ONE}/values/{{key:path}}", delete_value),
    ("GET", f"{_ONE}/metadata/{{key:path}}", get_metadata),
)
