"""Faults armed in a running server, and why some are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from served_project import CONFIG, Project

from emulator.errors import PlanError
from emulator.server.arming import arm

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

MORE = """
  "kv_namespaces": [{"binding": "PAGES", "id": "pages"}],
  "services": [{"binding": "SELF", "service": "WORKER"}],
  "main"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("send.emials#1:fail", "there is no binding to a queue emials; there are: jobs"),
        ("message.emials#1:drop", "there is no queue emials; there are: jobs"),
        ("batch.emials#1:fail", "there is no queue with a consumer that is a Worker emials"),
        ("step.none.charge#1:fail", "there is no Workflow none; there are: "),
        ("create.none#1:fail", "there is no Workflow none"),
        ("kv.PAGE.get#1:fail", "there is no kv binding PAGE; there are: PAGES"),
        ("kv.P?[!G].get#1:fail", "there is no kv binding P?[!G]; there are: PAGES"),
        ("d1.PAGES.run#1:fail", "there is no d1 binding PAGES; there are: none"),
        ("r2.FILES.get#*:fail", "there is no r2 binding FILES; there are: none"),
        ("ratelimit.X.limit#1:fail", "there is no ratelimit binding X; there are: none"),
        ("email.X.send#1:fail", "there is no email binding X; there are: none"),
        ("service.X.fetch#1:fail", "there is no service binding X; there are: SELF"),
        ("object.X.enter#1:evict", "there is no Durable Object binding X"),
        ("storage.X.put#1:crash_after", "there is no Durable Object binding X"),
        ("alarm.X#1:duplicate", "there is no Durable Object binding X"),
        ("websocket.X.message#1:evict", "there is no Worker, and no Durable Object binding, X"),
        ("cron.X#1:miss", "there is no Worker X; there are: "),
        ("wait_until.X#1:evict", "there is no Worker X; there are: "),
        ("tail.X#1:drop", "there is no Worker that is a tail consumer X; there are: none"),
        (
            "request.GET./#1:lose_reply",
            "that occurrence has passed; the next one is request.GET./#",
        ),
    ],
)
async def test_a_fault_that_can_never_fire_is_refused_with_the_reason(
    project: Project, fault: str, why: str
) -> None:
    project.write("wrangler.jsonc", _config(project))
    async with project.served() as served:
        await served.client.get("/")
        with pytest.raises(PlanError) as caught:
            await arm(served.desk, ["request.GET./x#1:crash_before", fault])
        assert str(caught.value).startswith(f"{fault} can never fire: {why}")
        assert served.desk.emulator.faults.plan == ()


@pytest.mark.parametrize(
    "fault",
    [
        *("send.jobs#1:fail", "message.*#1:drop", "batch.j?bs#1:fail", "kv.P*.get#1:fail"),
        *("service.SELF.fetch#1:fail", "request.GET./#2:lose_reply", "request.GET./#*:lose_reply"),
        *("fetch.GET.mail.example/#1:fail", "schedule:7", "cache.other.put#1:crash_after"),
    ],
)
async def test_a_fault_that_may_fire_is_planned(project: Project, fault: str) -> None:
    project.write("wrangler.jsonc", _config(project))
    async with project.served() as served:
        await served.client.get("/")
        assert await arm(served.desk, fault) == [fault]
        assert [str(planned) for planned in served.desk.emulator.faults.plan] == [fault]


async def test_an_empty_plan_arms_nothing_and_says_so(project: Project) -> None:
    async with project.served() as served:
        with pytest.raises(PlanError, match="the plan is empty"):
            await arm(served.desk, " ; ")


PAGE = "/cdn-cgi/emulator/faults"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ('{"add": "send.emials#1:fail"}', "send.emials#1:fail can never fire: there is no binding"),
        ('{"add": ["send.jobs#1:fail", "x"]}', "no kind of site is called"),
        ('{"add": []}', "give "),
        ('{"add": {"site": "send.jobs"}}', "give "),
        ('{"add": [7]}', "a fault is a text such as"),
        ('{"plan": "send.jobs#1:fail"}', "give "),
        ("[]", "give "),
        ("{", "the body is no JSON"),
    ],
)
async def test_the_page_says_why_nothing_is_armed(project: Project, body: str, error: str) -> None:
    async with project.served() as served:
        answer = await served.client.post(PAGE, content=body)
        assert answer.status_code == 400
        assert error in answer.json()["error"]
        assert (await served.client.get(PAGE)).json()["plan"] == []


async def test_the_page_says_why_a_fault_did_not_fire_and_masks_secrets(project: Project) -> None:
    project.write(".dev.vars", "KEY=k-12345-secret\n")
    async with project.served() as served:
        await served.client.get("/k-12345-secret")
        plan = "request.GET./k-12345-secret#2:lose_reply"
        await served.client.post(PAGE, json={"add": plan})
        for page in (PAGE, "/cdn-cgi/emulator/dashboard/faults"):
            told = (await served.client.get(page)).json()
            shown = told["plan"][0]["fault"]
            assert shown == "request.GET./[secret KEY]#2:lose_reply"
            assert "[secret KEY] was met once only" in told["plan"][0]["why"]
            site = told["sites"][0]
            assert site.get("label", site["site"]) == "request.GET./[secret KEY]"


async def test_a_site_of_another_site_may_arm_nothing(project: Project) -> None:
    async with project.served() as served:
        headers = {"origin": "https://evil.example"}
        for method in ("POST", "DELETE"):
            answer = await served.client.request(
                method, PAGE, content='{"add": "send.jobs#1:fail"}', headers=headers
            )
            assert answer.status_code == 403
        assert served.desk.emulator.faults.plan == ()


def _config(project: Project) -> str:
    name = CONFIG.split('"name": "')[1].split('"')[0]
    return CONFIG.replace('"main"', MORE.replace("WORKER", name).strip(), 1)
