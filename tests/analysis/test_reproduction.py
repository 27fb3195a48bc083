"""Our numbers beside the printed ones: what is a target, what becomes of it, and counts by paper."""

from dataclasses import replace

from samples import sample

from gpbench.analysis.cells import entries, group_runs
from gpbench.analysis.reproduction import Comparison, comparisons, exclusion, outcome, summaries
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.papers.published import Published

PUBLISHED = Published("sep", "1", "sep", "", 0.50, 0.01, 0.01, 20, True, "")


def compared(mean=0.5, *, published=PUBLISHED, **fields):
    """An entry of this mean, whose standard error is 0.01, beside a published value."""
    values = dict(enumerate([mean - 0.01, mean + 0.01]))
    runs = [
        sample(**{"id": str(k), "cell": "a", "split": k, "metrics": {"nll": v}, "preset": "full"} | fields)
        for k, v in values.items()
    ]
    (entry,) = entries(group_runs(runs), ["nll"])
    delta = (mean - published.value) / 2**0.5 / 0.01 if published.stderr else None
    return replace(entry, published=published, delta_se=delta)


def test_a_target_is_equal_within_two_joint_standard_errors_and_what_is_none_says_why():
    for mean, expected in ((0.50, "equal"), (0.525, "equal"), (0.54, "worse"), (0.46, "better")):
        assert (exclusion(compared(mean)), outcome(compared(mean))) == ("", expected)
    for entry, reason in (
        (compared(0.4, published=replace(PUBLISHED, note="a misprint")), "a misprint"),
        (compared(0.4, published=replace(PUBLISHED, held_out=False)), "the printed number is not of held-out rows"),
        (compared(0.4, held_out=False), "our runs are not held out"),
        (compared(0.4, published=replace(PUBLISHED, stderr=None)), "printed without a standard error"),
        (compared(0.4, setting="kernel=matern32"), "our kernel is another than the paper's"),
        (replace(compared(), delta_se=None), "our number has no standard error"),
    ):
        assert exclusion(entry) == reason and outcome(entry) == ("" if entry.delta_se is None else "different")


def test_a_printed_number_counts_once_at_its_first_place():
    name = {"cell": "a", "dataset": "pima", "method": "sep", "setting": "m=15%"}
    runs = [sample(str(k), split=k, metrics={"nll": 0.8 + k / 100}, **name) for k in range(2)]
    cell = Cell({"dataset": "pima", "method": "sep"}, "a", "pima", "sep", 0, (0, 1), records=runs)
    layout = {"rows": "dataset", "columns": "method", "metrics": ["nll"]}
    of = {"title": "", "paper": "sep", "blocks": [], "presets": {}, "labels": {}, "table": layout}
    first, second = (Experiment(id=id, **of) for id in ("sep/first", "sep/second"))
    (quick,) = comparisons([(first, "quick", [cell])])
    assert quick.exclusion == "our runs are of the quick preset" and quick.outcome == "different"
    (one,) = comparisons([(first, "full", [cell]), (second, "full", [cell])])
    assert (one.location, one.paper) == ("sep/first, pima, sep: nll", "sep") and one.published.value == 0.52


def test_counts_by_paper_are_of_targets_alone_and_papers_of_claims_alone_are_last():
    means = (0.5, 0.54, 0.46)
    ones = [Comparison("e", "full", "", "r", "c", compared(mean), PUBLISHED) for mean in means]
    noted = replace(PUBLISHED, note="a misprint")
    ones.append(Comparison("e", "full", "", "r", "c", compared(0.9, published=noted), noted))
    sep, other = summaries(ones, {"other": {"supported": 2}, "sep": {"supported": 1}})
    assert (sep.paper, sep.numbers, sep.targets, sep.met) == ("sep", 4, 3, 2)
    assert sep.outcomes == {"equal": 1, "better": 1, "worse": 1} and sep.claims == {"supported": 1}
    assert (other.paper, other.targets, other.claims) == ("other", 0, {"supported": 2})
