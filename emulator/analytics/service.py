"""The datasets of one emulator: who binds to them, and the points that were written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakKeyDictionary

from emulator.analytics.point import DataPoint, Values
from emulator.clock import instant, moment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.analytics.bindings import AnalyticsEngine
    from emulator.invocation import Invocation
    from emulator.kernel import Kernel, Profile
    from emulator.values import HostObject
    from emulator.worker_config import WorkerConfig

Record = list[Any]


class Points(Sequence[DataPoint]):
    """The points of one dataset, in the order they were written; it grows as they are."""

    def __init__(self, service: Analytics, dataset: str) -> None:
        self._service = service
        self._dataset = dataset

    @property
    def _points(self) -> list[DataPoint]:
        return self._service.points.get(self._dataset, [])

    @overload
    def __getitem__(self, place: int) -> DataPoint: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[DataPoint]: ...
    def __getitem__(self, place: int | slice) -> DataPoint | Sequence[DataPoint]:
        return self._points[place]

    def __len__(self) -> int:
        return len(self._points)

    def __repr__(self) -> str:
        return repr(self._points)


class Analytics:
    """Datasets by name.

    A record is a dataset's name, the time, the Worker, and the values of a point.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._bindings: list[AnalyticsEngine] = []
        self._records: list[Record] = []
        # How many points each invocation wrote.
        self._written: WeakKeyDictionary[Invocation, int] = WeakKeyDictionary()
        self.points: dict[str, list[DataPoint]] = {}
        self.names: dict[str, str] = {}  # binding or name -> dataset

    @property
    def profile(self) -> Profile:
        """Which service is emulated."""
        return self._kernel.profile

    def bindings(self, config: WorkerConfig) -> dict[str, HostObject]:
        """The datasets of a Worker, by binding."""
        if not config.datasets:
            return {}
        from emulator.analytics.bindings import AnalyticsEngine

        found = {}
        for one in config.datasets:
            self.names.setdefault(one.binding, one.dataset)
            self.names.setdefault(one.dataset, one.dataset)
            found[one.binding] = AnalyticsEngine(one.binding, one.dataset, self)
        self._bindings += found.values()
        return {**found}

    def written(self, invocation: Invocation) -> int:
        """Count a call of an invocation; how many it has made."""
        count = self._written[invocation] = self._written.get(invocation, 0) + 1
        return count

    def write(self, dataset: str, binding: str, invocation: Invocation, values: Values) -> None:
        """Keep a point."""
        now = self._kernel.now
        point = DataPoint(moment(now), invocation.worker, *values)
        self.points.setdefault(dataset, []).append(point)
        self._records.append([dataset, now, invocation.worker, *map(list, values)])
        self._kernel.record(
            "data_point",
            f"analytics {binding}",
            by=invocation.subject,
            indexes=list(values.indexes),
            blobs=list(values.blobs),
            doubles=list(values.doubles),
        )

    # -- life ------------------------------------------------------------------------------------

    def take_records(self) -> list[Record]:
        """The records of all points since the last call."""
        records, self._records = self._records, []
        return records

    def snapshot(self) -> Record:
        """All points."""
        return [
            [dataset, instant(one.at), one.worker]
            + [list(values) for values in (one.indexes, one.blobs, one.doubles)]
            for dataset, points in self.points.items()
            for one in points
        ]

    @property
    def stored(self) -> int:
        """How many points there are."""
        return sum(map(len, self.points.values()))

    def rebuild(self, snapshot: Record | None, records: Iterable[Record]) -> None:
        """Start again from stored points."""
        self.points.clear()
        for dataset, at, worker, *values in (*(snapshot or ()), *records):
            point = DataPoint(moment(at), worker, *map(tuple, values))
            self.points.setdefault(dataset, []).append(point)

    def reset(self) -> None:
        """Forget all points."""
        self._records.clear()
        self.points.clear()

    def close(self) -> None:
        """Let go of what user code may still hold."""
        while self._bindings:
            self._bindings.pop().disconnect()
