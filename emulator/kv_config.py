"""KV namespaces in a config: `kv_namespaces` of a Worker. The platform's texts are wrangler's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from emulator.queue_config import required
from emulator.section import shown

if TYPE_CHECKING:
    from emulator.section import Section

_KEYS: Final = ("binding", "id", "preview_id", "remote")


@dataclass(frozen=True, slots=True, kw_only=True)
class KvConfig:
    """A binding to a KV namespace; bindings with one `id` share it, whatever the Worker."""

    binding: str
    id: str


def namespaces(config: Section) -> tuple[KvConfig, ...]:
    """Read the `kv_namespaces` of a Worker; without an `id` the binding names the namespace."""
    return tuple(_namespace(item) for item in config.sections("kv_namespaces"))


def _namespace(item: Section) -> KvConfig:
    item.warn_unknown(_KEYS)
    item.boolean("remote", default=False)
    says = f'wrangler: "{item.path}" bindings should have a string'
    binding = required(
        item, "binding", "the name of the namespace on `env`", f'{says} "binding" field but got'
    )
    id = item.text("id", says=f'{says} "id" field but got {shown(item.values)}.')
    optional = f'wrangler: "{item.path}" bindings should, optionally, have a string "preview_id"'
    item.text("preview_id", says=f"{optional} field but got {shown(item.values)}.")
    return KvConfig(binding=binding, id=id or binding)
