"""A paper's table from records: values, marks and what is missing; our numbers beside the printed ones."""

import math
from dataclasses import replace

import pytest
from samples import sample

from gpbench.analysis import formats
from gpbench.analysis.agreement import agreement, headline, rivals_meet
from gpbench.analysis.cells import entries, group_runs
from gpbench.analysis.experiment import missing_runs, table, table_blocks
from gpbench.analysis.reproduction import Reproduction, exclusion, outcome, outcomes, reproductions, total
from gpbench.analysis.tables import has_few, with_marks
from gpbench.errors import ConfigError
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell, absent, preset_lines
from gpbench.papers.published import Published

TABLE = {"blocks": "method.inducing", "rows": "dataset", "columns": "method", "metrics": ["nll"], "average": "seconds"}
LABELS = {"method.inducing": {"0.15": "m=15%"}}
EXPERIMENT = Experiment(
    "sep/test", "A table", "sep", blocks=[], presets={"quick": "4 splits"}, labels=LABELS, table=TABLE
)
NLL = {"gfitc": [0.40, 0.52, 0.47, 0.55], "sep": [0.41, 0.50, 0.48, 0.54], "svi": [0.60, 0.71, 0.69, 0.75]}


def record(dataset="pima", method="sep", split=0, nll=0.5, **fields):
    name = {"id": f"{dataset}{method}{split}", "cell": dataset + method, "dataset": dataset, "method": method}
    facts = {"setting": "m=15%", "protocol": "hl2016", "precision": "float64", "preset": "quick", "split": split}
    facts |= {"train_rows": 900, "test_rows": 100, "device": "a cpu", "commit": "c" * 40}
    values = {"metrics": {"nll": nll}, "seconds": {"compile": 1.0, "train": 2.0 + split}}
    return sample(**name | facts | values | {"versions": {"jax": "0.10", "numpy": "2"}} | fields)


def cell(dataset="pima", method="sep", **fields):
    job = {"dataset": dataset, "method": method, "method.inducing": "0.15"}
    return Cell(job=job, id=dataset + method, dataset=dataset, method=method, seed=0, splits=range(4), **fields)


CELLS = [cell(dataset, method) for dataset in ("pima", "australian") for method in NLL]
RECORDS = [record(d, m, k, nll) for d in ("pima", "australian") for m in NLL for k, nll in enumerate(NLL[m])]


def with_records(cells, records):
    """The cells with those of the records that are theirs."""
    return [replace(cell, records=tuple(r for r in records if r.cell == cell.id)) for cell in cells]


def render(format, records=RECORDS, preset="quick"):
    sheet = table(EXPERIMENT, preset, with_records(CELLS, records))
    return formats.FORMATS[format](sheet)


def test_best_and_tied_are_marked_and_a_table_beside_the_paper_has_the_printed_values():
    for format, best, tied in (
        ("terminal", "0.482 ± 0.027*", "0.485 ± 0.033≈"),
        ("md", "**0.482 ± 0.027**", "*0.485 ± 0.033*"),
        ("latex", r"\textbf{0.482 $\pm$ 0.027}", r"\underline{0.485 $\pm$ 0.033}"),
    ):
        text = render(format)
        assert best in text and tied in text and "0.688 ± 0.032" in text.replace(r"$\pm$", "±")
        assert text.count("beside the paper: m=15") == 1 and "4 splits" in text
        assert all(cell in text for cell in ("0.52 (-1.2)", "0.54 (-1.5)", "0.49 (+5.8)"))
        assert "not significantly different from the best (corrected resampled t test over splits, 5" in text


def test_missing_cells_and_splits_are_named_and_a_table_without_any_record_shows_the_paper():
    records = [r for r in RECORDS if r.method != "svi" and r.split != 2]
    text = render("terminal", records)
    assert "svi not run; 12 of 24 runs missing: `gpbench table sep/test --preset quick --missing` lists them." in text
    assert "missing" not in render("terminal") and absent(with_records(CELLS, RECORDS)) == ""
    sheet = missing_runs(EXPERIMENT, "quick", with_records(CELLS, records))
    rows = [(row["dataset"], row["method"], row["missing"]) for row in sheet.rows]
    assert rows[2:4] == [("pima", "svi", 4), ("australian", "gfitc", 1)]
    assert sheet.rows[2]["words"] == "dataset=pima method=svi" and "4 of 4" in formats.FORMATS["terminal"](sheet)
    assert absent(with_records(CELLS, []), 2).endswith("; and 4 more")
    text = render("terminal", [])
    assert text.count("m=15%") == text.count("beside the paper: m=15%") == 1 and "0.52" in text
    assert render("csv", []).count("\n") == 9


