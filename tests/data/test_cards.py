"""The shipped cards are complete, and the built-in data sets need nothing but them."""

import numpy as np
import pytest

from gpbench.data import cards, load, splits
from gpbench.errors import ConfigError

BUILTIN = ["wdbc", "digits_odd_even", "diabetes", "sinc", "sinc500", "friedman", "moons", "kuka_sim1", "kuka_sim2"]


@pytest.mark.parametrize("name", cards.names())
def test_every_card_says_what_a_reader_of_a_table_needs(name):
    card = cards.read(name)
    assert card["name"] == name
    not_known = {"rows", "checksum"} if {s["kind"] for s in card["sources"]} <= {"official", "file"} else set()
    for key in ("title", "rows", "inputs", "checksum", "splits", "oddities", "licence", "cite"):
        assert card[key] is not None or key in not_known, key
    assert splits.count(card) >= 1
    assert (card["task"] == "regression") == ("labels" not in card)
    if "counts" in card:
        assert sum(card["counts"].values()) == card["rows"]
    for source in card["sources"]:
        for file, sha256 in source.get("files", {}).items():
            assert source["kind"] == "official" or len(sha256) == 64, file


@pytest.mark.parametrize("name", BUILTIN)
def test_builtin_data_are_the_same_on_every_machine_and_need_no_download(name):
    card = cards.read(name)
    dataset = load(card, offline=True)  # compares with the checksum of the card
    assert dataset.X.shape == (card["rows"], card["inputs"])
    if dataset.classes:
        assert dict(zip(dataset.classes, np.unique(dataset.y, return_counts=True)[1])) == card["counts"]


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="unknown data set 'pimaa': did you mean pima"):
        cards.read("pimaa")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "a card is a mapping"),
        ("name: mine\ntask: binary\n", "lacks sources"),
        ("name: ../mine\ntask: binary\nsources: [{kind: file, path: a}]", "may hold letters"),
        ("name: mine\ntask: binary\nsources: [{kind: web}]", "source kind 'web' is none of"),
        ("name: mine\ntask: binary\nsources: [{kind: file, path: a}]", "the file source lacks target"),
        ("name: [", "is not YAML"),
    ],
)
def test_a_card_that_is_wrong_gives_one_clear_line(tmp_path, text, message):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        cards.read("mine", [tmp_path])
    assert "\n" not in str(caught.value)
