"""The main job in a few lines, without pytest: one lost ack, and two versions of a consumer."""

from pathlib import Path

import respx
from mail_service import MailService

from emulator import Emulator

CONFIG = Path(__file__).parent / "wrangler.jsonc"
PLAN = "batch.emails#1:lose_ack"  # the consumer finished, and its result was lost


async def sign_up(emulator):
    response = await emulator.fetch("/signup", method="POST", json={"email": "ada@example.com"})
    assert response.status_code == 202, response.text
    await emulator.settle()


def run(keys):
    """Run the scenario; return the mails that went out and the timeline."""
    service = MailService()
    with respx.mock() as outside:
        outside.post("https://mail.example/send").mock(side_effect=service)
        outside.post("https://audit.example/lines").respond(204)
        settings = {"IDEMPOTENCY_KEYS": keys}
        with Emulator(CONFIG, bindings=settings, faults=[PLAN]) as emulator:
            emulator.run(sign_up(emulator))
            return service.mails, emulator.trace.render()


def main():
    for title, keys in (("Without an Idempotency-Key", "off"), ("With one", "on")):
        mails, timeline = run(keys)
        count = len(mails)
        print(f"{title}, under the plan {PLAN}\n\n{timeline}")
        if count == 1:
            print("One mail was sent: this version is safe.\n")
        else:
            print(f"{count} mails were sent to {mails[0]['to']}: this version has a bug.\n")


if __name__ == "__main__":
    main()
