"""Onboarding: an account and a mail at once, another mail after 3 days, a subscription after 30."""

import json
import re
from urllib.parse import urlsplit

import billing
from pyodide.ffi import JsException
from workers import Response, WorkerEntrypoint, WorkflowEntrypoint, fetch

MAIL = "https://mail.example/send"
DAY = 24 * 60 * 60 * 1000  # in Workflows a number is milliseconds
# After 30 s, 1, 2, 4, ... min: the billing service may be down for four hours.
PATIENT = {"retries": {"limit": 9, "delay": "30 seconds", "backoff": "exponential"}}


class Onboarding(WorkflowEntrypoint):
    async def run(self, event, step):
        customer = event["payload"]
        # The same at each attempt and each replay: keys made of it say what, not which attempt.
        flow = event["instanceId"]

        @step.do("create-billing-account", config=PATIENT)
        async def create_account():
            return await billing.create_account(customer, key=f"{flow}.account")

        @step.do("welcome-mail")
        async def welcome():
            await self.send_mail(customer, "Welcome", key=f"{flow}.welcome")

        @step.do("follow-up-mail")
        async def follow_up():
            await self.send_mail(customer, "How is it going?", key=f"{flow}.follow-up")

        account = await create_account()
        await welcome()
        await step.sleep("three-days", "3 days")
        await follow_up()
        await step.sleep("rest-of-the-trial", 27 * DAY)

        @step.do("start-subscription", config=PATIENT)
        async def subscribe():
            await billing.start_subscription(account, key=f"{flow}.subscription")

        await subscribe()
        return {"account": account}

    async def send_mail(self, customer, subject, key):
        # Not `message.id`: a step that runs twice sends two messages.
        await self.env.MAILS.send({"to": customer["email"], "subject": subject, "key": key})


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        if urlsplit(request.url).path != "/customers":
            return Response("not found", status=404)
        if request.method != "POST":
            return Response("use POST", status=405, headers={"Allow": "POST"})
        customer = await read_customer(request)
        if customer is None:
            return Response.json({"error": "a customer has an id and an email"}, status=400)
        instance_id = f"customer-{customer['id']}"
        try:
            await self.env.ONBOARDING.create({"id": instance_id, "params": customer})
        except JsException as error:
            # The client got no answer the first time, or clicked twice.
            if "instance.already_exists" not in str(error):
                raise
        return Response.json({"onboarding": instance_id}, status=202)

    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            mail = {"to": message.body["to"], "subject": message.body["subject"]}
            headers = {"Content-Type": "application/json", "Idempotency-Key": message.body["key"]}
            response = await fetch(MAIL, method="POST", headers=headers, body=json.dumps(mail))
            response.raise_for_status()
            message.ack()


async def read_customer(request):
    """Return the customer in a request's body, None if there is none."""
    try:
        body = json.loads(await request.text())
        customer = {"id": body["id"], "email": body["email"]}
    except (ValueError, TypeError, KeyError):
        return None
    if not all(isinstance(value, str) for value in customer.values()):
        return None
    # The id becomes part of an instance's, which may have 100 characters.
    plain = re.fullmatch(r"[\w-]{1,80}", customer["id"], re.ASCII)
    return customer if plain and "@" in customer["email"] else None