def test_the_head_names_quick_and_mixed_presets_and_diverged_runs_are_counted_and_tie_with_nothing():
    assert render("md").splitlines()[2].startswith("Quick preset. 4 splits.")
    mixed = [*RECORDS[:-1], replace(RECORDS[-1], preset="full")]
    assert "Mixed presets: full (1), quick (23)." in render("terminal", mixed).splitlines()[1]
    full = [replace(r, preset="full") for r in RECORDS]
    assert preset_lines(with_records(CELLS, full), "full") == []
    assert preset_lines(with_records(CELLS, RECORDS), "full") == ["Mixed presets: quick (24)."]
    diverged = {"status": "diverged", "metrics": {"nll": None}}
    text = render("terminal", [replace(r, **diverged) if r.method == "gfitc" else r for r in RECORDS])
    assert "gfitcᵃ" in text and "ᵃ 4 runs diverged" in text and text.count(" diverged ") >= 2
    assert "0.482 ± 0.027*" in text


def test_an_answer_counts_the_rows_of_its_table_and_is_silent_where_some_are_missing():
    text = "{mark=best|tied of metric=nll column=sep|gfitc}; {excluded=}; {outcome=worse of column=svi metric=nll};"
    text += " {mean of row=pima column=svi metric=nll}; {column of mark=best}; {mark= of mark=|tied metric=nll}"
    said = replace(EXPERIMENT, answer=text)
    of = lambda records: table(said, "quick", with_records(CELLS, records)).answer
    cells = [e for b in table_blocks(said, with_records(CELLS, RECORDS)) for r in b.rows.values() for e in r.values()]
    n = sum(entry.delta_se is not None and not exclusion(entry) for entry in cells)
    worse = sum(outcome(entry) == "worse" for entry in cells)
    assert 0 < worse < 2 and of(RECORDS) == f"all 4; {n}; {worse} of 2; 0.6875; sep; 2 of 4"
    others = [replace(r, metrics={"nll": 0.9}) if r.method == "sep" else r for r in RECORDS]
    assert of(others).startswith("2 of 4; ") and of(RECORDS[1:]) == ""
    text = formats.FORMATS["md"](table(said, "quick", with_records(CELLS, RECORDS)))
    assert text.splitlines()[2].startswith("all 4; ")


def test_a_wrong_word_in_an_answer_is_refused_and_one_of_another_preset_is_not():
    blocks = [{"dataset": "pima", "method": {"quick": "sep", "full": "ep"}}]
    of = lambda text: table(replace(EXPERIMENT, blocks=blocks, answer=text), "quick", with_records(CELLS, RECORDS))
    for text, fault in {
        "{mark=bets of metric=nll}": "no row has mark=bets; did you mean best",
        "{mark= of block=m=15% column=sep|gfitcc}": "no row has column=gfitcc; did you mean gfitc",
        "{meen of column=sep}": "column=sep}: the rows have no 'meen'; did you mean mean",
        "{mark=best of mark}": "mark: write a condition, as mark=WORD",
    }.items():
        with pytest.raises(ConfigError, match=f"^sep/test: answer: .*{fault}"):
            of(text)
    assert of("{mean of column=ep}").answer == "" and of("{mark=best of row=pim?}").answer == "1 of 3"


def marks(row):
    return [entry.mark for entry in with_marks(row)]


@pytest.mark.parametrize("fields", [{"dataset": "naval"}, {"dataset": "mine", "held_out": False}])
def test_nothing_is_marked_on_a_set_that_is_not_for_ranking_or_where_rows_are_not_held_out(fields):
    of = lambda method, value, k: record(method=method, split=k, metrics={"test_ll": value}, **fields)
    records = [of(method, value, k) for method, value in (("a", 1.0), ("b", 3.0)) for k in range(3)]
    assert marks(entries(group_runs(records), ["test_ll"])) == ["", ""]


def test_where_more_is_better_the_largest_is_best_and_a_method_with_few_splits_is_not_compared():
    def row(spread):
        of = lambda m, x, k: record("mine", m, k, metrics={"test_ll": x * (1 + spread * k)})
        records = [of(m, x, k) for m, x in (("a", 1.0), ("b", 3.0)) for k in range(3)]
        return marks(entries(group_runs(records), ["test_ll"]))

    assert row(0.1) == ["", "best"]
    assert row(0.0) == ["tied", "best"]  # equal differences allow no test, which shows nothing
    # Over two splits b is not significantly worse than a, over all six it is.
    values = {"a": [1.0, 1.1, 1.2, 1.1, 1.0, 1.1], "b": [1.1, 1.3, 1.3, 1.2, 1.1, 1.2], "c": [0.5, 0.6]}

    def row(**methods):
        records = [record(method=m, split=k, nll=x) for m, of in methods.items() for k, x in enumerate(of)]
        return entries(group_runs(records), ["nll"])

    assert marks(row(**values)) == ["best", "", ""] and has_few(row(**values))
    assert marks(row(a=values["a"][:2], b=values["b"][:2])) == ["best", "tied"]
    assert not has_few(row(a=values["a"], c=[0.5, 0.6, 0.7]))


