"""Footnotes of cells."""

import math
from dataclasses import replace

from samples import sample

from gpbench.analysis.cells import caveats, entries, group_runs
from gpbench.analysis.provenance import (
    DEGENERATE,
    DIVERGENT,
    LEAKED,
    NOISELESS,
    RISING,
    UNCONVERGED,
    UNMIXED,
    UNMIXED_WEIGHTS,
    UNSOLVED,
)
from gpbench.api.tables import table_of
from gpbench.report.site import views


def of(*records, metric="nll"):
    runs = tuple(sample(**record) for record in records)
    return caveats(replace(group_runs(runs)[0], records=runs), metric, None)


def test_runs_that_did_not_converge_or_left_a_system_unsolved_or_are_not_held_out_are_named():
    assert of({"converged": True}, {"converged": False}) == [UNCONVERGED]
    assert of({"converged": True}, {"converged": None}, {}) == []
    poor, good = {"residual": 0.008, "residual_samples": 0.02}, {"residual": 0.008}
    assert of({"diagnostics": poor}, {"diagnostics": good}) == [UNSOLVED]
    assert of({"diagnostics": good}, {"diagnostics": poor, "converged": True}) == []
    assert of({"diagnostics": poor, "converged": False}) == [UNCONVERGED]
    assert of({"held_out": True}, {"held_out": False}) == [LEAKED]


def test_a_bound_below_that_of_a_constant_prediction_is_degenerate_in_any_units():
    constant = -0.5 * math.log(2 * math.pi * math.e)
    for scale in (0.01, 1.0, 100.0):
        log_likelihoods = {"ll_std": 0.3, "test_ll": 0.3 - math.log(scale)}
        for bound, notes in ((constant + 0.1, []), (constant - 0.1, [DEGENERATE])):
            metrics = log_likelihoods | {"vlb_per_row": bound - math.log(scale)}
            assert of({"metrics": metrics}, metric="vlb") == of({"metrics": metrics}, metric="vlb_per_row") == notes
            assert of({"metrics": metrics}, metric="test_ll") == []
    assert of({"metrics": {"vlb_per_row": None}}, metric="vlb") == []


def test_chains_that_have_not_mixed_or_diverged_are_named():
    good = {"rhat": 1.01, "ess": 400.0, "divergences": 0.0}
    assert of({"diagnostics": good}, {}) == []
    for poor in ({"rhat": 1.2}, {"ess": 12.0}, {"rhat": None}):
        assert of({"diagnostics": good}, {"diagnostics": good | poor}) == [UNMIXED]
    assert of({"diagnostics": good | {"divergences": 3.0}}) == [DIVERGENT]
    outputs = {"rhat_outputs": 1.01, "ess_outputs": 400.0}
    assert of({"diagnostics": good | outputs}) == []
    assert of({"diagnostics": good | outputs | {"rhat": 1.2, "ess": 5.0}}) == [UNMIXED_WEIGHTS]


def test_an_objective_that_still_rose_and_noise_that_training_removed_are_named():
    assert of({"diagnostics": {"slope": 0.019}}, {"diagnostics": {"slope": -1.0}}) == []
    assert of({"diagnostics": {"slope": 0.019}}, {"diagnostics": {"slope": 0.021}}) == [RISING]
    assert of({"diagnostics": {"slope": 1.0, "rhat": 1.01, "ess": 400.0}}) == []
    for name, value in (("noise_at_floor", 1.2e-6), ("noise_ratio", 7.5e-5)):
        assert of({"diagnostics": {name: value}}, {"diagnostics": {"slope": 0.0}}) == [NOISELESS]
    assert of({"diagnostics": {"slope": 0.0}}, {"diagnostics": None}, {}) == []


def test_cells_of_one_run_and_of_several_share_a_note_in_tables_and_on_pages():
    slow = {"converged": False, "metrics": {"nll": 0.5}}
    one, two, three = ({**slow, "id": k * 16, "dataset": "pima"} for k in "abc")
    records = [sample(**one), sample(**two, method="svi"), sample(**three, method="svi", split=1)]
    assert str(table_of(records)).count(UNCONVERGED) == 1
    assert [row["notes"] for row in table_of(records).data] == [[UNCONVERGED], [UNCONVERGED]]
    (page,) = views.by_cell(entries(group_runs(records), ["nll"]), {})
    notes = [row["views"]["nll"]["notes"] for row in page["rows"]]
    assert (page["footnotes"], notes) == ([UNCONVERGED], [(1,), (1,)])
