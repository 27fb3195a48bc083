"""Cards against the mirrors of the data files and their manifests, suites and families."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from small_tables import npz

from gpbench.data import cards, prepare, readers, sources, split_sets, splits
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
    assert {CARDS[name]["splits"]["set"] for name in ("parkinsons", "ato")} == {"groups90"}


def test_data_sets_are_listed_by_suite_and_task(printed):
    listed = lambda *words: [row["name"] for row in json.loads(printed("ls", "datasets", *words, "--json"))]
    of_board = listed("--suite", "board", "--task", "binary")
    assert len(of_board) == 13 and {CARDS[name]["suite"] for name in of_board} == {"board"}
    assert {*listed("--task", "count")} == {name for name, card in CARDS.items() if card["task"] == "count"}
    assert len(listed()) == len(CARDS)
    small = listed("--task", "count", "--rows", "-500") + listed("--task", "count", "--rows", "501-")
    assert {*small} == {*listed("--task", "count")} != {*listed("--task", "count", "--rows", "501-")}


@pytest.mark.parametrize(
    "words, message",
    [
        (["datasets", "--suite", "bord"], "suite=bord: must be board, development or null"),
        (["datasets", "--task", "classes"], "task=classes: must be binary, multiclass, regression or count"),
        (["datasets", "--rows", "many"], "rows=many: write a number or a range, as 50k, 30k-60k, 30k- or -60k"),
        (["methods", "--suite", "board"], "suite board selects data sets: leave it out for methods"),
        (["runs", "--task", "binary"], "task binary selects data sets: leave it out for runs"),
    ],
)
def test_a_suite_or_a_task_that_is_none_is_refused(words, message, refused):
    assert refused("ls", *words) == f"gpbench: {message}\n"


MIRRORED = {name: card for name, card in CARDS.items() if card["sources"][0]["kind"] == "mirror"}


def obtain(name, mirror):
    return sources.obtain(CARDS[name], CARDS[name]["sources"][0], mirror=mirror)


@pytest.mark.parametrize("name", MIRRORED)
def test_the_mirror_holds_what_the_card_says(name, mirror):
    card, dataset = CARDS[name], obtain(name, mirror)  # compares both checksums with the card's
    assert dataset.X.shape == (card["rows"], card["inputs"])
    assert max(1, len(dataset.outputs)) == card.get("outputs", 1)
    if dataset.classes:
        assert dict(zip(dataset.classes, np.unique(dataset.y, return_counts=True)[1])) == card["counts"]
    for chosen, count in card["splits"]["sets"].items():
        for k in {0, count - 1}:
            chosen_card = {**card, "splits": {**card["splits"], "set": chosen}}
            train, test = splits.indices(chosen_card, dataset, k)
            assert len({*train, *test}) == len(train) + len(test) == card["rows"]


@pytest.mark.parametrize("name", [name for name, card in MIRRORED.items() if card["splits"]["set"] == "hla"])
def test_hla_splits_are_the_published_index_files_bit_for_bit(name, mirror):
    dataset = obtain(name, mirror)
    with np.load(mirror / f"{name}.npz") as archive:
        for k in range(splits.count(CARDS[name])):
            train, test = split_sets.hla(CARDS[name], dataset, k)
            np.testing.assert_array_equal(train, archive[f"train_idx_{k}"])
            np.testing.assert_array_equal(test, archive[f"test_idx_{k}"])


@pytest.mark.parametrize("name", [name for name, card in MIRRORED.items() if card["splits"]["set"] == "yang"])
def test_yang_folds_are_the_published_masks(name, mirror):
    dataset = obtain(name, mirror)
    with np.load(mirror / f"{name}.npz") as archive:
        for k in range(10):
            mask = archive[f"test_idx_{k}"] if f"test_idx_{k}" in archive else np.flatnonzero(archive["fold"] == k)
            np.testing.assert_array_equal(splits.indices(CARDS[name], dataset, k)[1], mask)


def test_mnist_trains_on_its_first_60000_rows(mirror):
    dataset = obtain("mnist_odd_even", mirror)
    train, test = splits.indices(CARDS["mnist_odd_even"], dataset, 0)
    assert sorted(train) == list(range(60000)) and sorted(test) == list(range(60000, 70000))
    assert dataset.y[:4].tolist() == [1, -1, -1, 1]  # the first digits are 5, 0, 4, 1
    assert (dataset.X[:60000].max(axis=0) > 0).sum() == 717
    assert dataset.X.max() == 255


@pytest.mark.parametrize(("name", "constant"), [("ionosphere", [1]), ("naval", [8, 11]), ("keggu", [9])])
def test_constant_columns_become_zeros_and_all_others_vary(name, constant, mirror):
    dataset = obtain(name, mirror)
    p = prepare(dataset, *splits.indices(CARDS[name], dataset, 0))
    assert np.flatnonzero(~p.X.any(axis=0)).tolist() == constant
    np.testing.assert_allclose(np.delete(p.X, constant, axis=1).std(axis=0), 1)
    assert np.isfinite(p.X_test).all()