def test_one_split_unknown_numbers_of_rows_and_what_only_the_plain_test_shows_mark_nothing():
    row = entries(group_runs([record(method=m) for m in ("a", "b")]), ["nll"])
    assert marks(row) == ["", ""] and math.isfinite(row[0].mean)
    older = [record(method=m, split=k, nll=x + k / 99) for m, x in (("a", 1.0), ("b", 3.0)) for k in range(3)]
    older[0] = replace(older[0], test_rows=None)
    assert marks(entries(group_runs(older), ["nll"])) == ["", ""]
    # differences 1, 2, 3, 3: plain t = 4.7, corrected with 1/9: 3.9; with 1/1: 2.1, and t(3) needs 3.18
    runs = [(m, k, x) for m, of in (("a", (1, 1, 1, 1)), ("b", (2, 3, 4, 4))) for k, x in enumerate(of)]
    for rows, second in ((1000, ""), (100, "tied")):
        row = entries(group_runs([record(method=m, split=k, nll=x, train_rows=rows) for m, k, x in runs]), ["nll"])
        assert marks(row) == ["best", second]


def test_an_average_needs_the_rows_of_all_data_sets_and_a_column_that_lacks_one_has_none():
    def of_seconds(records):
        blocks = table_blocks(EXPERIMENT, with_records(CELLS, records))
        return [entry.cell.ratio for entry in blocks[0].rows["average seconds"].values()]

    assert of_seconds(RECORDS) == [pytest.approx(1 / 9)] * 3
    assert of_seconds([replace(r, test_rows=None) if r.dataset == "australian" else r for r in RECORDS]) == [None] * 3
    experiment = replace(EXPERIMENT, table={**TABLE, "average": "nll"})
    planned = [c for c in with_records(CELLS, RECORDS) if (c.dataset, c.method) != ("australian", "gfitc")]
    (block,) = table_blocks(experiment, planned)
    row = block.rows["average nll"]
    assert row["gfitc"].mean is None and [row[m].mark for m in NLL] == ["", "best", ""]


PUBLISHED = Published("sep", "1", "sep", "", 0.50, 0.01, 0.01, 20, True, "")


def compared(mean=0.5, *, published=PUBLISHED, **fields):
    """An entry of this mean, whose standard error is 0.01, beside a published value."""
    values = dict(enumerate([mean - 0.01, mean + 0.01]))
    runs = [
        sample(**{"id": str(k), "cell": "a", "split": k, "metrics": {"nll": v}, "preset": "full"} | fields)
        for k, v in values.items()
    ]
    (entry,) = entries(group_runs(runs), ["nll"])
    return replace(entry, published=published)


def test_a_target_is_equal_within_two_joint_standard_errors_and_what_is_none_says_why():
    for mean, expected in ((0.50, "equal"), (0.525, "equal"), (0.54, "worse"), (0.46, "better")):
        assert (exclusion(compared(mean)), outcome(compared(mean))) == ("", expected)
    for entry, reason in (
        (compared(0.4, published=replace(PUBLISHED, note="a misprint")), "a misprint"),
        (compared(0.4, published=replace(PUBLISHED, held_out=False)), "the printed number is not of held-out rows"),
        (compared(0.4, held_out=False), "our runs are not held out"),
        (compared(0.4, published=replace(PUBLISHED, stderr=None)), "printed without a standard error"),
        (compared(0.4, setting="kernel=matern32"), "our kernel is another than the paper's"),
        (replace(compared(), stderr=None), "our number has no standard error"),
    ):
        assert exclusion(entry) == reason and outcome(entry) == ("" if entry.delta_se is None else "different")


def test_a_printed_number_counts_once_at_its_first_place():
    name = {"cell": "a", "dataset": "pima", "method": "sep", "setting": "m=15%"}
    runs = [sample(str(k), split=k, metrics={"nll": 0.8 + k / 100}, **name) for k in range(2)]
    cell = Cell({"dataset": "pima", "method": "sep"}, "a", "pima", "sep", 0, (0, 1), records=runs)
    layout = {"rows": "dataset", "columns": "method", "metrics": ["nll"]}
    of = {"title": "", "paper": "sep", "blocks": [], "presets": {}, "labels": {}, "table": layout}
    first, second = (Experiment(id=id, **of) for id in ("sep/first", "sep/second"))
    (quick,) = reproductions([(first, "quick", [cell])])
    assert quick.exclusion == "our runs are of the quick preset" and quick.outcome == "different"
    (one,) = reproductions([(first, "full", [cell]), (second, "full", [cell])])
    assert (one.experiment, one.row, one.column, one.paper) == ("sep/first", "pima", "sep", "sep")
    assert one.published.value == 0.52 and not one.rivals and not one.informative


