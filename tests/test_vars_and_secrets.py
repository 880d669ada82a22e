"""Variables and secrets on `env`, from files to what a Worker sees and what no text shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

ENTRY = """\
from workers import Response, WorkerEntrypoint

NAMES = ("A", "B", "C", "D", "E", "PLACE", "JSON", "TOP")


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        found = {}
        for name in NAMES:
            value = getattr(self.env, name, None)
            found[name] = value.to_py() if hasattr(value, "to_py") else value
        print(found["A"], found["D"])
        return Response.json(found)
"""


def project(folder: Path, files: dict[str, str], **config: Any) -> Path:
    """A project with these files beside its config."""
    base = {"name": "w", "main": "entry.py", "compatibility_date": "2026-09-01"}
    flags = {"compatibility_flags": ["python_workers"], **config}
    (folder / "entry.py").write_text(ENTRY)
    for name, text in files.items():
        (folder / name).write_text(text)
    path = folder / "wrangler.json"
    path.write_text(json.dumps({**base, **flags}))
    return path


async def seen(path: Path, environment: str | None = None) -> dict[str, Any]:
    async with Emulator(path, environment=environment) as emulator:
        return {k: v for k, v in (await emulator.fetch("/")).json().items() if v is not None}


ENV_FILES = {
    ".env": "A=env\nB=env\nC=env\nD=env\n",
    ".env.local": "B=local\nC=local\nD=local\n",
    ".env.staging": "C=staging\nD=staging\n",
    ".env.staging.local": "D=staging-local\n",
}


async def test_each_env_file_overrides_those_before(tmp_path: Path) -> None:
    """wrangler, `config/dot-env.ts`: the order is `.env`, `.local`, `.<env>`, `.<env>.local`."""
    path = project(tmp_path, ENV_FILES, env={"staging": {}, "other": {}})
    assert await seen(path) == {"A": "env", "B": "local", "C": "local", "D": "local"}
    assert await seen(path, "other") == {"A": "env", "B": "local", "C": "local", "D": "local"}
    assert await seen(path, "staging") == {
        "A": "env",
        "B": "local",
        "C": "staging",
        "D": "staging-local",
    }


async def test_dev_vars_keep_env_files_out_and_their_environment_keeps_them_out(
    tmp_path: Path,
) -> None:
    files = {**ENV_FILES, ".dev.vars": "A=dev\nE=dev\n", ".dev.vars.staging": "A=dev-staging\n"}
    path = project(tmp_path, files, env={"staging": {}, "other": {}})
    assert await seen(path) == {"A": "dev", "E": "dev"}
    assert await seen(path, "other") == {"A": "dev", "E": "dev"}
    assert await seen(path, "staging") == {"A": "dev-staging"}


@pytest.mark.filterwarnings("ignore::emulator.section.ConfigWarning")
async def test_an_environment_has_its_own_vars_and_a_file_overrides_them(tmp_path: Path) -> None:
    path = project(
        tmp_path,
        {".dev.vars": "A=secret\nJSON=plain text\n"},
        vars={"TOP": "top", "A": "var", "JSON": {"a": [1, None]}},
        env={"staging": {"vars": {"PLACE": "staging", "JSON": {"b": True}}}},
    )
    assert await seen(path) == {"TOP": "top", "A": "secret", "JSON": "plain text"}
    assert await seen(path, "staging") == {"PLACE": "staging", "A": "secret", "JSON": "plain text"}
    (tmp_path / ".dev.vars").unlink()
    assert await seen(path, "staging") == {"PLACE": "staging", "JSON": {"b": True}}


async def test_declared_secrets_leave_the_others_in_the_file_out(tmp_path: Path) -> None:
    """Documentation, "secrets configuration property"; a name among `vars` is taken as well."""
    path = project(
        tmp_path,
        {".dev.vars": "A=a\nB=b\nC=c\n"},
        secrets={"required": ["A"]},
        vars={"B": "var"},
    )
    assert await seen(path) == {"A": "a", "B": "b"}


async def test_no_text_shows_a_secret_whichever_file_it_came_from(tmp_path: Path) -> None:
    files = {".env": "A=first-secret\n", ".env.staging.local": "D=second-secret\n"}
    path = project(tmp_path, files, env={"staging": {}})
    async with Emulator(path, environment="staging") as emulator:
        answer = await emulator.fetch("/", headers={"Authorization": "Bearer first-secret"})
        assert answer.json()["D"] == "second-secret"  # the Worker, and its client, have it
        texts = [emulator.trace.render(), emulator.trace.to_jsonl(), emulator.logs[0].text]
        for text in texts:
            assert "first-secret" not in text
            assert "second-secret" not in text
        assert emulator.logs[0].text == "[secret A] [secret D]"


async def test_the_shells_environment_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A", "shell")
    monkeypatch.setenv("CLOUDFLARE_INCLUDE_PROCESS_ENV", "true")
    path = project(tmp_path, {".env": "B=file\n"})
    assert await seen(path) == {"B": "file"}
