"""Suites and families of data sets; the sets of the second manifest of the mirror against it."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from small_tables import npz

from gpbench.cli import main
from gpbench.data import cards, readers, sources, splits
from gpbench.errors import DataError

CARDS = {name: cards.read(name) for name in cards.names()}
SECOND = {name: card for name, card in CARDS.items() if card.get("family") and card.get("suite") != "development"}
"""The cards of the second manifest: board sets, and those that tell few methods apart."""
FOLDS = ["airfoil", "elevators", "gas", "pendulum", "pol", "pumadyn32nm", "skillcraft"]
FIXED = ["adult", "ato", "bcef", "cells", "heaton_satellite", "heaton_simulated", "usps"]


def test_the_cards_agree_with_the_manifest(mirror):
    manifest = json.loads((mirror / "MANIFEST_MORE.json").read_text())
    assert {*SECOND} == {*manifest}
    for name, entry in manifest.items():
        card, source = CARDS[name], CARDS[name]["sources"][0]
        assert source["files"] == {entry["file"]: entry["sha256"]}, name
        assert (card["rows"], card["inputs"]) == (entry["n"], entry["d"] - len(source.get("drop", []))), name
        assert card.get("counts", {}) == {str(label): n for label, n in entry.get("classes", {}).items()}, name
        arrays = {*entry["arrays"]} - {"X", "y", "feature_names", "noise_std"}
        named = {source[key] for key in ("group", "split") if key in source}
        assert arrays == named | {*source.get("folds", {}).values()}, name
        for other in card["sources"][1:]:  # every file of the raw data with its checksum
            assert {*other["files"].values()} <= {file["raw_sha256"] for file in entry["source"]}, name
            assert all(file["commit"] in other["at"] for file in entry["source"][:1]), name
        said = " ".join(card["oddities"])
        duplicates, same = entry["duplicate_rows"], entry["rows_with_an_earlier_equal_input"]
        assert not duplicates or re.search(rf"\b({duplicates:,}|{same:,})\b", said), name
        assert all(column in said for column in entry["constant_inputs"]), name


@pytest.mark.parametrize("name", ["parkinsons", "ato"])
def test_a_group_is_whole_in_every_split_by_groups(name, mirror):
    card = CARDS[name]
    dataset = sources.obtain(card, card["sources"][0], mirror=mirror)
    groups = np.asarray(dataset.groups)
    assert card["splits"]["set"] == "groups90"
    for k in range(3):
        train, test = splits.indices(card, dataset, k)
        assert not {*groups[train]} & {*groups[test]}


def test_the_dropped_input_of_skillcraft_is_the_number_of_the_row(mirror):
    card = CARDS["skillcraft"]
    dataset = sources.obtain(card, card["sources"][0], mirror=mirror)
    with np.load(mirror / "skillcraft.npz") as archive:
        first, *_ = archive["X"].T
        np.testing.assert_array_equal(dataset.X, archive["X"][:, 1:])
    assert len({*first}) == len(first)


def test_an_input_that_the_file_lacks_is_not_dropped():
    file = npz(X=np.eye(3), y=np.arange(3.0), feature_names=["a", "b", "c"])
    raw = readers.npz([file], {"drop": [0, 2]})
    assert raw.X.tolist() == [[0], [1], [0]] and raw.columns == ("b",)
    with pytest.raises(DataError, match=r"drop=\[3\]: the file has 3 inputs, counted from 0"):
        readers.npz([file], {"drop": [3]})


def test_suites_have_these_numbers_of_sets_families_and_first_splits():
    tasks = Counter((card.get("suite"), card["task"]) for card in SECOND.values())
    assert [tasks["board", task] for task in ("regression", "binary", "multiclass")] == [35, 13, 12]
    assert [tasks[None, task] for task in ("regression", "binary", "multiclass")] == [12, 9, 2]
    outside = [card for name, card in CARDS.items() if name not in SECOND]
    assert {card.get("suite") for card in outside} == {"development", None}
    assert all(("suite" in card) == ("family" in card) for card in outside)
    generated = {"generated", "rows"}
    assert all("suite" in card or card["sources"][0]["kind"] in generated for card in outside)
    dependent = ["kegg keggu", "kin8nm kin40k", "segment image", "optdigits digits_odd_even usps", "no2 pm10"]
    assert all(len({CARDS[name]["family"] for name in group.split()}) == 1 for group in dependent)
    assert all(CARDS[name]["splits"] == {"set": "yang", "sets": {"yang": 10}} for name in FOLDS)
    assert all(CARDS[name]["splits"]["sets"]["fixed"] == 1 for name in FIXED)


def listed(capsys, *words):
    assert main(["ls", "datasets", *words, "--json"]) == 0
    return [row["name"] for row in json.loads(capsys.readouterr().out)]


def test_data_sets_are_listed_by_suite_and_task(capsys):
    of_board = listed(capsys, "--suite", "board", "--task", "binary")
    assert len(of_board) == 13 and {CARDS[name]["suite"] for name in of_board} == {"board"}
    assert {*listed(capsys, "--task", "count")} == {name for name, card in CARDS.items() if card["task"] == "count"}
    assert len(listed(capsys)) == len(CARDS)


@pytest.mark.parametrize(
    "words, message",
    [
        (["datasets", "--suite", "bord"], "suite=bord: must be board, development or null"),
        (["datasets", "--task", "classes"], "task=classes: must be binary, multiclass, regression or count"),
        (["methods", "--suite", "board"], "suite board selects data sets: leave it out for methods"),
        (["runs", "--task", "binary"], "task binary selects data sets: leave it out for runs"),
    ],
)
def test_a_suite_or_a_task_that_is_none_is_refused(words, message, capsys):
    assert main(["ls", *words]) == 2
    assert capsys.readouterr().err == f"gpbench: {message}\n"