def test_counts_are_of_targets_alone():
    means = (0.5, 0.54, 0.46)
    ones = [Reproduction("e", "full", "r", "c", compared(mean), PUBLISHED, meet) for mean, meet in zip(means, MEET)]
    noted = replace(PUBLISHED, note="a misprint")
    ones.append(Reproduction("e", "full", "r", "c", compared(0.9, published=noted), noted, [False]))
    assert outcomes(ones) == {"equal": 1, "better": 1, "worse": 1} and outcomes([]) == {}
    assert total(ones) == headline(outcomes(ones), 1) == "3 targets: 1 equal, 1 better, 1 worse; 1 informative"


MEET = ([True, False], [False, False], ())
"""Whether rivals meet three targets: one is met, one is not and so informative, and one has no rivals."""


def value(method, means, setting="", metric="nll", **fields):
    """An entry of a method with these values by split, without a published number."""
    name = {"method": method, "setting": setting, "cell": f"{method} {setting}", "held_out": True} | fields
    runs = [sample(f"{method}{setting}{k}", split=k, metrics={metric: v}, **name) for k, v in enumerate(means)]
    (entry,) = entries(group_runs(runs), [metric])
    return replace(entry, published=None)


RIVALS = {
    "equal": value("b", [0.50, 0.52]),
    "better": value("c", [0.30, 0.32]),
    "another size": value("a", [0.51, 0.53], "m=2"),
    "one split": value("b", [0.54], "m=3", row_stderr={"nll": 0.03}),
    "one split without an error": value("b", [0.54], "m=4"),
    "worse": value("b", [0.60, 0.62], "m=5"),
}
_FIELDS = [{"held_out": False}, {"dataset": "heart"}, {"data_checksum": "x"}, {"split_set": "x"}, {"metric": "error"}]
OTHERS = [value("b", [0.50, 0.52], **fields) for fields in _FIELDS]
"""Values that are no rivals: leaked, of other rows, and by another metric."""


def test_a_rival_meets_a_target_in_the_band_of_that_or_better_by_brute_force():
    """A rival of a wide error, "one split", does not: by its own error of 0.03 it would."""
    target = replace(value("a", [0.49, 0.51], "m=1"), published=PUBLISHED)  # 0.50 ± 0.01
    table, band = [target, *RIVALS.values(), *OTHERS], 2 * math.hypot(0.01, 0.01)
    means = {name: sum(rival.values.values()) / len(rival.values) for name, rival in RIVALS.items()}
    by_hand = {name: mean <= 0.50 + band for name, mean in means.items()}
    assert {name for name, meets in by_hand.items() if meets} == {"equal", "better", "another size"}
    assert means["one split"] <= 0.50 + 2 * math.hypot(0.03, 0.01)
    assert sorted(rivals_meet(target, table)) == sorted(by_hand.values())
    for name, rival in RIVALS.items():
        assert rivals_meet(target, [target, rival, *OTHERS]) == [by_hand[name]], name
    assert rivals_meet(target, [target, *OTHERS]) == []
    # where more is better, what was better is worse; another preset of the same method is no rival of it
    gain = replace(value("a", [0.49, 0.51], "m=1", "test_ll"), published=PUBLISHED)
    others = [value("b", [0.30, 0.32], metric="test_ll"), value("c", [0.60, 0.62], metric="test_ll")]
    again = value("a", [0.49], "m=1", "test_ll")
    assert sorted(rivals_meet(gain, [gain, again, *others])) == [False, True]


def test_the_head_of_a_table_counts_targets_by_outcome_and_those_that_tell_a_method_from_its_rivals():
    target = replace(value("a", [0.49, 0.51], "m=1"), published=PUBLISHED)
    band = 100 * 2 * math.hypot(0.01, 0.01) / 0.5
    alone, beside = agreement([target, RIVALS["worse"]]), agreement([target, *RIVALS.values()])
    assert alone[0] == "1 target: 1 equal, 0 better, 0 worse; 1 informative."
    assert beside[0] == "1 target: 1 equal, 0 better, 0 worse; 0 informative."  # the control: a rival meets it
    assert f"± {band:.1f} to {band:.1f} % of the printed value, {band:.1f} in the median" in alone[1]
    assert alone[2].endswith("; 0 of their 1 values do.")
    assert beside[2].endswith("; 3 of their 6 values do.") and len(beside) == 3
    poor = replace(value("a", [0.59, 0.61], "m=1", split_set="hla"), published=PUBLISHED)
    lines = agreement([poor])
    assert lines[0].endswith("0 better, 1 worse; 0 informative.") and lines[1] == "Worse: a on pima (nll)."
    assert lines[-1].startswith("The paper has the same splits")  # and without rivals none is informative
