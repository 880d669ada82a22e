"""The documentation's examples run, its links resolve, and it names all that is public.

What a page means by a code block:

1. A block whose first line is `# file: PATH`, or `// file: PATH`, is a file of the page's project.
2. A `python` block that defines a `test_` function is a test module of its own, and passes.
3. Any other `python` block compiles.
4. In the README `<!-- pytest: 1 failed -->` before a block says that pytest, run on the files so
   far, ends like this and prints the block's lines (`...` stands for lines left out).
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

import emulator
from emulator import Emulator
from emulator.faults import KINDS
from emulator.findings import CODES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [README, ROOT / "CHANGELOG.md", *DOCS]
# Pages that describe something that runs start with an example.
# (The examples of cli.md, dev.md, recording.md and rest-api.md are commands, that of dashboard.md
# is a page: tests/cli/test_cli_docs.py, tests/server/test_dev_docs.py,
# tests/recording/test_recording_docs.py, tests/server/rest/test_rest_docs.py and
# tests/server/dashboard run them.)
WITHOUT_EXAMPLE = {
    "limits.md",
    "dependencies.md",
    "cli.md",
    "dev.md",
    "dashboard.md",
    "rest-api.md",
    "recording.md",
}
FIRST_SCREEN = 40  # lines
# The sites that are met today; docs/faults.md has a table of what each action leaves behind.
SITES = (
    *("request", "send", "message", "batch", "fetch", "step", "sleep", "wait", "create", "event"),
    *("object", "websocket", "storage", "alarm", "wait_until", "schedule", "d1", "kv"),
    *("service", "cache", "r2", "ratelimit", "email", "tail"),
)

_FENCE = re.compile(
    r"^(?:<!-- pytest: (?P<expected>.+?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"(?:#|//) file: (?P<path>\S+)\n")
_TEST = re.compile(r"^(?:async )?def test_", re.MULTILINE)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_MESSAGE_ID = re.compile(r'"?\b[0-9a-f]{32}\b(#\d+)?"?')


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    expected: str | None = None

    @property
    def file(self) -> str | None:
        """The path that the block's first line names, if it does."""
        named = _FILE.match(self.text)
        return named["path"] if named else None

    @property
    def is_test(self) -> bool:
        """Whether the block is a test module of its own."""
        return self.language == "python" and not self.file and bool(_TEST.search(self.text))

    def __str__(self) -> str:
        return f"{self.page.name}-{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    text = page.read_text("utf-8")
    for fence in _FENCE.finditer(text):
        line = text.count("\n", 0, fence.start("text"))
        yield Block(page, line, fence["language"], fence["text"], fence["expected"])


ALL_BLOCKS = [block for page in PAGES for block in blocks(page)]


def write(folder: Path, path: str, text: str) -> None:
    """Write a file of a project."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, "utf-8")


def run_pytest(folder: Path, *options: str) -> str:
    """Run pytest in a process of its own, as a reader would; return what it printed."""
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    usual = ("-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function")
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", *usual, *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return finished.stdout + finished.stderr


# Examples.


@pytest.fixture(scope="module")
def example_outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The outcomes of all examples of docs/, by block; one run for all of them."""
    folder = tmp_path_factory.mktemp("docs")
    write(folder, "pytest.ini", "[pytest]\n")
    for block in ALL_BLOCKS:
        if block.page in DOCS and block.file:
            write(folder, f"page_{block.page.stem}/{block.file}", block.text)
        elif block.page in DOCS and block.is_test:
            write(folder, f"page_{block.page.stem}/test_{block.line}.py", block.text)
    report = folder / "report.xml"
    output = run_pytest(folder, "--import-mode=importlib", f"--junit-xml={report}")
    assert report.exists(), output
    return _by_block(report, output)


def _by_block(report: Path, output: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"output": {"": output}}
    for case in ElementTree.parse(report).iter("testcase"):
        page, _, module = case.attrib["classname"].partition(".")
        name = f"{page.removeprefix('page_')}.md-{module.removeprefix('test_')}"
        bad = any(child.tag in ("failure", "error", "skipped") for child in case)
        found.setdefault(name, {})[case.attrib["name"]] = "failed" if bad else "passed"
    return found


@pytest.mark.parametrize("block", [b for b in ALL_BLOCKS if b.page in DOCS and b.is_test], ids=str)
def test_example_passes(block: Block, example_outcomes: dict[str, dict[str, str]]) -> None:
    tests = example_outcomes.get(str(block), {})
    assert set(tests.values()) == {"passed"}, example_outcomes["output"][""]


@pytest.mark.parametrize(
    "block", [block for block in ALL_BLOCKS if block.language == "python"], ids=str
)
def test_python_block_compiles(block: Block) -> None:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    compile(block.text, str(block), "exec", flags=flags, dont_inherit=True)


def test_readme_shows_what_pytest_prints(tmp_path: Path) -> None:
    printed = {}
    for block in blocks(README):
        if block.file:
            write(tmp_path, block.file, block.text)
        if block.expected:
            output = printed[block.line] = run_pytest(tmp_path)
            assert f" {block.expected} in " in output, output
            _assert_printed(block, output)
    assert len(printed) == 4
    # The first screen shows the report of the run that fails.
    (report,) = (block for block in blocks(README) if "reproduce: pytest" in block.text)
    failed = next(output for output in printed.values() if " 1 failed in " in output)
    _assert_printed(report, failed)


