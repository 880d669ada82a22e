"""Ids of objects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.objects.ids import IdMaker, normalised


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("a", "3f203450b6ac5e4eac47f709914ef01bc6da5967a9a6ce08c9953abec7d7d35b"),
        ("", "ac5efb55837abaa48081d456342b79d6f642a2ffabbd0ec93039d779b9e33cdd"),
        ("ä", "220ca67827a9ef3ee8e448003d301d811f19b362d6a38fc543f7129c8af653a7"),
        ("\U0001f600", "36bde58e90ba13868a3ae2603aa9fe3ac9f0ff83882b62e3e37e5e7c79bef99e"),
    ],
)
def test_ids_are_those_that_the_local_runtime_makes(name: str, id: str) -> None:
    """As miniflare 4.20260730 printed them, of a Worker `worker` and its class `Obj`."""
    assert IdMaker("worker-Obj").from_name(name) == id


def test_a_name_has_one_id_in_a_namespace() -> None:
    maker = IdMaker("worker-Obj")
    assert maker.from_name("a") == maker.from_name("a") == IdMaker("worker-Obj").from_name("a")
    assert maker.from_name("a") != maker.from_name("b")
    assert maker.from_name("a") != IdMaker("worker-Other").from_name("a")
    assert maker.from_name("a") != IdMaker("worker-Obj", "eu").from_name("a")


@given(st.text(), st.binary(min_size=16, max_size=16))
def test_a_namespace_knows_its_own_ids_only(name: str, random: bytes) -> None:
    maker, other = IdMaker("worker-Obj"), IdMaker("worker-Other")
    for id in (maker.from_name(name), maker.unique(random)):
        assert normalised(id) == id
        assert maker.has_made(id)
        assert not other.has_made(id)
        assert not IdMaker("worker-Obj", "eu").has_made(id)


def test_ids_that_are_forgotten_are_made_again_the_same() -> None:
    maker = IdMaker("k")
    first = maker.from_name("0")
    for number in range(20_001):
        maker.from_name(str(number))
    assert maker.from_name("0") == first


@pytest.mark.parametrize("text", ["", "a", "0" * 63, "0" * 65, "g" * 64, " " + "0" * 63, "é" * 64])
def test_what_has_not_sixty_four_digits_is_no_id(text: str) -> None:
    assert normalised(text) is None


def test_upper_case_is_the_same_id() -> None:
    id = IdMaker("k").from_name("a")
    assert normalised(id.upper()) == id
