"""`.dev.vars` and `.env`: expected values are what dotenv 16.3.1 and dotenv-expand 12 give."""

from __future__ import annotations

import doctest
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import emulator.dotenv
from emulator.dotenv import Unreadable, expand, other_lines, parse, read, secrets

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("PLAIN=value", {"PLAIN": "value"}),
        ("SPACES =  padded value  ", {"SPACES": "padded value"}),
        ("EMPTY=", {"EMPTY": ""}),
        ("export EXPORTED=yes", {"EXPORTED": "yes"}),
        ("COLON: value", {"COLON": "value"}),
        ("DOT.KEY-1=x", {"DOT.KEY-1": "x"}),
        ("EQUALS=a=b=c", {"EQUALS": "a=b=c"}),
        ("COMMENT=pass # word", {"COMMENT": "pass"}),
        ("HASH=pass#word", {"HASH": "pass"}),
        ('DOUBLE="kept # here" # not here', {"DOUBLE": "kept # here"}),
        ("SINGLE='$X \\n # kept'", {"SINGLE": "$X \\n # kept"}),
        ("BACK=`'one' \"two\"`", {"BACK": "'one' \"two\""}),
        ('LINES="one\\ntwo\\tthree"', {"LINES": "one\ntwo\\tthree"}),
        ('MANY="one\ntwo"', {"MANY": "one\ntwo"}),
        ('ESCAPED="a \\"b\\" c"', {"ESCAPED": 'a \\"b\\" c'}),
        ('OPEN="unbalanced', {"OPEN": '"unbalanced'}),
        ("APOSTROPHE=it's", {"APOSTROPHE": "it's"}),
        ("TRAILING='abc' def", {"TRAILING": "'abc' def"}),
        ("DOLLAR=${PLAIN}-x", {"DOLLAR": "${PLAIN}-x"}),
        ("# COMMENT=x", {}),
        ("no assignment", {}),
        ("ÜMLAUT=x", {}),
        ("", {}),
        ("A=1\nA=2", {"A": "2"}),
        ("A=1\r\nB=2\rC=3", {"A": "1", "B": "2", "C": "3"}),
    ],
)
def test_a_line_means_what_it_means_to_wrangler(line: str, expected: dict[str, str]):
    assert parse(line) == expected


@given(st.text())
def test_any_text_can_be_parsed(text: str):
    parse(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("$A", "1"),
        ("${A}-x", "1-x"),
        ("$A/$B", "1/two"),
        ("${NONE}", ""),
        ("${NONE:-default}", "default"),
        ("${NONE-default}", "default"),
        ("${EMPTY:-default}", "default"),
        ("${A:-default}", "1"),
        ("${A:+other}", "other"),
        ("${NONE:+other}", ""),
        ("${NONE:-${A}}", "1"),
        ("${NONE:-a:-b}", "a:-b"),
        (r"\$A", "$A"),
        ("costs 5$", "costs 5$"),
        ("p$w0rd!", "p!"),
        ("${A", "${A"),
        ("$SELF", ""),
        ("a$1b", "a$1b"),
    ],
)
def test_references_in_env_files_are_expanded(value: str, expected: str):
    assert expand({"A": "1", "B": "two", "EMPTY": "", "SELF": value})["SELF"] == expected


@given(st.lists(st.text(alphabet="$AB{}:-+\\ x", max_size=12), max_size=4))
def test_expansion_always_ends(values: list[str]):
    expand(dict(zip("ABCD", values, strict=False)))


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / ("." + name.replace("_", "."))).write_text(text)
    return folder


def test_without_files_there_are_no_secrets(tmp_path: Path):
    assert secrets(tmp_path) == {}


def test_dev_vars_are_read_alone(tmp_path: Path):
    write(tmp_path, dev_vars="A=1\nB=$A", env="A=2\nC=3")
    assert secrets(tmp_path) == {"A": "1", "B": "$A"}


def test_dev_vars_of_the_environment_go_first_and_alone(tmp_path: Path):
    write(tmp_path, dev_vars="A=1\nB=2", dev_vars_staging="A=3")
    assert secrets(tmp_path, environment="staging") == {"A": "3"}
    assert secrets(tmp_path, environment="other") == {"A": "1", "B": "2"}
    assert secrets(tmp_path) == {"A": "1", "B": "2"}


def test_env_files_add_up_and_are_expanded(tmp_path: Path):
    write(
        tmp_path,
        env="A=base\nB=base\nC=base\nD=base\nURL=x://${D}",
        env_local="B=local",
        env_staging="C=staging",
        env_staging_local="D=both",
    )
    assert secrets(tmp_path) == {
        "A": "base",
        "B": "local",
        "C": "base",
        "D": "base",
        "URL": "x://base",
    }
    assert secrets(tmp_path, environment="staging") == {
        "A": "base",
        "B": "local",
        "C": "staging",
        "D": "both",
        "URL": "x://both",
    }


def test_the_environment_of_the_process_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME_TOWN", "Lisbon")
    write(tmp_path, env="A=${HOME_TOWN:-none}")
    assert secrets(tmp_path) == {"A": "none"}


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path):
    (tmp_path / ".dev.vars").write_bytes(b"\xef\xbb\xbfA=1\n")
    assert secrets(tmp_path) == {"A": "1"}


def test_a_file_that_is_not_utf_8_is_named(tmp_path: Path):
    (tmp_path / ".env").write_bytes(b"A=\xff\n")
    with pytest.raises(Unreadable) as caught:
        secrets(tmp_path)
    assert str(caught.value) == f"{tmp_path / '.env'}: the file is not UTF-8: byte 2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n\n  \n# A\n  # B\nA=1", []),
        ("A=1\nTOKEN\n\nB=2", [2]),
        ("\n\nA=1\r\nno assignment\rB='1\n2\n3' # x\nC D=1\nexport E\n=1\n=2", [4, 8, 11]),
        ('A="one\ntwo\n', [2]),
        ("A:b\nA: b\nÜ=1", [1, 3]),
    ],
)
def test_lines_that_are_passed_over_are_known(text: str, expected: list[int]):
    assert other_lines(text) == expected


def test_what_is_passed_over_is_told_with_file_and_line(tmp_path: Path):
    (tmp_path / ".dev.vars.staging").mkdir()
    (tmp_path / ".dev.vars").symlink_to("nowhere")
    write(tmp_path, env="A=1\nsk-a-secret", env_local="B=2", env_staging="\n\nB C=3")
    values, warnings = read(tmp_path, environment="staging")
    assert values == {"A": "1", "B": "2"}
    line = (
        "the line is no assignment, and is passed over: NAME=value, with a name of A-Z, a-z, 0-9, "
        "_, . and -"
    )
    assert warnings == [
        f"{tmp_path}/.dev.vars.staging: is a folder, and is passed over: secrets are in a file",
        f"{tmp_path}/.dev.vars: is a link to a file that is not there, and is passed over",
        f"{tmp_path}/.env:2: {line}",
        f"{tmp_path}/.env.staging:3: {line}",
    ]


@pytest.mark.parametrize("method", ["stat", "read_text"])
def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
):
    write(tmp_path, dev_vars="A=1")

    def refuse(*args: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), method, refuse)
    with pytest.raises(Unreadable) as caught:
        secrets(tmp_path)
    monkeypatch.undo()
    told = f"{tmp_path}/.dev.vars: the file cannot be read: Permission denied"
    assert str(caught.value) == told


def test_the_examples_in_the_docstrings_are_true():
    assert doctest.testmod(emulator.dotenv).failed == 0
