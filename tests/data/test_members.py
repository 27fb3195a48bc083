"""What one run trains on: splits, and outputs where there are several."""

import pytest

from gpbench.data.members import Member, label, members, name_of_output
from gpbench.errors import ConfigError

ARM = {"name": "arm", "outputs": 3, "splits": {"set": "random90", "sets": {"random90": 5}}}
PLAIN = {key: value for key, value in ARM.items() if key != "outputs"}


def test_every_output_of_every_split_is_a_run_and_one_output_is_none():
    assert members(ARM, [0, 2]) == [(k, o) for k in (0, 2) for o in (0, 1, 2)]
    assert members(ARM, 1, [2, 0]) == [(1, 2), (1, 0)] and members(ARM, 1, 1) == [(1, 1)]
    assert members(PLAIN, 1) == [Member(1)] and members(PLAIN, 1, 0) == [Member(1, None)]


def test_an_output_is_part_of_the_identity_only_where_there_are_several():
    assert Member(3).identity == {"split": 3} and Member(3).cell == {}
    assert Member(3, 0).identity == {"split": 3, "output": 0} and Member(3, 0).cell == {"output": 0}


@pytest.mark.parametrize("card, output", [(ARM, 3), (ARM, -1), (ARM, [0, 7]), (PLAIN, 1), (ARM, "first")])
def test_outputs_that_there_are_not_are_one_line(card, output):
    with pytest.raises(ConfigError, match=r"^output=.*arm has"):
        members(card, 0, output)


@pytest.mark.parametrize(
    "group, text",
    [
        ([Member(3)], "split 3"),
        ([Member(0), Member(1), Member(2)], "splits 0-2"),
        ([Member(0), Member(4)], "splits 0,4"),
        ([Member(0, 8)], "split 0, output 8"),
        ([Member(1, 0), Member(1, 1)], "split 1, outputs 0-1"),
    ],
)
def test_what_trains_together_is_told_shortly(group, text):
    assert label(group) == text


def test_outputs_are_called_as_the_card_says_or_by_number():
    assert [name_of_output(card, 1) for card in (ARM, {**ARM, "output_names": ["a", "b", "c"]})] == ["y2", "b"]
    assert name_of_output(PLAIN, None) == ""
