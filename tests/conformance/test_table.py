"""No recording is left out, no declared difference outlives its cause, and the page says so."""

from __future__ import annotations

import pytest
from comparer import BOTH, NotApplicable, names
from deviations import DEVIATIONS
from table import BEGIN, END, PAGE, rendered, written


def test_every_recording_is_in_the_table_and_nothing_else() -> None:
    assert sorted(DEVIATIONS) == names()
    assert len(names()) > 160


@pytest.mark.parametrize("name", [name for name, found in DEVIATIONS.items() if found])
def test_every_deviation_says_why(name: str) -> None:
    for deviation in DEVIATIONS[name]:
        assert len(deviation.reason) > 20
        assert deviation.profiles
        assert set(deviation.profiles) <= set(BOTH)


def test_deviations_under_the_local_profile_are_few() -> None:
    local = {
        name
        for name, found in DEVIATIONS.items()
        if any("miniflare" in deviation.profiles for deviation in found)
    }
    assert len(local) <= len(DEVIATIONS) // 5, sorted(local)
    not_applicable = {
        (name, each.where)
        for name, found in DEVIATIONS.items()
        for each in found
        if isinstance(each, NotApplicable)
    }
    # Prototypes, and what JavaScript alone can throw.
    of_workflows = {place for place in not_applicable if place[0].startswith("wf_")}
    assert len(not_applicable - of_workflows) < 5
    assert len(of_workflows) < 10


def test_the_page_has_the_table_as_it_is() -> None:
    """After a change: `python tests/conformance/table.py`."""
    page = PAGE.read_text("utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert rendered() in page
    assert written(page) == page


def test_the_section_goes_to_the_end_of_a_page_without_one() -> None:
    assert written("# A page\n") == f"# A page\n\n{rendered()}\n"
    assert written(f"# A page\n\n{BEGIN}\nold\n{END}\n\nThe end\n") == (
        f"# A page\n\n{rendered()}\n\nThe end\n"
    )
