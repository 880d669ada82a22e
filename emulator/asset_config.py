"""Static assets in a config: `assets` of a Worker. The platform's texts are wrangler's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from emulator.section import is_list, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from emulator.section import Section

HtmlHandling: TypeAlias = Literal[
    "auto-trailing-slash", "force-trailing-slash", "drop-trailing-slash", "none"
]
NotFoundHandling: TypeAlias = Literal["single-page-application", "404-page", "none"]

_KEYS: Final = ("directory", "binding", "html_handling", "not_found_handling", "run_worker_first")
_HTML: Final = ("auto-trailing-slash", "force-trailing-slash", "drop-trailing-slash", "none")
_NOT_FOUND: Final = ("single-page-application", "404-page", "none")
_MOST_RULES: Final = 100
_LONGEST_RULE: Final = 100  # characters
_NAVIGATION: Final = "assets_navigation_prefers_asset_serving"
_NO_NAVIGATION: Final = "assets_navigation_has_no_effect"
_NAVIGATION_SINCE: Final = "2025-04-01"
_NO_DIRECTORY: Final = (
    "wrangler: The `assets` property in your configuration is missing the required `directory` "
    "property."
)
_NO_BINDING: Final = "wrangler: Cannot use assets with a binding in an assets-only Worker."
_NO_WORKER: Final = "wrangler: Cannot set run_worker_first without a Worker script."


class AssetsOnly:
    """Stands where the code would be, in a Worker that has only assets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetsConfig:
    """The `assets` of a Worker; `first` and `last` are the rules of a list `run_worker_first`.

    `runs_first` says that the Worker comes before the assets always, `has_worker` that there is
    one.
    """

    directory: Path
    binding: str | None
    html_handling: HtmlHandling
    not_found_handling: NotFoundHandling
    runs_first: bool
    first: tuple[str, ...]
    last: tuple[str, ...]
    has_worker: bool
    prefers_navigation: bool

    @property
    def has_rules(self) -> bool:
        """Whether `run_worker_first` is a list."""
        return bool(self.first)


def assets(
    top: Section, folder: Path, flags: Sequence[str], date: str, *, has_worker: bool
) -> AssetsConfig | None:
    """Read the section `assets`; `folder` is what its directory is relative to."""
    if "assets" not in top:
        return None
    section = top.section("assets")
    section.warn_unknown(_KEYS)
    runs_first, first, last = _run_worker_first(section)
    binding = section.text("binding")
    if not has_worker:
        if binding is not None:
            section.wrong("binding", "is set, but there is no `main` to use it", says=_NO_BINDING)
        if runs_first or first:
            problem = "is set, but there is no `main` to run"
            section.wrong("run_worker_first", problem, says=_NO_WORKER)
    prefers = _NAVIGATION in flags or (date >= _NAVIGATION_SINCE and _NO_NAVIGATION not in flags)
    return AssetsConfig(
        directory=_directory(section, folder),
        binding=binding,
        html_handling=cast("HtmlHandling", _choice(section, "html_handling", _HTML, _HTML[0])),
        not_found_handling=cast(
            "NotFoundHandling", _choice(section, "not_found_handling", _NOT_FOUND, "none")
        ),
        runs_first=runs_first,
        first=first,
        last=last,
        has_worker=has_worker,
        prefers_navigation=prefers,
    )


def _directory(section: Section, folder: Path) -> Path:
    if "directory" not in section:
        section.wrong("directory", "is missing: the folder of the assets", says=_NO_DIRECTORY)
        return folder
    text = section.values["directory"]
    if not section.is_file and isinstance(text, os.PathLike):
        text = os.fspath(text)
    if not isinstance(text, str) or not text:
        section.not_allowed("directory", "the path of a folder")
        return folder
    directory = Path(os.path.abspath(folder / text))
    if not directory.exists():
        # As `wrangler dev` has it: what builds the folder may not have run yet.
        section.warn(
            "directory", f"is {shown(text)}, but there is no folder {directory}: no asset is there"
        )
    elif not directory.is_dir():
        section.wrong("directory", f"is {shown(text)}, but {directory} is no folder")
    return directory


def _choice(section: Section, key: str, allowed: tuple[str, ...], default: str) -> str:
    value = section.text(key)
    if value is None or value in allowed:
        return value or default
    section.not_allowed(key, " or ".join(map(shown, allowed)))
    return default


def _run_worker_first(section: Section) -> tuple[bool, tuple[str, ...], tuple[str, ...]]:
    key = "run_worker_first"
    value = section.values.get(key)
    if value is None or isinstance(value, bool):
        return bool(value), (), ()
    if not is_list(value):
        section.not_allowed(key, "true, false or a list of paths")
        return False, (), ()
    rules = section.texts(key)
    for problem in _rule_problems(rules):
        section.wrong(key, problem)
    first = tuple(rule for rule in rules if rule.startswith("/"))
    return False, first, tuple(rule[1:] for rule in rules if rule.startswith("!/"))


def _rule_problems(rules: tuple[str, ...]) -> Iterator[str]:
    """Yield what is wrong with a list of rules, in the words of wrangler."""
    if not rules:
        yield (
            "is empty (wrangler: No `run_worker_first` rules were provided; must provide at "
            "least 1 rule.)"
        )
    if len(rules) > _MOST_RULES:
        yield (
            f"has too many rules (wrangler: Too many `run_worker_first` rules were provided; "
            f"{len(rules)} rules provided exceeds max of {_MOST_RULES}.)"
        )
    negative = tuple(rule for rule in rules if rule.startswith("!/"))
    positive = tuple(rule for rule in rules if rule.startswith("/"))
    for rule in rules:
        if rule.startswith("!") and rule not in negative:
            yield f"has '{rule}': negative rules must start with '!/'"
        elif not rule.startswith(("/", "!/")):
            yield f"has '{rule}': rules must start with '/' or '!/'"
    if negative and not positive:
        yield (
            "has only negative rules (wrangler: Only negative `run_worker_first` rules were "
            "provided; must provide at least 1 non-negative rule)"
        )
    yield from (f"has {text}" for text in (*_redundant(positive), *_redundant(negative)))


def _redundant(rules: tuple[str, ...]) -> Iterator[str]:
    seen: list[str] = []
    for rule in rules:
        if len(rule) > _LONGEST_RULE:
            yield (f"'{rule}': all rules must be less than {_LONGEST_RULE} characters in length")
        if rule in seen:
            yield f"'{rule}': rule is a duplicate; rules must be unique"
        if rule.endswith("*"):
            for other in rules:
                if other != rule and other.startswith(rule[:-1]):
                    yield f"'{other}': rule '{rule}' makes it redundant"
        seen.append(rule)
