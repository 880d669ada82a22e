"""The Workflow as it is often written: a step is taken for something that happens once.

A step's *result* is kept, once there is one. If the isolate goes between the effect and that
moment, the step runs again, and each of its attempts has a key of its own here. What stands between
the steps, such as the mails, happens again each time `run` starts over.
"""

import uuid

import billing
import entry
from entry import DAY, PATIENT

Default = entry.Default


class Onboarding(entry.Onboarding):
    async def run(self, event, step):
        customer = event["payload"]

        @step.do("create-billing-account", config=PATIENT)
        async def create_account():
            return await billing.create_account(customer, key=str(uuid.uuid4()))

        account = await create_account()
        await self.send_mail(customer, "Welcome", key=str(uuid.uuid4()))
        await step.sleep("three-days", "3 days")
        await self.send_mail(customer, "How is it going?", key=str(uuid.uuid4()))
        await step.sleep("rest-of-the-trial", 27 * DAY)

        @step.do("start-subscription", config=PATIENT)
        async def subscribe():
            await billing.start_subscription(account, key=str(uuid.uuid4()))

        await subscribe()
        return {"account": account}
