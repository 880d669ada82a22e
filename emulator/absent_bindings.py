"""Bindings that a config declares and the emulator does not have: what to say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from emulator.config_keys import BINDING_TYPES, names_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.worker_config import WorkerConfig


class AbsentBinding(NamedTuple):
    """A name that production's `env` would have: the config's section, and its type."""

    name: str
    section: str
    kind: str
    file: str

    def __str__(self) -> str:
        return (
            f"{self.name} is declared in {self.section} in {self.file}; workers-emulator does not "
            f"have {self.kind} bindings yet: give a stand-in with bindings={{{self.name!r}: ...}}"
        )


def absent_bindings(config: WorkerConfig) -> Mapping[str, AbsentBinding]:
    """Return by name what the sections declare that no product of the emulator reads."""
    file = config.source.name if config.source is not None else "the config"
    sections = {
        **config.other,
        "services": [{"binding": service.binding} for service in config.services],
    }
    return {
        name: AbsentBinding(name, section, kind, file)
        for section, kind in BINDING_TYPES.items()
        if section in sections
        for name in names_in(section, sections[section])
    }
