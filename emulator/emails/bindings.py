"""What user code has of mail: `send`, and the class `EmailMessage` of `cloudflare:email`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.bindings import calls
from emulator.bindings.outbound import read_body
from emulator.emails.reading import built, check_allowed, failed, parsed
from emulator.faults.sites import site_name
from emulator.runtime.email_message import EmailMessage
from emulator.runtime.web.response import Response
from emulator.runtime.web.text import utf8
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

    from emulator.email_config import SenderConfig
    from emulator.emails.message import Content
    from emulator.emails.service import Emails


class SendEmail(HostObject):
    """A binding that sends mail."""

    js_class = "SendEmail"
    js_members = frozenset({"send"})

    def __init__(self, config: SenderConfig, service: Emails) -> None:
        self._config = config
        self._service = service
        self._site = site_name("email", config.binding, "send")

    def disconnect(self) -> None:
        """Let go of the emulator: code whose power was cut may hold this for ever."""
        del self._service

    def send(self, message: Any = UNDEFINED, *_: Any) -> Awaitable[Any]:
        """Send a mail; the answer is its `messageId`."""
        calls.caller_of()
        if isinstance(message, EmailMessage):
            return self._send_raw(message)
        try:
            content = built(message, self._config)
        except JsException as error:
            return calls.refuse(error)
        return self._send(content)

    async def _send_raw(self, message: EmailMessage) -> Any:
        to = message.to or self._config.destination or ""
        check_allowed(self._config, message.sender, (to,))
        # Here, and not in a task of the emulator's: a stream's source is the Worker's own code.
        raw = await read_mail(message)
        return await self._send(parsed(message.sender, to, raw))

    def _send(self, content: Content) -> asyncio.Future[Any]:
        invocation = calls.caller_of()
        binding = self._config.binding
        invocation.effect(f"a mail sent by {binding}")

        def perform(_: object) -> dict[str, Any]:
            return {"messageId": self._service.take(content, invocation, binding=binding)}

        return calls.call(invocation, perform, site=self._site, lost=_lost)


async def read_mail(message: EmailMessage) -> bytes:
    """The MIME of a message; its stream can be read once."""
    if isinstance(message.raw, str):
        return utf8(message.raw)
    return await read_body(Response(message.raw).take())


def _lost() -> Exception:
    """The error of a call that is not answered."""
    return failed("E_INTERNAL_SERVER_ERROR", "internal error")
