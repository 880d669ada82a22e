"""Workflows over the REST API, with the official client (workflows.md §16)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from rest_client import ACCOUNT, connected, listed, refused
from rest_workflow import write_workflow

if TYPE_CHECKING:
    from served_project import Project

pytestmark = pytest.mark.asyncio
BASE = f"/cdn-cgi/emulator/client/v4/accounts/{ACCOUNT}/workflows"


@pytest.fixture
def shop(project: Project) -> Project:
    write_workflow(project)
    return project


async def create(client: Any, **options: Any) -> Any:
    return await client.workflows.instances.create("orders", account_id=ACCOUNT, **options)


async def get(client: Any, id: str, **options: Any) -> Any:
    return await client.workflows.instances.get(
        id, account_id=ACCOUNT, workflow_name="orders", **options
    )


async def change(client: Any, id: str, **options: Any) -> Any:
    return await client.workflows.instances.status.edit(
        id, account_id=ACCOUNT, workflow_name="orders", **options
    )


# -- Workflows -----------------------------------------------------------------------------------


async def test_lists_end(shop: Project) -> None:
    """W1, scenario 61: the client asks for pages until one is empty."""
    async with connected(shop) as (client, _):
        await create(client, instance_id="a")
        orders, nightly = await listed(client.workflows.list(account_id=ACCOUNT))
        assert (orders.name, orders.class_name, orders.script_name) == ("orders", "Orders", "shop")
        assert orders.instances["waiting"] == 1
        assert sum(orders.instances.values()) == 1
        assert orders.triggered_on is not None
        assert [(one.cron, one.next_instance[11:]) for one in nightly.schedules] == [
            ("0 3 * * *", "03:00:00.000000Z")
        ]
        found = await listed(client.workflows.list(account_id=ACCOUNT, search="night"))
        assert [workflow.name for workflow in found] == ["nightly"]
        got = await client.workflows.get("orders", account_id=ACCOUNT)
        assert got.id == orders.id
        (version,) = await listed(client.workflows.versions.list("orders", account_id=ACCOUNT))
        again = await client.workflows.versions.get(
            version.id, account_id=ACCOUNT, workflow_name="orders"
        )
        assert (again.workflow_id, again.language) == (orders.id, "python")


async def test_a_workflow_is_what_the_config_says(shop: Project) -> None:
    """W2: PUT of the same is agreed to, any other change is refused."""
    async with connected(shop) as (client, _):
        updated = await client.workflows.update(
            "orders", account_id=ACCOUNT, class_name="Orders", script_name="shop"
        )
        assert updated.name == "orders"
        for call in (
            client.workflows.update(
                "orders", account_id=ACCOUNT, class_name="Other", script_name="shop"
            ),
            client.workflows.delete("orders", account_id=ACCOUNT),
        ):
            assert (await refused(call))[:2] == (400, 10001)


async def test_what_is_not_there_is_not_found(shop: Project) -> None:
    """W12: codes 10200 and 10400."""
    async with connected(shop) as (client, _):
        assert await refused(client.workflows.get("nope", account_id=ACCOUNT)) == (
            404,
            10200,
            "workflows.api.error.workflow.not_found",
        )
        text = "workflows.api.error.instance.not_found"
        assert await refused(get(client, "nope")) == (404, 10400, text)
        assert await refused(change(client, "nope", status="pause")) == (404, 10400, text)


# -- instances -----------------------------------------------------------------------------------


async def test_an_instance_is_created_watched_and_sent_an_event(shop: Project) -> None:
    """W3, W6, W8."""
    async with connected(shop) as (client, served):
        created = await create(client, instance_id="o1", params={"amount": 5})
        assert (created.id, created.trigger_source) == ("o1", "api")
        start = served.desk.emulator.now
        running = await get(client, "o1")
        assert (running.status, running.success, running.end) == ("waiting", None, None)
        assert running.params == {"amount": 5}
        assert running.trigger.source == "api"
        charge, sleep = running.steps
        assert (charge.type, charge.name, charge.success) == ("step", "charge-1", True)
        assert charge.output == {"paid": 5}
        assert charge.config.retries.to_dict() == {
            "limit": 2,
            "delay": "10 seconds",
            "backoff": "exponential",
        }
        assert [attempt.success for attempt in charge.attempts] == [True]
        assert (sleep.type, sleep.name, sleep.finished) == ("sleep", "cool down-1", False)
        assert (sleep.end - sleep.start).total_seconds() == 3600

        await served.advance("1 hour")
        event = await client.workflows.instances.events.create(
            "approved",
            account_id=ACCOUNT,
            workflow_name="orders",
            instance_id="o1",
            body={"by": "ada"},
        )
        assert event.instance_id == "o1"
        assert (event.timestamp - start).total_seconds() == 3600
        done = await get(client, "o1")
        assert (done.status, done.success, done.output) == (
            "complete",
            True,
            {"paid": 5, "by": "ada"},
        )
        assert done.step_count == 3
        wait = done.steps[2]
        assert (wait.type, wait.name, wait.event_type, wait.output) == (
            "waitForEvent",
            "approval-1",
            "approved",
            {"by": "ada"},
        )
        newest = await get(client, "o1", order="desc")
        assert [step.name for step in newest.steps] == ["approval-1", "cool down-1", "charge-1"]
        assert (await get(client, "o1", simple="true")).steps == []


async def test_params_are_an_object_or_a_text_with_one(shop: Project) -> None:
    """W3, scenario 61: the client's types say text, wrangler sends an object."""
    async with connected(shop) as (client, served):
        await create(client, params={"amount": 2})
        await create(client, params='{"amount": 2}')
        await create(client)
        paid = [line for line in served.logs if line.startswith("charge")]
        assert paid == ["charge {'amount': 2}"] * 2 + ["charge {}"]
        assert (await refused(create(client, params="{")))[:2] == (400, 10207)


