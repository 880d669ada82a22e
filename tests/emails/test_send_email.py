"""Mail that Workers send. Texts are those of miniflare (`send_email.worker.ts`)."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from workers import Response, WorkerEntrypoint

from emulator import ConfigError, Emulator, WorkerCrashed
from emulator.emails.message import Attachment

pytestmark = pytest.mark.asyncio

SENDERS = [{"name": "MAIL"}]
MIME = (
    "From: Shop <shop@shop.example>\r\nTo: ada@example.com\r\nMessage-ID: <1@shop.example>\r\n"
    "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
    "hello\r\n"
)


def worker(body: Any, **config: Any) -> dict[str, Any]:
    async def fetch(self: Any, request: Any) -> Any:
        return Response.json(await body(self.env.MAIL))

    main = type("Worker", (WorkerEntrypoint,), {"fetch": fetch})
    return {"main": main, "name": "shop", "send_email": SENDERS, **config}


async def told(call: Any) -> Any:
    try:
        return await call()
    except Exception as error:
        code = getattr(error, "code", None)
        return [code, error.message]  # type: ignore[attr-defined]


def mail(**fields: Any) -> dict[str, Any]:
    return {"from": "shop@shop.example", "to": "ada@example.com", "subject": "hi", **fields}


def made(**fields: Any) -> Any:
    """The same as an object of JavaScript's."""
    from js import Object
    from pyodide.ffi import to_js

    return to_js(mail(**fields), dict_converter=Object.fromEntries)


@pytest.mark.parametrize("date", ["2026-04-20", "2026-09-08"])
async def test_a_mail_given_field_by_field(date: str) -> None:
    data = base64.b64encode(b"1,2").decode()

    async def body(sender: Any) -> Any:
        result = await sender.send(
            made(
                **{"from": {"email": "shop@shop.example", "name": "Shop"}},
                to=["Ada <ada@example.com>", "bob@example.com"],
                cc="eve@example.com",
                text="t",
                html="<p>h</p>",
                headers={"X-Order": "7"},
                attachments=[{"filename": "a.csv", "type": "text/csv", "content": data}],
            )
        )
        return result.messageId

    async with Emulator(worker(body, compatibility_date=date)) as emulator:
        id = (await emulator.fetch("/")).json()
        (sent,) = emulator.emails
        assert (sent.sender, sent.to) == (
            "shop@shop.example",
            ("ada@example.com", "bob@example.com"),
        )
        assert (sent.cc, sent.bcc) == (("eve@example.com",), ())
        assert (sent.subject, sent.text, sent.html) == ("hi", "t", "<p>h</p>")
        assert sent.headers == {"X-Order": "7"}
        assert sent.attachments == (Attachment("a.csv", "text/csv", b"1,2"),)
        assert (sent.raw, sent.kind, sent.binding, sent.worker) == (None, "send", "MAIL", "shop")
        assert sent.at == datetime(2026, 1, 1, tzinfo=UTC)
        assert sent.message_id == id
        assert len(id) == len("<@shop.example>") + 36
        assert id.endswith("@shop.example>")


