"""R2 buckets in a config: `r2_buckets` of a Worker. The platform's texts are wrangler's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from emulator.queue_config import required
from emulator.section import shown

if TYPE_CHECKING:
    from emulator.section import Section

_KEYS: Final = ("binding", "bucket_name", "preview_bucket_name", "jurisdiction", "remote")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_FORMAT: Final = "3 to 63 lower-case letters, digits and hyphens, no hyphen at either end"


@dataclass(frozen=True, slots=True, kw_only=True)
class R2Config:
    """A binding to an R2 bucket; bindings with one name and jurisdiction share it."""

    binding: str
    name: str
    jurisdiction: str | None = None

    @property
    def id(self) -> str:
        """What tells this bucket from others: names are unique in a jurisdiction only."""
        return self.name if self.jurisdiction is None else f"{self.jurisdiction}/{self.name}"


def buckets(config: Section) -> tuple[R2Config, ...]:
    """Read the `r2_buckets` of a Worker; without a name the binding names the bucket."""
    return tuple(_bucket(item) for item in config.sections("r2_buckets"))


def _bucket(item: Section) -> R2Config:
    item.warn_unknown(_KEYS)
    item.boolean("remote", default=False)
    says = f'wrangler: "{item.path}" bindings should have a string'
    binding = required(
        item, "binding", "the name of the bucket on `env`", f'{says} "binding" field but got'
    )
    name = item.text(
        "bucket_name", says=f'{says} "bucket_name" field but got {shown(item.values)}.'
    )
    if name is not None and not _NAME.fullmatch(name):
        item.warn("bucket_name", f"is {shown(name)}, which R2 takes for no name: {_FORMAT}")
    _optional(item, "preview_bucket_name")
    return R2Config(
        binding=binding, name=name or binding, jurisdiction=_optional(item, "jurisdiction")
    )


def _optional(item: Section, key: str) -> str | None:
    says = f'wrangler: "{item.path}" bindings should, optionally, have a string "{key}"'
    return item.text(key, says=f"{says} field but got {shown(item.values)}.")
