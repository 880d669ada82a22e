"""The keys of a wrangler config, their types, and the names their bindings take on `env`.

They are those of wrangler 4.164 (November 2026), from its `config-schema.json` and, for what an
environment inherits, its validation. A key that is none of these is probably misspelt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from emulator.section import Section, is_list, is_table

_Kind = Callable[[Section, str], object]


def _text(section: Section, key: str) -> None:
    # wrangler's own templates have empty texts, as in `"account_id": ""`.
    if key in section and not isinstance(section.values[key], str):
        section.not_allowed(key, "a text")


def _boolean(section: Section, key: str) -> None:
    section.boolean(key, default=False)


def _list(section: Section, key: str) -> None:
    if key in section and not is_list(section.values[key]):
        section.not_allowed(key, "a list")


def _any(section: Section, key: str) -> None:
    """Of several types, or checked where the emulator reads it."""


_texts: Final = Section.texts
_table: Final = Section.section
_tables: Final = Section.sections

INHERITED: Final[Mapping[str, _Kind]] = {
    "name": _any,
    "main": _any,
    "compatibility_date": _any,
    "compatibility_flags": _any,
    "triggers": _any,
    "limits": _any,
    "account_id": _text,
    "find_additional_modules": _boolean,
    "preserve_file_names": _boolean,
    "base_dir": _text,
    "workers_dev": _boolean,
    "preview_urls": _boolean,
    "routes": _list,
    "route": _any,
    "tsconfig": _text,
    "jsx_factory": _text,
    "jsx_fragment": _text,
    "migrations": _tables,
    "exports": _table,
    "rules": _tables,
    "build": _table,
    "no_bundle": _boolean,
    "minify": _boolean,
    "keep_names": _boolean,
    "first_party_worker": _boolean,
    "logfwdr": _table,
    "logpush": _boolean,
    "upload_source_maps": _boolean,
    "placement": _table,
    "assets": _table,
    "observability": _table,
    "access": _table,
    "cache": _table,
    "compliance_region": _text,
    "python_modules": _table,
    "previews": _table,
}

NOT_INHERITED: Final[Mapping[str, _Kind]] = {
    "vars": _any,
    "secrets": _any,
    "queues": _any,
    "services": _any,
    "durable_objects": _table,
    "workflows": _tables,
    "kv_namespaces": _tables,
    "d1_databases": _tables,
    "r2_buckets": _tables,
    "send_email": _tables,
    "vectorize": _tables,
    "ai_search_namespaces": _tables,
    "ai_search": _tables,
    "websearch": _table,
    "agent_memory": _tables,
    "hyperdrive": _tables,
    "analytics_engine_datasets": _tables,
    "browser": _table,
    "analytics": _table,
    "ai": _table,
    "images": _table,
    "media": _table,
    "stream": _table,
    "version_metadata": _table,
    "unsafe": _table,
    "mtls_certificates": _tables,
    "dispatch_namespaces": _tables,
    "pipelines": _tables,
    "k2": _tables,
    "secrets_store_secrets": _tables,
    "artifacts": _tables,
    "unsafe_hello_world": _tables,
    "flagship": _tables,
    "ratelimits": _tables,
    "worker_loaders": _tables,
    "vpc_services": _tables,
    "vpc_networks": _tables,
    "define": _table,
    "cloudchamber": _table,
    "containers": _tables,
    "connect": _list,
    "tail_consumers": _tables,
    "streaming_tail_consumers": _tables,
}

_TOP_LEVEL_ONLY: Final[Mapping[str, _Kind]] = {
    "$schema": _text,
    "env": _table,
    "pages_build_output_dir": _text,
    "send_metrics": _boolean,
    "dependencies_instrumentation": _table,
    "dev": _table,
    "site": _table,
    "wasm_modules": _table,
    "text_blobs": _table,
    "data_blobs": _table,
    "alias": _table,
    "keep_vars": _boolean,
    "addresses": _texts,
    # Of earlier versions of wrangler, still to be found in projects.
    "legacy_env": _boolean,
    "node_compat": _boolean,
    "usage_model": _text,
    "zone_id": _text,
    "type": _text,
}

ENVIRONMENT_KEYS: Final[Mapping[str, _Kind]] = {**INHERITED, **NOT_INHERITED}
TOP_LEVEL_KEYS: Final[Mapping[str, _Kind]] = {**ENVIRONMENT_KEYS, **_TOP_LEVEL_ONLY}

# Sections that are not read here but kept as they are written, for whoever provides them.
KEPT_AS_WRITTEN: Final = tuple(
    key
    for key in (*NOT_INHERITED, "routes", "route")
    if key
    not in (
        *("vars", "secrets", "queues", "services", "workflows", "durable_objects"),
        *("d1_databases", "kv_namespaces", "r2_buckets", "define"),
        *("ratelimits", "analytics_engine_datasets", "send_email", "version_metadata"),
    )
)

# What wrangler calls a binding, in its text for a name that is taken twice.
BINDING_TYPES: Final[Mapping[str, str]] = {
    "data_blobs": "Data Blob",
    "durable_objects": "Durable Object",
    "kv_namespaces": "KV Namespace",
    "send_email": "Send Email",
    "queues": "Queue",
    "d1_databases": "D1 Database",
    "vectorize": "Vectorize Index",
    "ai_search_namespaces": "AI Search Namespace",
    "ai_search": "AI Search Instance",
    "websearch": "Web Search",
    "agent_memory": "Agent Memory",
    "hyperdrive": "Hyperdrive Config",
    "r2_buckets": "R2 Bucket",
    "logfwdr": "logfwdr",
    "services": "Worker",
    "analytics_engine_datasets": "Analytics Engine Dataset",
    "text_blobs": "Text Blob",
    "browser": "Browser Run",
    "analytics": "Analytics SQL",
    "ai": "AI",
    "images": "Images",
    "stream": "Stream",
    "media": "Media",
    "version_metadata": "Worker Version Metadata",
    "unsafe": "Unsafe Metadata",
    "vars": "Environment Variable",
    "wasm_modules": "Wasm Module",
    "dispatch_namespaces": "Dispatch Namespace",
    "mtls_certificates": "mTLS Certificate",
    "workflows": "Workflow",
    "pipelines": "Pipeline",
    "k2": "K2 Stream",
    "secrets_store_secrets": "Secrets Store Secret",
    "artifacts": "Artifacts",
    "ratelimits": "Rate Limit",
    "assets": "Assets",
    "unsafe_hello_world": "Hello World",
    "flagship": "Flagship",
    "worker_loaders": "Worker Loader",
    "vpc_services": "VPC Service",
    "vpc_networks": "VPC Network",
    "secrets": "Secret",
}
# Sections whose own keys are the names.
_MAPS: Final = ("vars", "wasm_modules", "text_blobs", "data_blobs")


def check(section: Section, keys: Mapping[str, _Kind]) -> None:
    """Report values of the wrong type, and warn about keys that are not among these."""
    section.warn_unknown((*keys, *_TOP_LEVEL_ONLY))
    for key in section.values:
        if key in keys:
            keys[key](section, key)
        elif key in _TOP_LEVEL_ONLY:
            section.warn(key, "counts at the top level only, and has no effect here")


def binding_names(section_of: Callable[[str], Section]) -> Iterator[tuple[str, str]]:
    """Yield each name a Worker's `env` is to have, with what wrangler calls such a binding."""
    for key, binding_type in BINDING_TYPES.items():
        value = section_of(key).values.get(key)
        if value is not None:
            for name in names_in(key, value):
                yield name, binding_type


def names_in(key: str, value: object) -> Iterator[str]:
    """Yield the names of the bindings that the section `key` declares, as far as they are texts."""
    if value is not None:
        yield from (name for name in _names(key, value) if isinstance(name, str))


def _names(key: str, value: object) -> Iterator[object]:
    inside = {"queues": "producers", "secrets": "required"}.get(key, "bindings")
    if key in _MAPS:
        yield from value if is_table(value) else ()
        return
    if is_table(value) and is_list(listed := value.get(inside)):
        value = listed
    if is_list(value):
        for item in value:
            yield item.get("binding", item.get("name")) if is_table(item) else item
    elif is_table(value):
        yield value.get("binding")