@pytest.mark.parametrize("date", ["2026-04-20", "2026-09-08"])
async def test_keyword_arguments_make_an_object_and_a_dict_is_none(date: str) -> None:
    async def body(sender: Any) -> Any:
        return [
            (await sender.send(**mail(text="t"))).messageId != "",
            await told(lambda: sender.send(mail())),
            await told(lambda: sender.send(**mail(to=["ada@example.com"]))),
        ]

    async with Emulator(worker(body, compatibility_date=date)) as emulator:
        assert (await emulator.fetch("/")).json() == [
            True,
            ["E_VALIDATION_ERROR", "the mail is neither an EmailMessage nor an object"],
            ["E_VALIDATION_ERROR", "to is not an array"],
        ]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_mail_given_as_mime(stream: bool) -> None:
    async def body(sender: Any) -> Any:
        from js import Response as JsResponse
        from workers import import_from_javascript

        EmailMessage = import_from_javascript("cloudflare:email").EmailMessage
        raw = JsResponse.new(MIME).body if stream else MIME
        message = EmailMessage.new("shop@shop.example", "ada@example.com", raw)
        assert (message.from_, message.to) == ("shop@shop.example", "ada@example.com")
        return (await sender.send(message)).messageId

    async with Emulator(worker(body)) as emulator:
        await emulator.fetch("/")
        (sent,) = emulator.emails
        assert (sent.sender, sent.to, sent.subject) == (
            "shop@shop.example",
            ("ada@example.com",),
            "Grüße",
        )
        assert sent.text is not None
        assert sent.text.strip() == "hello"
        assert sent.raw == MIME.encode()
        assert sent.headers["Message-ID"] == "<1@shop.example>"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("Message-ID: <1@shop.example>\r\n", ""), "invalid message-id"),
        (("shop@shop.example>\r\nTo", "x@shop.example>\r\nTo"), "From: header does not match"),
        (("Subject", "Received: by x\r\nSubject"), "invalid headers set"),
    ],
)
async def test_mime_is_checked(change: tuple[str, str], text: str) -> None:
    async def body(sender: Any) -> Any:
        from workers import import_from_javascript

        EmailMessage = import_from_javascript("cloudflare:email").EmailMessage
        raw = MIME.replace(*change)
        assert raw != MIME
        message = EmailMessage.new("shop@shop.example", "ada@example.com", raw)
        return await told(lambda: sender.send(message))

    async with Emulator(worker(body)) as emulator:
        code, message = (await emulator.fetch("/")).json()
        assert code == "E_VALIDATION_ERROR"
        assert message.startswith(text)
        assert emulator.emails == []


async def test_what_is_wrong_with_a_mail_has_a_code() -> None:
    async def body(sender: Any) -> Any:
        from js import undefined

        crowd = [f"{n}@example.com" for n in range(51)]
        bad = [{"filename": "a", "type": "b", "content": "???"}]
        return [
            await told(lambda: sender.send()),
            await told(lambda: sender.send(made(**{"from": undefined}))),
            await told(lambda: sender.send(made(subject=undefined))),
            await told(lambda: sender.send(made(to=undefined))),
            await told(lambda: sender.send(made(to="ada"))),
            await told(lambda: sender.send(made(to=crowd))),
            await told(lambda: sender.send(made(attachments=bad))),
        ]

    async with Emulator(worker(body)) as emulator:
        assert (await emulator.fetch("/")).json() == [
            ["E_VALIDATION_ERROR", "the mail is neither an EmailMessage nor an object"],
            ["E_FIELD_MISSING", "from is required"],
            ["E_FIELD_MISSING", "subject is required"],
            ["E_FIELD_MISSING", "at least one of to, cc, bcc is required"],
            ["E_VALIDATION_ERROR", "to is no address: ada"],
            ["E_TOO_MANY_RECIPIENTS", "too many recipients: 51, the most are 50"],
            ["E_VALIDATION_ERROR", "the content of an attachment is not base64"],
        ]
        assert emulator.emails == []


async def test_a_binding_may_be_restricted() -> None:
    async def body(sender: Any) -> Any:
        return [
            await told(lambda: sender.send(made(to="eve@example.com"))),
            await told(lambda: sender.send(made(**{"from": "other@shop.example"}))),
            (await sender.send(made())).messageId != "",
        ]

    allow = {
        "allowed_destination_addresses": ["ada@example.com"],
        "allowed_sender_addresses": ["shop@shop.example"],
    }
    config = worker(body, send_email=[{"name": "MAIL", **allow}])
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).json() == [
            ["E_RECIPIENT_NOT_ALLOWED", "email to eve@example.com not allowed"],
            ["E_SENDER_NOT_VERIFIED", "email from other@shop.example not allowed"],
            True,
        ]
        assert [sent.to for sent in emulator.emails] == [("ada@example.com",)]


