"""Every card against a mirror of the data files, in full (skipped where GPBENCH_MIRROR names none)."""

import numpy as np
import pytest

from gpbench.data import cards, prepare, sources, split_sets, splits

CARDS = {name: cards.read(name) for name in cards.names()}
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


def test_kegg_split_2_has_a_column_that_only_seems_to_vary(mirror):
    dataset = obtain("kegg", mirror)
    train, test = splits.indices(CARDS["kegg"], dataset, 2)
    assert len(np.unique(dataset.X[train, 7])) == 1 and len(np.unique(dataset.X[test, 7])) == 2
    p = prepare(dataset, train, test)
    assert not p.X[:, 7].any() and not p.X_test[:, 7].any()
    assert max(np.abs(p.X).max(), np.abs(p.X_test).max()) < 250


@pytest.mark.parametrize(("name", "constant"), [("ionosphere", [1]), ("naval", [8, 11]), ("keggu", [9])])
def test_constant_columns_become_zeros_and_all_others_vary(name, constant, mirror):
    dataset = obtain(name, mirror)
    p = prepare(dataset, *splits.indices(CARDS[name], dataset, 0))
    assert np.flatnonzero(~p.X.any(axis=0)).tolist() == constant
    np.testing.assert_allclose(np.delete(p.X, constant, axis=1).std(axis=0), 1)
    assert np.isfinite(p.X_test).all()


def test_mnist_trains_on_the_first_60000_rows_and_odd_digits_are_positive(mirror):
    dataset = obtain("mnist_odd_even", mirror)
    train, test = splits.indices(CARDS["mnist_odd_even"], dataset, 0)
    assert sorted(train) == list(range(60000)) and sorted(test) == list(range(60000, 70000))
    assert dataset.y[:4].tolist() == [1, -1, -1, 1]  # the first digits are 5, 0, 4, 1
    assert (dataset.X[:60000].max(axis=0) > 0).sum() == 717
    assert dataset.X.max() == 255
