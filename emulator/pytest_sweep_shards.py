"""Splits a sweep over the processes of pytest-xdist: one item becomes one for each process.

With `-n 4` a marked test is collected as `test_x[sweep-1/4]` to `test_x[sweep-4/4]`; each runs
clean, and then its share of the plans. One that is marked `xfail` or `skip` too stays whole. The
name is pytest's only: an id with such an ending, pasted or kept by `--last-failed`, means the whole
test where there are no shards.
"""

from __future__ import annotations

import copy
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from emulator.pytest_sweep_marker import is_swept

if TYPE_CHECKING:
    from collections.abc import Iterator

_COUNT = "emulator_sweep_shards"
_SHARD = pytest.StashKey[tuple[int, int]]()
_WHOLE = pytest.StashKey[str]()
_ENDING = re.compile(r"(?:\[|-)sweep-\d+/\d+\]$")


def shard_of(item: pytest.Item) -> tuple[int, int]:
    """Return which shard of how many an item is, counted from 0."""
    return item.stash.get(_SHARD, (0, 1))


def whole_id(item: pytest.Item) -> str:
    """Return the node id of the test of which an item may be a shard."""
    return item.stash.get(_WHOLE, item.nodeid)


def without_shard(nodeid: str) -> str:
    """Return a node id without the ending of a shard."""
    found = _ENDING.search(nodeid)
    if found is None:
        return nodeid
    return nodeid[: found.start()] + ("]" if found[0].startswith("-") else "")


def configure(config: pytest.Config) -> None:
    """Let a node id of a shard, as reports print it, select the test."""
    config.args = [without_shard(argument) for argument in config.args]


def tell_worker(node: Any) -> None:
    """Tell a process of pytest-xdist how many there are to share a sweep."""
    shared = node.config.getoption("dist") not in ("no", "each")
    node.workerinput[_COUNT] = node.workerinput["workercount"] if shared else 1
    with suppress(ValueError):  # It is there since the first process.
        node.config.pluginmanager.register(_Forgetful(node.config), "workers-emulator-shards")


def split(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the shards of each marked test in its place."""
    count = getattr(config, "workerinput", {}).get(_COUNT, 1)
    if count > 1:
        items[:] = [shard for item in items for shard in _shards(item, count)]
    _recognise(_last_failed(config), items)


def _shards(item: pytest.Item, count: int) -> Iterator[pytest.Item]:
    if not isinstance(item, pytest.Function) or not is_swept(item) or _is_of_the_whole(item):
        yield item
        return
    for index in range(count):
        yield _shard(item, index, count)


def _is_of_the_whole(item: pytest.Item) -> bool:
    """Whether a marker is about the whole sweep, of which a shard sees a part.

    A sweep that is to fail fails in some shards only, and the others would be unexpected passes.
    """
    return any(item.get_closest_marker(name) is not None for name in ("xfail", "skip"))


def as_shard(item: pytest.Item, index: int, count: int) -> pytest.Item:
    """Return a whole test as one of its shards."""
    is_whole = count == 1 or not isinstance(item, pytest.Function)
    return item if is_whole else _shard(item, index, count)  # type: ignore[arg-type]


def _shard(item: pytest.Function, index: int, count: int) -> pytest.Function:
    shard: Any = copy.copy(item)
    shard.name = _ended(item.name, index, count)
    path, _, rest = item.nodeid.rpartition(item.name)
    assert not rest
    _set_id(shard, path + shard.name)
    shard.stash = shard._store = pytest.Stash()
    shard.stash[_SHARD] = (index, count)
    shard.stash[_WHOLE] = item.nodeid
    shard.own_markers = list(item.own_markers)
    shard.user_properties = list(item.user_properties)
    shard._report_sections = []
    shard._initrequest()
    return shard  # type: ignore[no-any-return]


def _ended(name: str, index: int, count: int) -> str:
    ending = f"sweep-{index + 1}/{count}]"
    return f"{name[:-1]}-{ending}" if name.endswith("]") else f"{name}[{ending}"


def _set_id(node: Any, nodeid: str) -> None:
    """Give a node another id; pytest 9.2 keeps it as an object, older ones as text."""
    if hasattr(node, "_id"):
        node._id = type(node._id).parse(nodeid)
    else:
        node._nodeid = nodeid


# -- what --last-failed keeps --------------------------------------------------------------------


def _last_failed(config: pytest.Config) -> dict[Any, bool]:
    """Return what the cache says of earlier failures; its keys are texts, or ids by pytest 9.2."""
    plugin = config.pluginmanager.get_plugin("lfplugin")
    return getattr(plugin, "lastfailed", {})


def _recognise(failed: dict[Any, bool], items: list[pytest.Item]) -> None:
    """Let what failed as a whole, or as other shards, mean the items there are now."""
    parts: dict[str, list[pytest.Item]] = {}
    for item in items if failed else ():
        if is_swept(item):
            parts.setdefault(whole_id(item), []).append(item)
    for key in list(failed):
        shards = parts.get(without_shard(str(key)), [])
        if shards and str(key) not in [shard.nodeid for shard in shards]:
            del failed[key]
            for shard in shards:
                failed[shard.nodeid if isinstance(key, str) else shard.id] = True  # type: ignore[attr-defined,unused-ignore]


class _Forgetful:
    """Where pytest-xdist runs the tests: forgets what failed as a whole, or as other shards."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        whole = without_shard(report.nodeid)
        if whole == report.nodeid:
            return
        failed = _last_failed(self._config)
        count = report.nodeid.rpartition("/")[2]
        for key in list(failed):
            if without_shard(str(key)) == whole and str(key).rpartition("/")[2] != count:
                del failed[key]
