"""What becomes of what user code gives to `send`: the content of a mail, or an error.

The errors have the codes of the documentation (Email Service, "Workers API"); their texts are those
of the local runtime (miniflare, `send_email.worker.ts`) where it has one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from email import message_from_bytes, policy
from email.utils import parseaddr
from typing import TYPE_CHECKING, Any, Final

from emulator.emails.message import Attachment, Content
from emulator.runtime.js_text import display
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    JsException,
    LiteralMap,
    ProxiedDict,
    ProxiedList,
    TypedArray,
)

if TYPE_CHECKING:
    from email.message import EmailMessage as Parsed

    from emulator.email_config import SenderConfig

MOST_RECIPIENTS: Final = 50
MOST_BYTES: Final = 25 * 1024 * 1024
_NAMED: Final = re.compile(r"<([^>]+)>$")
_ADDRESS: Final = re.compile(r"[^@\s,]+@[^@\s,]+")


def failed(code: str, text: str) -> JsException:
    """The error of a mail that is not sent."""
    error = JsException("Error", text)
    error.__dict__["code"] = code
    return error


def built(builder: Any, config: SenderConfig) -> Content:
    """Return the content of a mail that is given field by field; raises `JsException`."""
    if not isinstance(builder, (Mapping, LiteralMap)) or isinstance(builder, ProxiedDict):
        raise _not_an_object()
    sender = _address(_needed(builder, "from"), "from")
    to, cc, bcc = (_addresses(builder, name) for name in ("to", "cc", "bcc"))
    if not to and config.destination is not None:
        to = (config.destination,)
    count = len(to) + len(cc) + len(bcc)
    if not count:
        raise failed("E_FIELD_MISSING", "at least one of to, cc, bcc is required")
    if count > MOST_RECIPIENTS:
        text = f"too many recipients: {count}, the most are {MOST_RECIPIENTS}"
        raise failed("E_TOO_MANY_RECIPIENTS", text)
    subject = display(_needed(builder, "subject"))
    check_allowed(config, sender, to)
    content = Content(
        sender=sender,
        to=to,
        cc=cc,
        bcc=bcc,
        subject=subject,
        text=_text(builder, "text"),
        html=_text(builder, "html"),
        headers=_headers(builder),
        attachments=tuple(map(_attachment, _items(builder, "attachments"))),
    )
    _check_size(content)
    return content


def parsed(sender: str, to: str, raw: bytes) -> Content:
    """Return the content of a mail that is given as MIME; raises `JsException`."""
    if len(raw) > MOST_BYTES:
        raise failed("E_CONTENT_TOO_LARGE", f"the mail has {len(raw)} bytes")
    mail: Parsed = message_from_bytes(raw, policy=policy.default)
    if mail["Message-ID"] is None:
        raise failed("E_VALIDATION_ERROR", "invalid message-id")
    if parseaddr(str(mail["From"] or ""))[1] != sender:
        raise failed("E_VALIDATION_ERROR", "From: header does not match mail from")
    if mail["Received"] is not None:
        raise failed("E_VALIDATION_ERROR", "invalid headers set")
    return read(sender, to, raw, mail)


def read(sender: str, to: str, raw: bytes, mail: Parsed) -> Content:
    """Return the content of a mail whose headers are nobody's to check."""
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    return Content(
        sender=sender,
        to=(to,),
        subject=str(mail["Subject"] or ""),
        text=None if text is None else text.get_content(),
        html=None if html is None else html.get_content(),
        headers={name: str(value) for name, value in mail.items()},
        attachments=tuple(map(_file, mail.iter_attachments())),
        raw=raw,
    )


def _file(part: Any) -> Attachment:
    content = part.get_payload(decode=True)
    return Attachment(part.get_filename() or "", part.get_content_type(), content or b"")


def check_allowed(config: SenderConfig, sender: str, to: tuple[str, ...]) -> None:
    """Raise the error of a sender or a recipient that the binding does not allow."""
    if config.senders is not None and sender not in config.senders:
        raise failed("E_SENDER_NOT_VERIFIED", f"email from {sender} not allowed")
    for one in to:
        only = config.destination
        if (only is not None and one != only) or (
            config.destinations is not None and one not in config.destinations
        ):
            raise failed("E_RECIPIENT_NOT_ALLOWED", f"email to {one} not allowed")


def _not_an_object() -> JsException:
    error = failed("E_VALIDATION_ERROR", "the mail is neither an EmailMessage nor an object")
    error.add_note(
        "A dict of Python is no object of JavaScript: give the fields as keyword arguments, or "
        "to_js(mail, dict_converter=Object.fromEntries)."
    )
    return error


def _needed(builder: Any, name: str) -> Any:
    value = builder.get(name, UNDEFINED)
    if value is UNDEFINED or value is None:
        raise failed("E_FIELD_MISSING", f"{name} is required")
    return value


def _text(builder: Any, name: str) -> str | None:
    value = builder.get(name, UNDEFINED)
    return None if value is UNDEFINED or value is None else display(value)


def _items(builder: Any, name: str) -> list[Any]:
    value = builder.get(name, UNDEFINED)
    if value is UNDEFINED or value is None:
        return []
    if isinstance(value, (ProxiedList, ProxiedDict)):
        error = failed("E_VALIDATION_ERROR", f"{name} is not an array")
        error.add_note(f"A list of Python is no array of JavaScript: give to_js({name}).")
        raise error
    return value if isinstance(value, list) else [value]


def _addresses(builder: Any, name: str) -> tuple[str, ...]:
    return tuple(_address(item, name) for item in _items(builder, name))


def _address(value: Any, name: str) -> str:
    """The bare address in `ada@example.com`, `Ada <ada@example.com>` or an object."""
    if isinstance(value, (Mapping, LiteralMap)):
        value = value.get("email", UNDEFINED)
    found = _NAMED.search(display(value))
    address = (found[1] if found else display(value)).strip()
    if not _ADDRESS.fullmatch(address):
        raise failed("E_VALIDATION_ERROR", f"{name} is no address: {address}")
    return address


def _headers(builder: Any) -> dict[str, str]:
    value = builder.get("headers", UNDEFINED)
    if not isinstance(value, (Mapping, LiteralMap)):
        return {}
    return {str(name): display(text) for name, text in value.items()}


def _attachment(value: Any) -> Attachment:
    if not isinstance(value, (Mapping, LiteralMap)):
        raise failed("E_VALIDATION_ERROR", "an attachment is not an object")
    content = _needed(value, "content")
    if isinstance(content, (bytes, ArrayBuffer, TypedArray)):
        data = bytes(content)
    else:
        try:
            data = base64.b64decode(display(content), validate=True)
        except ValueError:
            text = "the content of an attachment is not base64"
            raise failed("E_VALIDATION_ERROR", text) from None
    return Attachment(display(_needed(value, "filename")), display(_needed(value, "type")), data)


def _check_size(content: Content) -> None:
    texts = (content.subject, content.text or "", content.html or "")
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    size += sum(len(one.content) for one in content.attachments)
    if size > MOST_BYTES:
        raise failed("E_CONTENT_TOO_LARGE", f"the mail has {size} bytes")
