"""wrangler against a server of its own: what its users would type.

It needs Node and wrangler, which are no part of this project: the executable is the one that the
environment variable WRANGLER names, or else `wrangler` on the PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from rest_bucket import write_bucket
from rest_server import running
from rest_stores import CACHE, write_stores
from rest_workflow import write_workflow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from served_project import Project

WRANGLER = os.environ.get("WRANGLER") or shutil.which("wrangler")
pytestmark = [
    pytest.mark.skipif(
        WRANGLER is None, reason="needs wrangler: put it on the PATH, or set WRANGLER"
    ),
    pytest.mark.timeout(300),
]


class Wrangler:
    """Runs wrangler with the REST API of a server."""

    def __init__(self, address: str, folder: Path) -> None:
        self._folder = folder
        self._environment = {
            **{key: value for key, value in os.environ.items() if "proxy" not in key.lower()},
            "CLOUDFLARE_API_BASE_URL": f"{address}/cdn-cgi/emulator/client/v4",
            "CLOUDFLARE_API_TOKEN": "any",
            "CLOUDFLARE_ACCOUNT_ID": "0123456789abcdef0123456789abcdef",
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder),
            "CI": "1",
            "NO_COLOR": "1",
            "FORCE_COLOR": "0",
            "WRANGLER_SEND_METRICS": "false",
        }

    def __call__(self, command: str, *, fails: bool = False) -> str:
        """Run a command; returns all that it printed."""
        assert WRANGLER is not None
        done = subprocess.run(
            [WRANGLER, *command.split()],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        printed = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, printed
        return printed


@contextmanager
def wrangler_of(project: Project, folder: Path) -> Iterator[Wrangler]:
    folder.mkdir()
    with running(project) as address:
        yield Wrangler(address, folder)


def test_queues(project: Project, tmp_path: Path) -> None:
    with wrangler_of(project, tmp_path / "elsewhere") as wrangler:
        wrangler("queues create reports --delivery-delay-secs 5 --message-retention-period-secs 60")
        assert re.search(r"reports\b.*│ 0", wrangler("queues list"))
        assert "is already taken" in wrangler("queues create reports", fails=True)
        assert 'Queue "nope" does not exist' in wrangler("queues info nope", fails=True)
        wrangler("queues update reports --delivery-delay-secs 7")
        wrangler("queues pause-delivery reports")
        wrangler("queues resume-delivery reports")
        wrangler("queues purge reports --force")
        wrangler(
            "queues consumer http add reports --batch-size 7 --message-retries 2 "
            "--dead-letter-queue graves --visibility-timeout-secs 45 --retry-delay-secs 3"
        )
        info = wrangler("queues info reports")
        assert "Number of Consumers: 1" in info
        assert "HTTP Pull Consumer." in info
        assert "already has a consumer" in wrangler("queues consumer add reports demo", fails=True)
        assert "serves as dead letter queue" in wrangler("queues delete graves", fails=True)
        wrangler("queues consumer http remove reports")
        wrangler("queues consumer add reports demo --batch-size 4 --batch-timeout 2")
        assert "Consumers: worker:demo" in wrangler("queues info reports")
        refused = wrangler("queues consumer add graves demo --batch-size 400", fails=True)
        assert "The specified consumer settings are invalid" in refused
        wrangler("queues consumer remove reports demo")
        wrangler("queues delete reports")
        assert "reports" not in wrangler("queues list")


def test_workflows(project: Project, tmp_path: Path) -> None:
    write_workflow(project)
    with wrangler_of(project, tmp_path / "elsewhere") as wrangler:
        assert "orders" in wrangler("workflows list")
        assert "Orders" in wrangler("workflows describe orders")
        assert "has been queued" in wrangler('workflows trigger orders {"amount":3} --id first')
        assert "first" in wrangler("workflows instances list orders")
        shown = wrangler("workflows instances describe orders first")
        assert "charge-1" in shown
        assert '{"paid":3}' in shown
        assert "cool" in wrangler("workflows instances describe orders latest")
        wrangler("workflows instances pause orders first")
        assert "Paused" in wrangler("workflows instances list orders --status paused")
        wrangler("workflows instances resume orders first")
        wrangler(
            'workflows instances send-event orders first --type approved --payload {"by":"ada"}'
        )
        wrangler("workflows instances restart orders first")
        wrangler("workflows instances terminate orders first")
        assert "Terminated" in wrangler("workflows instances list orders")
        refused = wrangler("workflows instances terminate orders first", fails=True)
        assert "instance.cannot_terminate" in refused


def test_stores(project: Project, tmp_path: Path) -> None:
    write_stores(project)
    with wrangler_of(project, tmp_path / "elsewhere") as wrangler:
        assert CACHE in wrangler("kv namespace list")
        key = f"--namespace-id {CACHE} --remote"
        wrangler(f"kv key put greeting hello {key} --ttl 100")
        assert "greeting" in wrangler(f"kv key list {key}")
        assert "hello" in wrangler(f"kv key get greeting {key}")
        wrangler(f"kv key delete greeting {key}")
        assert "greeting" not in wrangler(f"kv key list {key}")
        assert "users" in wrangler("d1 list")
        assert '"two": 2' in wrangler("d1 execute users --remote --json --command SELECT(2)AS[two]")


def test_event_notifications(project: Project, tmp_path: Path) -> None:
    write_bucket(project)
    create = "r2 bucket notification create files --queue uploads --event-type object-create"
    with wrangler_of(project, tmp_path / "elsewhere") as wrangler:
        wrangler(f"{create} --prefix in/ --suffix .pdf")
        listed = wrangler("r2 bucket notification list files")
        assert "PutObject,CompleteMultipartUpload,CopyObject" in listed
        (rule,) = re.findall(r"rule_id:\s+(\w{32})", listed)
        assert "overlaps with one that is there" in wrangler(create, fails=True)
        refused = wrangler("r2 bucket notification list nope", fails=True)
        assert "The specified bucket does not exist." in refused
        wrangler(f"r2 bucket notification delete files --queue uploads --rule {rule}")
        assert rule not in wrangler("r2 bucket notification list files")
