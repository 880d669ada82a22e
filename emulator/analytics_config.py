"""Analytics Engine in a config: `analytics_engine_datasets` of a Worker. Texts are wrangler's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from emulator.queue_config import required
from emulator.section import shown

if TYPE_CHECKING:
    from emulator.section import Section

_KEYS: Final = ("binding", "dataset")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetConfig:
    """A binding to a dataset; without `dataset` the binding names it."""

    binding: str
    dataset: str


def datasets(config: Section) -> tuple[DatasetConfig, ...]:
    """Read the `analytics_engine_datasets` of a Worker."""
    return tuple(_dataset(item) for item in config.sections("analytics_engine_datasets"))


def _dataset(item: Section) -> DatasetConfig:
    item.warn_unknown(_KEYS)
    says = f'wrangler: "{item.path}" bindings should'
    binding = required(
        item,
        "binding",
        "the name of the dataset on `env`",
        f'{says} have a string "binding" field but got',
    )
    optional = f'{says}, optionally, have a string "dataset" field but got {shown(item.values)}.'
    return DatasetConfig(binding=binding, dataset=item.text("dataset", says=optional) or binding)
