"""Sending of mail in a config: `send_email` of a Worker. The platform's texts are wrangler's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from emulator.queue_config import required
from emulator.section import shown

if TYPE_CHECKING:
    from emulator.section import Section

_KEYS: Final = (
    *("name", "destination_address", "allowed_destination_addresses"),
    *("allowed_sender_addresses", "remote"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderConfig:
    """A binding that sends mail; None where an address is not restricted."""

    binding: str
    destination: str | None = None
    destinations: tuple[str, ...] | None = None
    senders: tuple[str, ...] | None = None


def senders(config: Section) -> tuple[SenderConfig, ...]:
    """Read the `send_email` of a Worker."""
    return tuple(_sender(item) for item in config.sections("send_email"))


def _sender(item: Section) -> SenderConfig:
    item.warn_unknown(_KEYS)
    item.boolean("remote", default=False)
    says = f'wrangler: "{item.path}" bindings should have'
    name = required(
        item, "name", "the name of the binding on `env`", f'{says} a string "name" field but got'
    )
    if "destination_address" in item and "allowed_destination_addresses" in item:
        both = 'either a "destination_address" or "allowed_destination_addresses" field'
        item.wrong("destination_address", "is one too many", says=f"{says} {both}, but not both.")
    optional = f'wrangler: "{item.path}" bindings should, optionally, have a string'
    destination = item.text(
        "destination_address",
        says=f'{optional} "destination_address" field but got {shown(item.values)}.',
    )
    return SenderConfig(
        binding=name,
        destination=destination,
        destinations=_addresses(item, "allowed_destination_addresses"),
        senders=_addresses(item, "allowed_sender_addresses"),
    )


def _addresses(item: Section, key: str) -> tuple[str, ...] | None:
    return item.texts(key) if key in item else None
