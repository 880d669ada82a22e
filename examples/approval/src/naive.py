"""The Workflow as it is often written: it holds as long as each thing happens once.

There is one type of event for all decisions, and an event is all that a wait wants: the manager's
one that comes twice is the finance department's too. And what undoes a booking stands in an
`except`, between the steps: each time `run` starts over it is done again.
"""

import uuid

import company
import entry
from entry import PATIENT


class Default(entry.Default):
    def event_type(self, role):
        return "decision"


class Approval(entry.Approval):
    async def decision(self, step, role, name, timeout):
        try:
            event = await step.wait_for_event(name, "decision", timeout=timeout)
        except Exception:
            return None
        return event["payload"]

    async def settle(self, step, flow, expense):
        @step.do("book", config=PATIENT)
        async def book():
            return await company.book(expense, key=f"{flow}.booking")

        @step.do("pay", config=PATIENT)
        async def pay():
            await company.pay(expense, key=f"{flow}.payment")

        booking = await book()
        try:
            await pay()
        except Exception:
            await company.reverse(booking, key=str(uuid.uuid4()))
            await self.tell(step, flow, expense, "not paid")
            return {"outcome": "not paid"}
        await self.tell(step, flow, expense, "paid")
        return {"outcome": "paid"}
