"""Runs of the `email` handler. Texts are those of miniflare (`validate.ts`)."""

from __future__ import annotations

import asyncio
from email.message import EmailMessage
from typing import Any

import pytest
from workers import WorkerEntrypoint

from emulator import Emulator

pytestmark = pytest.mark.asyncio


def incoming(**headers: str) -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Ada <ada@example.com>"
    message["To"] = "help@shop.example"
    message["Subject"] = "a question"
    message["Message-ID"] = "<q@example.com>"
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content("how much?")
    return message


def worker(body: Any, **config: Any) -> dict[str, Any]:
    async def email(self: Any, message: Any, env: Any, ctx: Any) -> None:
        value = body(self, message)
        if hasattr(value, "__await__"):
            await value

    main = type("Worker", (WorkerEntrypoint,), {"email": email})
    return {"main": main, "name": "shop", **config}


def answer(sender: str = "help@shop.example", **headers: str) -> Any:
    from workers import import_from_javascript

    given = {"From": sender, "To": "ada@example.com", "Message-ID": "<a@shop.example>"}
    given |= {"In-Reply-To": "<q@example.com>", "Subject": "Re: a question"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in given.items() if value]
    raw = "\r\n".join([*lines, "", "five"])
    made = import_from_javascript("cloudflare:email").EmailMessage
    return made.new("help@shop.example", "ada@example.com", raw)


async def test_the_handler_sees_the_mail_and_forwards_it() -> None:
    seen: list[Any] = []

    async def body(self: Any, message: Any) -> None:
        from js import Headers, Response

        seen.extend([message.from_, message.to, message.headers.get("subject"), message.rawSize])
        seen.append((await Response.new(message.raw).text()).splitlines()[-1])
        added = Headers.new()
        added.set("X-Seen", "yes")
        result = await message.forward("team@shop.example", added)
        seen.append(result.messageId)

    async with Emulator(worker(body)) as emulator:
        receipt = await emulator.email(incoming())
        assert receipt.outcome == "ok", receipt.error
        assert seen[:3] == ["ada@example.com", "help@shop.example", "a question"]
        assert seen[3] == len(incoming().as_bytes(policy=__import__("email").policy.SMTP))
        assert seen[4] == "how much?"
        (forwarded,) = receipt.forwarded
        assert (forwarded.to, forwarded.kind) == (("team@shop.example",), "forward")
        assert forwarded.headers["x-seen"] == "yes"
        assert forwarded.message_id == seen[5]
        assert list(emulator.emails) == [forwarded]
        assert (receipt.rejected, receipt.replies) == (None, ())
        subjects = [event.subject for event in emulator.trace if event.kind == "email_in"]
        assert subjects == ["email to help@shop.example"]


async def test_the_handler_rejects() -> None:
    async with Emulator(worker(lambda self, message: message.setReject("no room"))) as emulator:
        receipt = await emulator.email(incoming())
        assert (receipt.outcome, receipt.rejected) == ("ok", "no room")


async def test_the_handler_replies_with_mime_and_with_fields() -> None:
    async def body(self: Any, message: Any) -> None:
        await message.reply(answer())
        await message.reply(**{"from": "help@shop.example", "subject": "Re", "text": "five"})

    async with Emulator(worker(body)) as emulator:
        receipt = await emulator.email(incoming())
        assert receipt.outcome == "ok", receipt.error
        first, second = receipt.replies
        assert (first.to, first.subject) == (("ada@example.com",), "Re: a question")
        assert second.to == ("ada@example.com",)
        assert second.headers == {"In-Reply-To": "<q@example.com>", "References": "<q@example.com>"}


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"From": "x@shop.example"}, "From: header does not match mail from"),
        ({"Message_ID": ""}, "invalid message-id"),
        ({"Received": "by x"}, "invalid headers set"),
        ({"In_Reply_To": ""}, "no In-Reply-To header found in reply message"),
        ({"In_Reply_To": "<other@x>"}, "In-Reply-To does not match original Message-ID"),
        ({"References": "<other@x>"}, "provided References header is invalid"),
    ],
)
async def test_a_wrong_reply_is_refused(headers: dict[str, str], text: str) -> None:
    async def body(self: Any, message: Any) -> None:
        await message.reply(answer(**headers))

    async with Emulator(worker(body)) as emulator:
        receipt = await emulator.email(incoming())
        assert receipt.outcome == "exception"
        assert getattr(receipt.error, "message", "") == text
        assert emulator.emails == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto_Submitted": "auto-replied"},
        {"X_Auto_Response_Suppress": "All"},
        {"In_Reply_To": "<a@b>"},
        {"In_Reply_To": "<a@b>", "References": " ".join(["<a@b>"] * 100)},
    ],
)
async def test_some_mail_cannot_be_answered(headers: dict[str, str]) -> None:
    async def body(self: Any, message: Any) -> None:
        await message.reply(answer())

    async with Emulator(worker(body)) as emulator:
        receipt = await emulator.email(incoming(**headers))
        assert getattr(receipt.error, "message", "") == "Original email is not replyable"


async def test_a_handler_that_fails_or_is_missing_or_loses_its_power() -> None:
    async def fail(self: Any, message: Any) -> None:
        raise ValueError("no")

    async def ask(self: Any, message: Any) -> None:
        from workers import fetch

        await fetch("https://outside.example/")

    async with Emulator(worker(fail)) as emulator:
        receipt = await emulator.email(incoming())
        assert (receipt.outcome, repr(receipt.error)) == ("exception", "ValueError('no')")
        assert "ValueError: no" in emulator.logs[-1].text
    async with Emulator({"main": type("Worker", (WorkerEntrypoint,), {})}) as emulator:
        receipt = await emulator.email(incoming())
        assert str(receipt.error) == "Error: Handler does not export a email() function."
    plan = "fetch.GET.outside.example/#1:crash_before"
    async with Emulator(worker(ask), faults=plan) as emulator:
        assert (await emulator.email(incoming())).outcome == "canceled"


async def test_work_in_the_background_is_part_of_the_run() -> None:
    lines: list[str] = []

    async def later() -> None:
        await asyncio.sleep(10)
        lines.append("later")

    async def body(self: Any, message: Any) -> None:
        self.ctx.waitUntil(later())

    async with Emulator(worker(body)) as emulator:
        start = emulator.now
        await emulator.email(incoming())
        assert lines == ["later"]
        assert 10 <= (emulator.now - start).total_seconds() < 10.001


async def test_the_envelope_may_differ_from_the_headers() -> None:
    seen: list[Any] = []
    config = worker(lambda self, message: seen.extend([message.from_, message.to]))
    async with Emulator(config) as emulator:
        raw = incoming().as_string()
        await emulator.email(raw, sender="bounce@list.example", to="x@shop.example")
        await emulator.email(raw.encode(), worker="shop")
        assert seen == [
            "bounce@list.example",
            "x@shop.example",
            "ada@example.com",
            "help@shop.example",
        ]
        with pytest.raises(ValueError, match="give sender= and to="):
            await emulator.email("Subject: x\r\n\r\ny")
