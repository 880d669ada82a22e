"""`queue` and `scheduled` of a stub: methods of the class, but with an experimental flag."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from workers import DurableObject, Response, WorkerEntrypoint

from emulator import Emulator

pytestmark = pytest.mark.asyncio
BINDINGS = {"bindings": [{"name": "JOBS", "class_name": "Jobs"}]}


class Jobs(DurableObject):
    async def queue(self, name: str, job: dict[str, Any]) -> str:
        return f"{name} {job['id']}"

    async def scheduled(self, at: int) -> int:
        return at + 1


class Default(WorkerEntrypoint):
    async def fetch(self, request: Any) -> Any:
        stub = self.env.JOBS.getByName("a")
        method = request.url.rsplit("/", 1)[1]
        try:
            if method == "queue":
                return Response(await stub.queue("mails", {"id": 7}))
            return Response(str(await stub.scheduled(1)))
        except AttributeError as error:
            return Response(str(error), status=400)


def config(*flags: str) -> dict[str, Any]:
    module = ModuleType("entry")
    module.__dict__.update(Default=Default, Jobs=Jobs)
    return {"main": module, "durable_objects": BINDINGS, "compatibility_flags": list(flags)}


async def test_they_are_methods_as_any_other() -> None:
    async with Emulator(config("python_workers")) as emulator:
        assert (await emulator.fetch("/queue")).text == "mails 7"
        assert (await emulator.fetch("/scheduled")).text == "2"


@pytest.mark.parametrize("method", ["queue", "scheduled"])
async def test_with_the_flag_they_say_that_events_are_not_handed_on(method: str) -> None:
    """workerd, `Fetcher` in api/http.h: there they are events for the object's handlers."""
    flags = ("python_workers", "service_binding_extra_handlers")
    async with Emulator(config(*flags)) as emulator:
        response = await emulator.fetch(f"/{method}")
        assert response.status_code == 400
        assert response.text.startswith(
            f"workers-emulator hands no {method} event to a Durable Object: with the compatibility "
            "flag service_binding_extra_handlers"
        )
