"""Expenses: approved by people, reminded of and rejected by time, booked, paid, or booked back."""

import json
import re
from urllib.parse import urlsplit

import company
from pyodide.ffi import JsException
from workers import Response, WorkerEntrypoint, WorkflowEntrypoint
from workers.workflows import NonRetryableError

LARGE = 1000  # from here on the finance department decides too
ROLES = ("manager", "finance")
# After 1, 2, 4, ... min: two hours in all.
PATIENT = {"retries": {"limit": 7, "delay": "1 minute", "backoff": "exponential"}}


class Approval(WorkflowEntrypoint):
    async def run(self, event, step):
        expense, flow = event["payload"], event["instanceId"]
        for role in ROLES if expense["amount"] >= LARGE else ROLES[:1]:
            if not await self.is_approved(step, flow, expense, role):
                await self.tell(step, flow, expense, "rejected")
                return {"outcome": "rejected", "by": role}
        return await self.settle(step, flow, expense)

    async def is_approved(self, step, flow, expense, role):
        """Ask somebody; remind them after 3 days, and take 4 more without an answer for a no."""

        @step.do(f"ask-{role}", config=PATIENT)
        async def ask():
            await company.say(role, f"{expense['id']}?", key=f"{flow}.ask-{role}")

        @step.do(f"remind-{role}", config=PATIENT)
        async def remind():
            await company.say(role, f"{expense['id']}!", key=f"{flow}.remind-{role}")

        await ask()
        decision = await self.decision(step, role, f"{role}-decides", "3 days")
        if decision is None:
            await remind()
            decision = await self.decision(step, role, f"{role}-decides-at-last", "4 days")
        return decision is not None and decision["approved"]

    async def decision(self, step, role, name, timeout):
        """Wait for somebody's decision; None if there is none in time."""
        try:
            # A type for each role: an event that comes twice must not count for the next one.
            event = await step.wait_for_event(name, f"{role}-decision", timeout=timeout)
        except JsException as error:
            if "Execution timed out" not in str(error):
                raise
            return None
        return event["payload"]

    async def settle(self, step, flow, expense):
        """Book an approved expense and pay it; if the bank refuses, book it back."""

        @step.do("book", config=PATIENT)
        async def book():
            return await company.book(expense, key=f"{flow}.booking")

        @step.do("pay", config=PATIENT)
        async def pay():
            await company.pay(expense, key=f"{flow}.payment")

        @step.do("book-back", config=PATIENT)
        async def book_back():
            await company.reverse(booking, key=f"{flow}.reversal")

        booking = await book()
        try:
            await pay()
        except NonRetryableError:
            # Only this: without an answer from the bank nobody knows whether it has paid.
            await book_back()
            await self.tell(step, flow, expense, "not paid")
            return {"outcome": "not paid"}
        await self.tell(step, flow, expense, "paid")
        return {"outcome": "paid"}

    async def tell(self, step, flow, expense, outcome):
        @step.do("tell-employee", config=PATIENT)
        async def tell():
            await company.say(
                expense["employee"], f"{expense['id']}: {outcome}", key=f"{flow}.outcome"
            )

        await tell()


class Default(WorkerEntrypoint):
    # Who may call what is left out here; Cloudflare Access can tell who somebody is.

    async def fetch(self, request):
        path = urlsplit(request.url).path
        if request.method != "POST":
            return Response("use POST", status=405, headers={"Allow": "POST"})
        body = await read_object(request)
        if path == "/expenses":
            return await self.submit(body)
        decided = re.fullmatch(rf"/expenses/([\w-]+)/({'|'.join(ROLES)})", path, re.ASCII)
        if decided is None:
            return Response("not found", status=404)
        return await self.decide(*decided.groups(), body)

    async def submit(self, body):
        expense = read_expense(body)
        if expense is None:
            return Response.json({"error": "an id, an employee and an amount"}, status=400)
        try:
            await self.env.APPROVAL.create({"id": expense["id"], "params": expense})
        except JsException as error:
            if "instance.already_exists" not in str(error):
                raise
        return Response.json({"expense": expense["id"]}, status=202)

    async def decide(self, expense_id, role, body):
        if not isinstance(body.get("approved"), bool):
            return Response.json({"error": "approved, or not?"}, status=400)
        try:
            instance = await self.env.APPROVAL.get(expense_id)
            await instance.send_event(
                {"type": self.event_type(role), "payload": {"approved": body["approved"]}}
            )
        except JsException as error:
            if "instance.not_found" in str(error):
                return Response("no such expense", status=404)
            if "instance.in_finite_state" in str(error):
                return Response("too late", status=409)
            raise
        return Response.json({"expense": expense_id}, status=202)

    def event_type(self, role):
        return f"{role}-decision"


async def read_object(request):
    """Return the object in a request's body, an empty one if there is none."""
    try:
        body = json.loads(await request.text())
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def read_expense(body):
    """Return the expense in a body, None if there is none."""
    expense = {key: body.get(key) for key in ("id", "employee", "amount")}
    if not all(isinstance(expense[key], str) and expense[key] for key in ("id", "employee")):
        return None
    if type(expense["amount"]) not in (int, float) or not expense["amount"] > 0:
        return None
    # It becomes the instance's id.
    return expense if re.fullmatch(r"\w[\w-]{0,99}", expense["id"], re.ASCII) else None
