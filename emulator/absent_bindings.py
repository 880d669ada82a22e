"""Bindings that a config declares and the emulator does not have: what to say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from emulator.config_keys import BINDING_TYPES, names_in
from emulator.shell import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from emulator.worker_config import WorkerConfig

# What no computer of one's own has: `wrangler dev` reaches them over the network, too.
REMOTE_ONLY: Final = frozenset(
    {
        *("ai", "vectorize", "ai_search", "ai_search_namespaces", "websearch", "agent_memory"),
        *("media", "stream", "mtls_certificates", "dispatch_namespaces", "artifacts", "flagship"),
        *("vpc_services", "vpc_networks", "analytics", "logfwdr", "k2"),
    }
)
_OR: Final = "give its config too, in a list, or"
_OR_OPTION: Final = "give its config too, with another -c, or"


class AbsentBinding(NamedTuple):
    """A name that production's `env` would have: the config's section, and why it is not there."""

    name: str
    section: str
    why: str
    file: str

    def __str__(self) -> str:
        return f"{self._what} {self.why} give a stand-in with bindings={{{self.name!r}: ...}}"

    @property
    def for_command_line(self) -> str:
        """The same, with the options of a command for what is to be done."""
        why = self.why.replace(_OR, _OR_OPTION)
        return f"{self._what} {why} say --stand-in {quoted(self.name)} if the tests give one"

    @property
    def _what(self) -> str:
        return f"{self.name} is declared in {self.section} in {self.file};"


def absent_bindings(config: WorkerConfig, workers: Sequence[str]) -> Mapping[str, AbsentBinding]:
    """Return by name what the sections declare that no product of the emulator reads.

    `workers` are the names of all Workers there are.
    """
    file = config.source.name if config.source is not None else "the config"
    found = {
        name: AbsentBinding(name, section, _why(section, kind), file)
        for section, kind in BINDING_TYPES.items()
        if section in config.other
        for name in names_in(section, config.other[section])
    }
    elsewhere = (*_services(config, workers), *_others(config, workers))
    return {
        **found,
        **{name: AbsentBinding(name, section, why, file) for name, section, why in elsewhere},
    }


def _why(section: str, kind: str) -> str:
    if section in REMOTE_ONLY:
        return f"{kind} bindings are served by Cloudflare's network, under `wrangler dev` too:"
    return f"workers-emulator does not have {kind} bindings yet:"


def _services(config: WorkerConfig, workers: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for service in config.services:
        if service.service not in workers:
            why = (
                f"it is the Worker {service.service!r}, and there are only: {', '.join(workers)} "
                f"(Cloudflare, code 10143: Could not resolve service binding '{service.binding}'. "
                f"Target script '{service.service}' not found.): {_OR}"
            )
            yield service.binding, "services", why


def _others(config: WorkerConfig, workers: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """What belongs to Workers that are not there: their Workflows and objects."""
    bound = (
        *((one.binding, one.script, "workflows") for one in config.workflows),
        *((one.binding, one.script, "durable_objects") for one in config.objects.bindings),
    )
    for binding, script, section in bound:
        if script not in workers:
            why = f"it is of the Worker {script!r}, and there are only: {', '.join(workers)}: {_OR}"
            yield binding, section, why