def _assert_printed(block: Block, output: str) -> None:
    """Every line of the block is in the output, in order, whatever the ids of messages are."""
    printed = iter(_comparable(output))
    for line in _comparable(block.text):
        assert line in printed, f"{block}: pytest does not print, or not in this order:\n{line}"


def _comparable(text: str) -> list[str]:
    lines = (re.sub(r"[=_-]{4,}| +\[100%\]", "", line).strip() for line in text.splitlines())
    return [_MESSAGE_ID.sub(r"<id>\1", line) for line in lines if line not in ("", "...")]


# Structure.


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page: Path) -> None:
    text = _CODE.sub("", page.read_text("utf-8"))
    for link in _LINK.finditer(text):
        target, _, anchor = link["target"].partition("#")
        if target.startswith(("https:", "http:", "mailto:")):
            continue
        other = (page.parent / target).resolve() if target else page
        assert other.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in _anchors(other), f"{page.name} links to {link['target']}"


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_readme_links_to_page(page: Path) -> None:
    assert f"(docs/{page.name})" in README.read_text("utf-8")


def test_the_readme_installs_from_the_index_and_from_a_checkout():
    text = README.read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"pip install {project['name']} " in text
    assert "`pip install -e . " in text
    extras = re.findall(r'pip install -e "\.\[(\w+)\]"', text)
    assert extras
    assert project["optional-dependencies"].keys() >= set(extras)


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_page_starts_with_a_running_example(page: Path) -> None:
    if page.name not in WITHOUT_EXAMPLE:
        assert any(block.is_test and block.line < FIRST_SCREEN for block in blocks(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_names_no_machine(page: Path) -> None:
    assert re.findall(r"/(?:tmp|home|root|Users|usr|opt)/\S*", page.read_text("utf-8")) == []


# Completeness.


def code_of(*pages: Path) -> str:
    """All that is written as code in these pages."""
    return "\n".join(found for page in pages for found in _CODE.findall(page.read_text("utf-8")))


def missing(names: list[str], *pages: Path) -> list[str]:
    """The names that are not in the code of these pages."""
    words = set(re.findall(r"\w+", code_of(*pages)))
    return [name for name in names if name not in words]


def test_every_public_name_is_documented() -> None:
    assert missing(list(emulator.__all__), *DOCS) == []


def test_every_member_of_emulator_is_documented() -> None:
    from workers import WorkerEntrypoint

    with Emulator({"main": type("Worker", (WorkerEntrypoint,), {})}) as instance:
        members = {*dir(Emulator), *vars(instance)}
    public = sorted(name for name in members if not name.startswith("_"))
    assert missing(public, ROOT / "docs/emulator.md") == []


def test_every_argument_of_emulator_is_documented() -> None:
    arguments = list(inspect.signature(Emulator).parameters)
    assert missing(arguments, ROOT / "docs/emulator.md") == []


def test_every_member_of_a_queue_is_documented() -> None:
    from emulator.queues.control import Queue

    public = [name for name in dir(Queue) if not name.startswith("_")]
    assert missing(public, ROOT / "docs/queues.md") == []


def test_every_member_of_faults_is_documented() -> None:
    from emulator.faults import Faults

    # For the emulator's parts.
    internal = {"meet", "pass_by", "take_effect", "schedule", "forget", "reset"}
    public = {name for name in dir(Faults) if not name.startswith("_")} - internal
    assert missing(sorted(public), ROOT / "docs/faults.md") == []


def test_every_action_of_a_site_is_documented() -> None:
    actions = [action.name for site in SITES for action in KINDS[site].actions]
    assert missing(actions, ROOT / "docs/faults.md") == []


def test_every_finding_is_documented_with_its_severity() -> None:
    text = (ROOT / "docs/findings.md").read_text("utf-8")
    for code, row in CODES.items():
        assert f"| `{code}` | {'✗ ' if row.fails else ''}|" in text


def test_every_kind_of_event_is_documented() -> None:
    sources = sorted((ROOT / "emulator").rglob("*.py"))
    texts = [source.read_text("utf-8") for source in sources]
    kinds = [kind for text in texts for kind in re.findall(r'\.record\(\s*"(\w+)"', text)]
    assert len(kinds) > 10
    assert missing(kinds, ROOT / "docs/trace.md") == []


def test_every_option_of_pytest_is_documented(pytestconfig: pytest.Config) -> None:
    options = re.findall(r"--emulator-\w+", pytestconfig._parser.optparser.format_help())
    page = (ROOT / "docs/pytest.md").read_text("utf-8")
    assert options
    assert [option for option in options if option not in page] == []
    settings = [name for name in pytestconfig._parser._inidict if name.startswith("emulator_")]
    assert settings
    assert missing(settings, ROOT / "docs/pytest.md") == []


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    needed = [*project["dependencies"], *(name for extra in extras for name in extra)]
    page = (ROOT / "docs/dependencies.md").read_text("utf-8")
    names = [re.split(r"[<>=;\[ ]", requirement)[0] for requirement in needed]
    assert [name for name in names if name not in page] == []
