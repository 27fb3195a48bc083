"""Splits depend on their names alone."""

from dataclasses import replace

import numpy as np
import pytest

from gpbench.config import cards as config
from gpbench.config.compose import compose
from gpbench.data import cards, prepare, splits
from gpbench.data.dataset import Dataset
from gpbench.data_registry import SPLIT_SETS
from gpbench.errors import ConfigError, DataError


def make(rows: int = 40, name: str = "toy", **folds) -> Dataset:
    y = np.where(np.arange(rows) % 2, 1.0, -1.0)
    folds = {key: np.asarray(value) for key, value in folds.items()}
    return Dataset(name, "binary", np.zeros((rows, 1)), y, ("x",), ("a", "b"), "0" * 64, folds)


def card(chosen: str = "random90", count: int = 20, **more) -> dict:
    return {"name": "toy", "splits": {"set": chosen, "sets": {chosen: count}, **more}}


RAETSCH = {"raetsch_train": [range(25)], "raetsch_test": [range(25, 40)]}
EXAMPLES = {
    "random90": (card(), make()),
    "groups90": (card("groups90"), replace(make(), groups=np.arange(40) // 4)),
    "random": (card("random", 3, test_rows=7), make()),
    "hla": (card("hla"), make()),
    "hla_int8": (card("hla_int8"), make(300)),
    "yang": (card("yang", 4), make(yang=np.arange(40) % 4)),
    "raetsch": (card("raetsch", 1), make(**RAETSCH)),
    "official": (card("official", 1, train_rows=30), make()),
    "draws": (card("draws", 3, test_rows=10, train_rows=10), make()),
    "stratified90": (card("stratified90"), make()),
    "kfold": (card("kfold", 8, folds=4), make()),
    "groups_kfold": (card("groups_kfold", 8, folds=4), replace(make(), groups=np.arange(40) // 4)),
    "temporal": (card("temporal", 4, folds=4), replace(make(), order=np.arange(40.0))),
    "fixed": (card("fixed", 2, folds=2), make(fixed=np.stack([np.arange(40) < 30, np.arange(40) < 20], 1) + 1)),
}
LEAKING = {"hla_int8"}


@pytest.mark.parametrize("chosen", SPLIT_SETS)
def test_no_test_row_is_a_training_row_in_any_set_but_that_of_int8_and_most_leave_no_row_out(chosen):
    card, dataset = EXAMPLES[chosen]  # every set has an example: a new one without it fails here
    for k in range(splits.count(card)):
        train, test = splits.indices(card, dataset, k)
        assert train.dtype == test.dtype == np.int64
        assert bool({*train} & {*test}) == (chosen in LEAKING)
        assert chosen in LEAKING | {"draws", "temporal"} or sorted([*train, *test]) == list(range(40))
        assert prepare(replace(dataset, X=np.eye(len(dataset.y))), train, test).held_out == (chosen not in LEAKING)
    if chosen == "yang":  # as the folds of `kfold` in test_split_kinds.py
        assert sorted(np.concatenate([splits.indices(card, dataset, k)[1] for k in range(4)])) == list(range(40))


def test_draws_and_random_train_on_rows_of_their_own_and_share_the_test_rows():
    draws = lambda test, train: card("draws", 3, test_rows=test, train_rows=train)
    parts = [splits.indices(draws(10, 10), make(), k) for k in range(3)]
    assert all(test.tolist() == list(range(10)) for _, test in parts)
    assert sorted(np.concatenate([train for train, _ in parts])) == list(range(10, 40))
    with pytest.raises(ConfigError, match=r"train_rows=11: split 2 needs 43 rows, and there are 40"):
        splits.indices(draws(10, 11), make(), 2)
    assert len({str(splits.identity(draws(*sizes))) for sizes in ((10, 10), (9, 10), (10, 9))}) == 3
    all_train, test = splits.indices(card("random", 2, test_rows=7), make(), 1)
    train, same = splits.indices(card("random", 2, test_rows=7, train_rows=20), make(), 1)
    assert (len(all_train), len(test), len(train)) == (33, 7, 20) and set(train) < set(all_train)
    np.testing.assert_array_equal(test, same)
    of = lambda **sizes: splits.identity(card("random", 2, **sizes))
    assert len({str(of(test_rows=7)), str(of(test_rows=8)), str(of(test_rows=7, train_rows=20))}) == 3
    assert set(test) != set(splits.indices(card("random", 2, test_rows=7), make(), 0)[1])


@pytest.mark.parametrize(
    "card",
    [
        card(),
        card("hla"),
        card("stratified90"),
        {"name": "toy", "splits": {"set": "kfold", "folds": 5}},
        card("random", 3, test_rows=7),
        card("random", 3, test_rows=7, train_rows=20),
        card("official", 1, train_rows=30),
        card("draws", 3, test_rows=10, train_rows=10),
    ],
)
@pytest.mark.parametrize("rows", [40, 45, 205])
def test_sizes_that_the_card_alone_says_are_those_of_every_split(card, rows):
    train, test = splits.indices(card, make(rows), 0)
    assert splits.sizes({**card, "rows": rows}) == (len(train), len(test))
    assert splits.sizes(card) is None and splits.sizes({**card, "rows": None}) is None
    for chosen in ("yang", "raetsch", "groups90", "groups_kfold", "temporal"):  # the data alone say them
        assert splits.sizes({"name": "toy", "splits": {"set": chosen, "sets": {chosen: 20}}, "rows": rows}) is None


def test_random90_is_the_same_on_every_machine_and_8_bit_indices_test_training_rows():
    np.random.seed(0)
    forwards = [splits.indices(card(), make(), k) for k in range(20)]
    np.random.seed(1)
    backwards = [splits.indices(card(), make(), k) for k in reversed(range(20))][::-1]
    np.testing.assert_equal(forwards, backwards)
    assert forwards[0][1].tolist() == [3, 8, 4, 6] and forwards[7][1].tolist() == [26, 5, 33, 8]
    parts = {tuple(sorted(test)) for _, test in forwards}
    other = {tuple(sorted(splits.indices(card(), make(name="other"), k)[1])) for k in range(20)}
    assert len(parts) == 20 and parts != other
    train, test = splits.indices(card("hla_int8"), make(8192), 3)
    right_train, right_test = splits.indices(card("hla"), make(8192), 3)
    assert (len(train), len(test)) == (len(right_train), len(right_test))
    assert set(train) <= {*range(128), *range(8192 - 128, 8192)} and set(test) <= set(train)
    assert np.array_equal(test, [((i + 128) % 256 - 128) % 8192 for i in right_test])


@pytest.mark.parametrize("sizes", [{}, {"test_rows": 41}, {"test_rows": 20, "train_rows": 21}])
def test_random_with_more_rows_than_there_are_is_an_error(sizes):
    with pytest.raises(ConfigError, match="of 40 rows: give a number of test rows"):
        splits.indices(card("random", 2, **sizes), make(), 0)


def test_the_seed_reorders_training_rows_alone_and_absent_index_files_are_clear():
    (train, test), (other, same) = (splits.indices(card(), make(), 3, seed) for seed in (0, 1))
    assert train.tolist() != other.tolist() and sorted(train) == sorted(other)
    np.testing.assert_array_equal(test, same)
    # the training rows of one class after the other would make poor minibatches
    blocked = splits.indices(card("official", 1, train_rows=30), make(), 0)[0]
    assert blocked.tolist() != sorted(blocked)
    with pytest.raises(ConfigError, match="no split set 'yang'"):
        splits.count({"name": "toy", "splits": {"set": "yang", "sets": {"hla": 20}}})
    with pytest.raises(DataError, match=r"without the index files .* fetch --again toy"):
        splits.indices(card("yang", 10), make(), 0)


@pytest.mark.parametrize("k", [-1, 20])
def test_a_split_out_of_range_says_the_range(k):
    with pytest.raises(ConfigError, match=rf"split {k} out of range: toy has splits 0\.\.19 in set 'random90'"):
        splits.indices(card(), make(), k)


@pytest.mark.parametrize(
    ("chosen", "folds", "k", "message"),
    [
        ("raetsch", {**RAETSCH, "raetsch_test": [range(26, 41)]}, 0, "split 0 of the set 'raetsch' has row 40, and"),
        ("raetsch", {**RAETSCH, "raetsch_train": [range(-1, 25)]}, 0, "has row -1, and rows are 0 to 39: its index"),
        ("raetsch", RAETSCH, 1, "split 1 of the set 'raetsch': the index files have 1 splits"),
        ("raetsch", {key: value[0] for key, value in RAETSCH.items()}, 0, "'raetsch_train' has 1 axes, not 2"),
        ("yang", {"yang": np.arange(41) % 4}, 0, "toy has 40 rows, and its index files are for 41"),
    ],
)
def test_index_files_that_do_not_fit_the_rows_are_one_clear_line(chosen, folds, k, message, one_line):
    with one_line(DataError, match=message):
        splits.indices(card(chosen, 2), make(**folds), k)


LEAKED = {
    **{"boston": 903, "concrete": 2060, "energy": 1519, "kin8nm": 16380, "naval": 23860, "power": 19140},
    **{"protein": 22865, "wine_red": 3200, "yacht": 179},
}
"""Test rows of int8 that are training rows of their split, over all splits: 29 % in yacht, 89 % in boston, 99 % in
energy, all in the others."""


@pytest.mark.parametrize("name", LEAKED)
def test_int8_leaks_as_many_test_rows_as_the_indices_say(name):
    card = cards.read(name)
    dataset, count = make(card["rows"], name), splits.count(card)
    config.read_indices_as_int8(card)
    leaked = 0
    for k in range(count):
        train, test = splits.indices(card, dataset, k)
        leaked += np.isin(test, train).sum()
        assert not prepare(dataset, train, test, inputs="none").held_out
    assert leaked == LEAKED[name]


def test_int8_is_for_data_sets_with_these_index_files_alone(one_line):
    for name in cards.names():
        card = cards.read(name)
        if card["splits"]["set"] == "hla":
            assert name in LEAKED
            continue
        with one_line(ConfigError, match=f"int8: {name} has no index files .*leave it at correct"):
            config.read_indices_as_int8(card)
    composed = compose(["dataset=boston", "protocol=bui2016", "protocol.split_indices=int8"])
    assert composed["dataset"]["splits"] == {"set": "hla_int8", "sets": {"hla": 20, "hla_int8": 20}}
    assert composed["changes"]["dataset.splits.set"] == "hla_int8"  # tables name it
    with pytest.raises(ConfigError, match="split_indices=int8: pima has no index files"):
        compose(["dataset=pima", "protocol=bui2016", "protocol.split_indices=int8"])