async def test_a_failing_step_shows_its_attempts(shop: Project) -> None:
    async with connected(shop) as (client, served):
        await create(client, instance_id="bad", params={"fails": True})
        await served.advance("1 minute")
        instance = await get(client, "bad")
        assert (instance.status, instance.success) == ("errored", False)
        assert "card refused" in instance.error.message
        (charge,) = instance.steps
        assert charge.success is False
        assert [attempt.success for attempt in charge.attempts] == [False] * 3
        assert all("card refused" in attempt.error.message for attempt in charge.attempts)
        waited = charge.attempts[1].start - charge.attempts[0].end
        assert waited.total_seconds() == 10


async def test_an_id_that_exists_is_refused_and_left_out_of_a_batch(shop: Project) -> None:
    """W5, W12: code 10405."""
    async with connected(shop) as (client, served):
        await create(client, instance_id="a")
        status, code, text = await refused(create(client, instance_id="a"))
        assert (status, code) == (400, 10405)
        assert text == "workflows.api.error.instance.already_exists"
        assert (await refused(create(client, instance_id="no spaces")))[:2] == (400, 10001)
        made = await listed(
            client.workflows.instances.bulk(
                "orders",
                account_id=ACCOUNT,
                body=[{"instance_id": "a"}, {"instance_id": "b", "params": {"amount": 3}}],
            )
        )
        assert [(one.id, one.trigger_source) for one in made] == [("b", "api")]
        assert [one.id for one in served.desk.emulator.workflows["orders"].instances] == ["a", "b"]
        answer = await served.client.post(f"{BASE}/orders/instances/batch", json=[{}] * 101)
        assert answer.status_code == 400


async def test_instances_are_listed_filtered_and_paged(shop: Project) -> None:
    """W4."""
    async with connected(shop) as (client, served):
        for number in range(5):
            await create(client, instance_id=f"i{number}")
            await served.advance("1 minute")
        await change(client, "i1", status="terminate")
        instances = client.workflows.instances

        async def ids(**options: Any) -> list[str]:
            found = instances.list("orders", account_id=ACCOUNT, **options)
            return [one.id for one in await listed(found)]

        assert await ids() == ["i4", "i3", "i2", "i1", "i0"]
        assert await ids(per_page=2) == ["i4", "i3", "i2", "i1", "i0"]
        assert await ids(direction="asc", per_page=3) == ["i0", "i1", "i2", "i3", "i4"]
        assert await ids(status="terminated") == ["i1"]
        (third,) = (await instances.list("orders", account_id=ACCOUNT, page=3, per_page=1)).result
        assert third.id == "i2"
        assert await ids(date_start=third.created_on) == ["i4", "i3", "i2"]
        assert await ids(date_end=third.created_on) == ["i2", "i1", "i0"]
        path = f"{BASE}/orders/instances"
        first = (await served.client.get(path, params={"per_page": 4})).json()
        rest = (
            await served.client.get(
                path, params={"per_page": 4, "cursor": first["result_info"]["cursor"]}
            )
        ).json()
        assert [one["id"] for one in rest["result"]] == ["i0"]
        assert "cursor" not in rest["result_info"]
        for wrong in ({"cursor": "!"}, {"date_start": "soon"}, {"direction": "up"}):
            assert (await served.client.get(path, params=wrong)).status_code == 400


