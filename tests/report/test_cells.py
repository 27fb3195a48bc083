"""A table's numbers: means over splits, of one configuration each, without the diverged."""

import math

import pytest

from gpbench.report.cells import cells, entries, entry, provenance


def run(split=0, nll=0.5, **fields):
    return {
        "id": f"{fields}{split}", "status": "done", "dataset": "pima", "method": "sep", "setting": "m=50%",
        "protocol": "clean", "precision": "float64", "preset": None, "split": split, "seed": 0, "output": None,
        "metrics": {"nll": nll, "error": 0.2}, "seconds": {"train": 2.0}, "cell": "c", **fields,
    }  # fmt: skip


def one(records, metric="nll"):
    (cell,) = cells(records)
    return entry(cell, metric)


def test_mean_and_standard_error_over_splits():
    found = one([run(0, 0.4), run(1, 0.5), run(2, 0.6)])
    assert (found.mean, found.n_splits, found.diverged) == (pytest.approx(0.5), 3, 0)
    assert found.stderr == pytest.approx(0.1 / math.sqrt(3))


def test_delta_is_in_joint_standard_errors():
    found = one([run(0, 0.4), run(1, 0.5), run(2, 0.6)])
    assert found.published.value == 0.5
    found = one([run(0, 0.5), run(1, 0.6), run(2, 0.7)])
    assert found.delta_se == pytest.approx(0.1 / math.hypot(0.1 / math.sqrt(3), 0.05 / math.sqrt(20)))


def test_one_split_has_no_standard_error_and_no_delta():
    found = one([run(0, 0.4)])
    assert (found.mean, found.stderr, found.delta_se) == (0.4, None, None)


def test_diverged_runs_are_counted_and_never_averaged():
    records = [run(0, 0.4), run(1, 0.6), run(2, 99.0, status="diverged"), run(3, None)]
    found = one(records)
    assert (found.mean, found.n_splits, found.diverged) == (pytest.approx(0.5), 2, 2)


def test_a_cell_of_diverged_runs_alone_still_shows():
    (found,) = entries(cells([run(0, status="diverged", metrics={})]), ["nll"])
    assert (found.mean, found.n_splits, found.diverged) == (None, 0, 1)


def test_seeds_are_averaged_within_a_split_first():
    found = one([run(0, 0.0), run(0, 0.2, seed=1), run(1, 0.5)])
    assert (found.mean, found.n_splits) == (pytest.approx(0.3), 2)


@pytest.mark.parametrize("field", ["protocol", "precision", "preset"])
def test_what_differs_is_never_mixed_and_stands_in_the_setting(field):
    made = cells([run(0), run(1, **{field: "other"})])
    assert len(made) == 2
    assert {cell.label for cell in made} == {f"m=50%, {field}={run()[field] or 'none'}", f"m=50%, {field}=other"}
    assert all(entry(cell, "nll").published.value == 0.5 for cell in made)


@pytest.mark.parametrize("field", ["cell", "data_checksum"])
def test_configurations_that_no_name_tells_apart_are_told_apart_by_a_digest(field):
    made = cells([run(0, **{field: "aaaa"}), run(1, **{field: "bbbb"})])
    assert len({cell.label for cell in made}) == 2


def test_our_leaked_results_and_the_papers_are_marked():
    clean, leaked = run(dataset="kin8nm", method="fitc_gp", setting="m=50", metrics={"rmse": 1.0}), run(held_out=False)
    found = one([clean], "rmse")
    assert not found.held_out and "8-bit" in found.notes[0]
    assert not one([leaked]).held_out and "training rows" in one([leaked]).notes[0]
    assert one([run()]).held_out and one([run()]).notes == []


def test_naval_says_that_it_ranks_nothing():
    assert "not for ranking" in one([run(dataset="naval", metrics={"rmse": 1.0})], "rmse").notes[0]


def test_the_default_metric_is_the_tasks():
    regression = run(dataset="boston", metrics={"rmse": 1.0, "test_ll": -1.0, "nmse": 0.1})
    assert [e.metric for e in entries(cells([run()]))] == ["nll"]
    assert [e.metric for e in entries(cells([regression]))] == ["rmse", "test_ll"]
    assert [e.metric for e in entries(cells([regression]), ["all"])] == ["nmse", "rmse", "test_ll", "seconds"]


def test_seconds_are_training_seconds():
    assert one([run()], "seconds").mean == 2.0


def test_cells_are_in_natural_order():
    made = cells([run(setting="m=100"), run(setting="m=15"), run(setting="m=15", dataset="crabs")])
    assert [(cell.dataset, cell.setting) for cell in made] == [("crabs", "m=15"), ("pima", "m=15"), ("pima", "m=100")]


def test_provenance_counts_what_runs_were_made_with():
    told = provenance([run(device="cpu", commit="a" * 40), run(1, device="gpu", dirty=True, commit="a" * 40)])
    assert told["device"] == {"cpu": 1, "gpu": 1}
    assert told["commit"] == {"a" * 12: 1, "a" * 12 + " with changes": 1}
