"""Analytics Engine. Texts and limits are the runtime's (workerd, `analytics-engine-impl.h`)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from workers import Response, WorkerEntrypoint

from emulator import ConfigError, Emulator, WorkerCrashed
from emulator.analytics.point import DataPoint
from emulator.values import JsException

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
DATASETS = [{"binding": "VISITS", "dataset": "visits"}]


def worker(body: Any, **config: Any) -> dict[str, Any]:
    async def fetch(self: Any, request: Any) -> Any:
        value = body(self.env.VISITS)
        return Response.json(await value if hasattr(value, "__await__") else value)

    main = type("Worker", (WorkerEntrypoint,), {"fetch": fetch})
    return {"main": main, "analytics_engine_datasets": DATASETS, **config}


def told(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return [error.name, error.message]  # type: ignore[attr-defined]


async def test_points_are_there_at_once_in_order_with_time_and_worker() -> None:
    def body(visits: Any) -> Any:
        first = visits.writeDataPoint({"blobs": ["/", None, b"\x01"], "doubles": [1, 2.5]})
        return [first, visits.writeDataPoint(indexes=["ada"]), visits.writeDataPoint()]

    async with Emulator(worker(body, name="site")) as emulator:
        await emulator.advance("2 s")
        assert (await emulator.fetch("/")).json() == [None, None, None]
        points = emulator.analytics_engine["VISITS"]
        at = START + timedelta(seconds=2)
        assert list(points) == [
            DataPoint(at, "site", ("",), ("/", None, b"\x01"), (1.0, 2.5)),
            DataPoint(at, "site", ("ada",), (), ()),
            DataPoint(at, "site", ("",), (), ()),
        ]
        assert len(points) == 3
        assert points[0].blobs[0] == "/"
        assert list(emulator.analytics_engine["visits"]) == list(points)
        await emulator.fetch("/")
        assert len(points) == 6  # the same view
        with pytest.raises(KeyError, match="no Analytics Engine dataset 'X'; there are: VISITS, v"):
            _ = emulator.analytics_engine["X"]


async def test_other_values_become_texts_and_numbers() -> None:
    def body(visits: Any) -> Any:
        visits.writeDataPoint({"blobs": [5, True], "doubles": [True, None, "2"], "indexes": [None]})

    async with Emulator(worker(body)) as emulator:
        await emulator.fetch("/")
        (point,) = emulator.analytics_engine["VISITS"]
        assert point.blobs == ("5", "true")
        assert point.doubles == (1.0, 0.0, 2.0)
        assert point.indexes == (None,)


async def test_what_is_too_much_is_refused_at_the_call() -> None:
    def body(visits: Any) -> Any:
        write = visits.writeDataPoint
        return [
            told(lambda: write({"blobs": ["x"] * 21})),
            told(lambda: write({"doubles": [1] * 21})),
            told(lambda: write({"indexes": ["a", "b"]})),
            told(lambda: write({"indexes": ["ü" * 49]})),
            told(lambda: write({"blobs": ["x" * 8000, "y" * 8001]})),
            told(lambda: write({"blobs": "x"})),
            told(lambda: write(5)),
            told(lambda: write({"blobs": ["x" * 800] * 20, "doubles": [1] * 20})),
            told(lambda: write({"indexes": ["ü" * 48]})),
        ]

    bad = "Incorrect type for the 'blobs' field on 'AnalyticsEngineEvent': the provided value is"
    async with Emulator(worker(body)) as emulator:
        assert (await emulator.fetch("/")).json() == [
            ["TypeError", "writeDataPoint(): Maximum of 20 blobs supported."],
            ["TypeError", "writeDataPoint(): Maximum of 20 doubles supported."],
            ["TypeError", "writeDataPoint(): Maximum of 1 indexes supported."],
            ["TypeError", "writeDataPoint(): Size of indexes[0] exceeds 96 bytes)."],
            ["TypeError", "writeDataPoint(): Cumulative size of blobs exceeds 16000 bytes)."],
            ["TypeError", f"{bad} not of type 'Array'."],
            [
                "TypeError",
                "Failed to execute 'writeDataPoint' on 'AnalyticsEngine': parameter 1 is not of "
                "type 'AnalyticsEngineEvent'.",
            ],
            None,
            None,
        ]
        assert len(emulator.analytics_engine["VISITS"]) == 2


async def test_an_invocation_writes_250_points() -> None:
    def body(visits: Any) -> Any:
        for _ in range(250):
            visits.writeDataPoint({"doubles": [1]})
        return told(lambda: visits.writeDataPoint({"doubles": [1]}))

    async with Emulator(worker(body)) as emulator:
        expected = ["Error", "Too many API requests by single worker invocation."]
        assert (await emulator.fetch("/")).json() == expected
        assert (await emulator.fetch("/")).json() == expected
        assert len(emulator.analytics_engine["VISITS"]) == 500


async def test_the_local_runtime_checks_nothing() -> None:
    def body(visits: Any) -> Any:
        return told(lambda: visits.writeDataPoint({"blobs": ["x"] * 21}))

    async with Emulator(worker(body), profile="miniflare") as emulator:
        assert (await emulator.fetch("/")).json() is None


async def test_the_old_sdk_needs_arrays_of_javascript() -> None:
    """A list of Python is a proxy, which the runtime takes for no array."""

    def body(visits: Any) -> Any:
        from js import Object
        from pyodide.ffi import to_js

        with pytest.raises(JsException, match="not of type 'Array'"):
            visits.writeDataPoint({"blobs": ["lost"]})
        visits.writeDataPoint(to_js({"blobs": ["kept"]}, dict_converter=Object.fromEntries))

    async with Emulator(worker(body, compatibility_date="2026-04-20")) as emulator:
        await emulator.fetch("/")
        assert [one.blobs for one in emulator.analytics_engine["VISITS"]] == [("kept",)]


async def test_points_survive_a_crash_and_a_restart(tmp_path: Any) -> None:
    async def body(visits: Any) -> Any:
        from workers import fetch

        visits.writeDataPoint({"blobs": ["x", None, b"y"], "doubles": [1.5], "indexes": ["i"]})
        await fetch("https://outside.example/")

    config = worker(body)
    plan = "fetch.GET.outside.example/#1:crash_before"
    async with Emulator(config, faults=plan, state=tmp_path / "state") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        written = list(emulator.analytics_engine["VISITS"])
        assert len(written) == 1
        await emulator.restart()
        assert list(emulator.analytics_engine["VISITS"]) == written
    async with Emulator(config, state=tmp_path / "state") as emulator:
        assert list(emulator.analytics_engine["VISITS"]) == written
        await emulator.reset()
        assert list(emulator.analytics_engine["VISITS"]) == []


async def test_without_a_dataset_the_binding_names_it_and_a_wrong_one_is_refused() -> None:
    config = worker(lambda _: 1, analytics_engine_datasets=[{"binding": "VISITS"}])
    async with Emulator(config) as emulator:
        emulator.env.VISITS.writeDataPoint({"blobs": ["by the test"]})
        assert [one.blobs for one in emulator.analytics_engine["VISITS"]] == [("by the test",)]
    with pytest.raises(ConfigError, match='should have a string "binding" field but got'):
        Emulator(worker(lambda _: 1, analytics_engine_datasets=[{"dataset": "d"}]))
    with pytest.raises(ConfigError, match='should, optionally, have a string "dataset" field'):
        Emulator(worker(lambda _: 1, analytics_engine_datasets=[{"binding": "V", "dataset": ""}]))