async def test_an_instance_is_paused_resumed_restarted_and_terminated(shop: Project) -> None:
    """W7; what is left of a sleep is left still after a pause (I13)."""
    async with connected(shop) as (client, served):
        await create(client, instance_id="a")
        await served.advance("30 minutes")
        paused = await change(client, "a", status="pause")
        assert paused.status == "paused"
        await served.advance("5 hours")
        resumed = await change(client, "a", status="resume")
        assert resumed.status in ("queued", "running", "waiting")
        await served.advance("29 minutes")
        assert (await get(client, "a")).steps[1].finished is False
        await served.advance("1 minute")
        assert (await get(client, "a")).steps[1].finished is True
        await change(client, "a", status="restart", from_={"name": "cool down", "type": "sleep"})
        assert len((await get(client, "a")).steps) == 2
        assert served.logs == ["charge {}"]
        await change(client, "a", status="restart")
        assert served.logs == ["charge {}"] * 2
        ended = await change(client, "a", status="terminate")
        assert ended.status == "terminated"
        shown = await get(client, "a")
        assert (shown.success, shown.steps[-1].type) == (False, "termination")
        assert await refused(change(client, "a", status="terminate")) == (
            400,
            10401,
            "workflows.api.error.instance.cannot_terminate",
        )


@pytest.mark.parametrize(
    "given",
    [
        {"status": "stop"},
        {},
        {"status": "pause", "rollback": True},
        {"status": "pause", "from": {"name": "charge"}},
        {"status": "restart", "from": {}},
        {"status": "restart", "from": {"name": "charge", "type": "nap"}},
        {"status": "restart", "from": {"name": "nope"}},
    ],
)
async def test_a_wrong_change_of_status_is_refused(shop: Project, given: Any) -> None:
    async with connected(shop) as (client, served):
        await create(client, instance_id="a")
        answer = await served.client.patch(f"{BASE}/orders/instances/a/status", json=given)
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["message"]
        assert (await get(client, "a")).status == "waiting"


async def test_events_can_come_without_a_payload_and_not_too_late(shop: Project) -> None:
    """W8: `body=None` sends an empty body (I25)."""
    async with connected(shop) as (client, served):
        await create(client, instance_id="a")
        path = f"{BASE}/orders/instances/a/events"
        assert (await served.client.post(f"{path}/other")).status_code == 200
        assert (await served.client.post(f"{path}/other", content=b"{")).status_code == 400
        answer = await served.client.post(f"{path}/a.b", json={})
        assert answer.json()["errors"][0]["message"] == (
            "workflows.api.error.workflow.invalid_event_type"
        )
        await change(client, "a", status="terminate")
        answer = await served.client.post(f"{path}/approved", json={"by": "eve"})
        assert (answer.status_code, answer.json()["errors"][0]["message"]) == (
            400,
            "workflows.api.error.instance.in_finite_state",
        )


async def test_one_step_is_shown_by_itself(shop: Project) -> None:
    """W9."""
    async with connected(shop) as (client, served):
        await create(client, instance_id="a", params={"amount": 4})
        path = f"{BASE}/orders/instances/a/step"
        answer = await served.client.get(path, params={"name": "charge-1", "type": "step"})
        assert answer.json()["result"] == {
            "status": "complete",
            "output": {"paid": 4},
            "error": None,
        }
        for wrong in ({"name": "charge-2"}, {"name": "charge-1", "attempt": 2}, {}):
            assert (await served.client.get(path, params=wrong)).status_code in (400, 404)


async def test_instances_are_deleted_and_terminated_in_numbers(shop: Project) -> None:
    """W11."""
    async with connected(shop) as (client, served):
        for id in "abc":
            await create(client, instance_id=id)
        path = f"{BASE}/orders/instances"
        answer = await served.client.post(f"{path}/batch/delete", json={"instances": ["a", "x"]})
        assert answer.json()["result"] == {
            "deleted": [{"id": "a"}],
            "errors": [
                {"id": "x", "code": 10400, "message": "workflows.api.error.instance.not_found"}
            ],
        }
        assert (await served.client.delete(f"{path}/b")).json()["result"] == {"status": "ok"}
        assert [one.id for one in served.desk.emulator.workflows["orders"].instances] == ["c"]
        answer = await served.client.put(f"{path}/terminate")
        assert answer.json()["result"] == {"status": "ok"}
        assert (await get(client, "c")).status == "terminated"


async def test_instances_of_a_binding_and_of_a_cron_say_so(shop: Project) -> None:
    async with connected(shop) as (client, served):
        await served.client.get("/")
        (one,) = await listed(client.workflows.instances.list("orders", account_id=ACCOUNT))
        assert one.trigger_source == "binding"
        await served.advance("1 day")
        (nightly,) = await listed(client.workflows.instances.list("nightly", account_id=ACCOUNT))
        assert nightly.trigger_source == "cron"
        shown = await client.workflows.instances.get(
            nightly.id, account_id=ACCOUNT, workflow_name="nightly"
        )
        assert shown.schedule.cron == "0 3 * * *"


async def test_everything_lasts(shop: Project) -> None:
    state = {"state": shop.state}
    async with connected(shop, **state) as (client, _):
        await create(client, instance_id="a", params={"amount": 4})
        before = await get(client, "a")
    async with connected(shop, **state) as (client, _):
        assert await get(client, "a") == before