async def test_a_binding_with_one_destination_needs_no_recipient() -> None:
    async def body(sender: Any) -> Any:
        from js import undefined

        await sender.send(made(to=undefined))
        return await told(lambda: sender.send(made()))

    only = [{"name": "MAIL", "destination_address": "ops@shop.example"}]
    async with Emulator(worker(body, send_email=only)) as emulator:
        assert (await emulator.fetch("/")).json() == [
            "E_RECIPIENT_NOT_ALLOWED",
            "email to ada@example.com not allowed",
        ]
        assert [sent.to for sent in emulator.emails] == [("ops@shop.example",)]


@pytest.mark.parametrize("action", ["crash_before", "fail", "crash_after", "lose_reply"])
async def test_each_fault_of_a_mail(action: str) -> None:
    async def body(sender: Any) -> Any:
        return await told(lambda: sender.send(made()))

    plan = f"email.MAIL.send#1:{action}"
    async with Emulator(worker(body), faults=plan) as emulator:
        if action.startswith("crash"):
            with pytest.raises(WorkerCrashed):
                await emulator.fetch("/")
        else:
            assert (await emulator.fetch("/")).json() == [
                "E_INTERNAL_SERVER_ERROR",
                "internal error",
            ]
        assert [str(fault) for fault in emulator.faults.fired] == [plan]
        assert len(emulator.emails) == (action in ("crash_after", "lose_reply"))


async def test_sent_mail_survives_a_restart(tmp_path: Any) -> None:
    async def body(sender: Any) -> Any:
        files = [{"filename": "a", "type": "b", "content": base64.b64encode(b"c").decode()}]
        await sender.send(made(attachments=files, cc=["eve@example.com"]))

    config = worker(body)
    async with Emulator(config, state=tmp_path / "state") as emulator:
        await emulator.fetch("/")
        sent = list(emulator.emails)
        assert len(sent) == 1
        await emulator.restart()
        assert list(emulator.emails) == sent
    async with Emulator(config, state=tmp_path / "state") as emulator:
        assert list(emulator.emails) == sent
        await emulator.reset()
        assert list(emulator.emails) == []


async def test_secrets_in_a_mail_are_masked_in_the_trace(tmp_path: Any) -> None:
    (tmp_path / ".dev.vars").write_text("TOKEN=s3cr3t-token\n")
    (tmp_path / "entry.py").write_text(
        "from workers import Response, WorkerEntrypoint\n"
        "class Default(WorkerEntrypoint):\n"
        "    async def fetch(self, request):\n"
        "        mail = {'from': 'a@b.example', 'to': 'c@d.example', 'subject': self.env.TOKEN}\n"
        "        await self.env.MAIL.send(**mail)\n"
        "        self.env.AE.writeDataPoint({'blobs': [self.env.TOKEN]})\n"
        "        return Response('ok')\n"
    )
    (tmp_path / "wrangler.jsonc").write_text(
        '{"name": "w", "main": "entry.py", "compatibility_date": "2026-09-01",'
        ' "compatibility_flags": ["python_workers"], "send_email": [{"name": "MAIL"}],'
        ' "analytics_engine_datasets": [{"binding": "AE"}]}'
    )
    async with Emulator(tmp_path / "wrangler.jsonc") as emulator:
        assert (await emulator.fetch("/")).text == "ok"
        assert emulator.emails[0].subject == "s3cr3t-token"
        for text in (emulator.trace.render(), emulator.trace.to_jsonl()):
            assert "s3cr3t-token" not in text
            assert text.count("[secret TOKEN]") == 2


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({}, 'bindings should have a string "name" field but got'),
        (
            {"name": "M", "destination_address": "a", "allowed_destination_addresses": ["b"]},
            'bindings should have either a "destination_address" or "allowed_destination_addr',
        ),
        (
            {"name": "M", "destination_address": 5},
            'optionally, have a string "destination_address"',
        ),
        ({"name": "M", "allowed_sender_addresses": "a"}, "allowed_sender_addresses is"),
    ],
)
async def test_a_wrong_config_of_mail_is_refused(item: Any, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Emulator(worker(None, send_email=[item]))
    assert text in str(caught.value)
