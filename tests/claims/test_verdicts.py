"""Verdicts over records whose truth is known."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from samples import sample
from truths import A_B, B_C, FAILS, HOLDS, LEANS_FOR, MIXED, RECORDS, SETS, SIZES, cells, judge, plan, record

from gpbench.claims import report
from gpbench.claims.selection import KeyedCell, select_cells
from gpbench.errors import ConfigError
from gpbench.records import collection
from gpbench.records.store import Store

TRUE = [
    ({"difference": "nll", **A_B, "below": 0}, HOLDS),
    ({"difference": "nll", **A_B, "above": 0, "least": 2}, FAILS),
    ({"difference": "nll", **A_B, "within": 0.02, "least": 1}, FAILS),
    ({"difference": "nll", **B_C, "within": 0.05}, HOLDS),
    ({"difference": "nll", **B_C, "below": -0.004}, MIXED),
    ({"difference": "nll", "a": {"method": "a"}, "b": {"method": ["b", "c"]}, "below": 0}, HOLDS),
    ({"difference": "nll", **A_B, "below": 0, "over": "dataset"}, HOLDS),
    ({"ratio": "seconds", **A_B, "below": 2, "over": "dataset"}, FAILS),
    ({"value": "nll", "of": {"method": "a"}, "between": [0.25, 0.35]}, HOLDS),
    ({"value": "nll", "of": {"method": "a"}, "above": 0.35}, FAILS),
    ({"value": "coverage95", "of": {"method": "a"}, "within": 1}, HOLDS),
    ({"share": "nll", **A_B, "above": 0.5}, HOLDS),
    ({"share": "nll", **A_B, "below": 0.5}, FAILS),
    ({"share": "nll", **A_B, "above": 0.9}, MIXED),  # 0.9 to the 7th is 0.48
    ({"rank": "nll", "a": {"method": "c"}, "b": {"method": "a"}, "among": {}, "below": 0}, FAILS),
    ({"rank": "nll", "a": {"method": "a"}, "b": {"method": ["b", "c"]}, "among": {}, "below": 0.5}, HOLDS),
    ({"difference": "nll", "a": {"method": "a"}, "b": {"preset": "any", "method": "b"}, "below": 0}, HOLDS),
]


def test_verdicts_where_the_truth_is_known_and_seconds_on_the_machine_of_most_runs(tmp_path):
    for clause, verdict in TRUE:
        assert judge(tmp_path, [clause]).word == verdict, clause
    # Of b three splits are of a machine on which it takes as long as a: they do not count.
    clause = {"ratio": "seconds", **A_B, "above": 2}
    moved = {"seconds": {"train": 3.0}, "host": {"cores": 16}}
    mixed = [replace(of, **moved) if of.method == "b" and of.split < 3 else of for of in RECORDS]
    verdict = judge(tmp_path, [clause], mixed)
    assert verdict.word == HOLDS
    assert {(number.estimate.n, number.machines) for number in verdict.clauses[0].numbers} == {(7, 1)}


SLOPE = {"slope": "seconds", "of": {}, "along": "setting"}
TREND = {"monotone": "nll", "of": {}, "along": "setting"}


def test_slopes_trends_and_ranges_over_a_key_of_which_a_diverged_run_makes_an_infinite_one(tmp_path):
    lists = [replace(of, setting=json.dumps([[0]] * int(of.setting))) for of in SIZES]  # a list is a size
    for clause, records, word in (
        ({**SLOPE, "between": [1.9, 2.1], "pair": []}, SIZES, HOLDS),
        ({**SLOPE, "below": 1.5}, SIZES, FAILS),
        ({**SLOPE, "between": [1.9, 2.1]}, [of for of in SIZES if of.setting != "800"], LEANS_FOR),  # three: no error
        ({**SLOPE, "between": [1.9, 2.1]}, lists, HOLDS),
        ({**TREND, "falls": 0}, SIZES, HOLDS),
        ({**TREND, "rises": 0}, SIZES, FAILS),
        ({**TREND, "falls": 0}, [of for of in SIZES if of.setting == SIZES[0].setting], "not run"),  # needs two
    ):
        assert judge(tmp_path, [clause], records).word == word, clause
    clause = {"range": "nll", **A_B, "along": "setting"}
    for bounds, word in (({"above": 0}, HOLDS), ({"between": [0.2, 0.25]}, HOLDS), ({"below": 0.1}, FAILS)):
        verdict = judge(tmp_path, [clause | bounds], RATES)
        assert verdict.word == word and verdict.clauses[0].numbers[0].estimate.value == pytest.approx(0.225)
        report.evidence(verdict)
    with pytest.raises(ConfigError, match="a has several cells of one setting on pima"):
        judge(tmp_path, [{**clause, "above": 0, "where": {"method": "any"}, "a": {}}], RATES)
    lost = [replace(r, status="diverged", metrics={"nll": None}) if r.id.startswith("a0.4") else r for r in RATES]
    verdict = judge(tmp_path, [{"range": "nll", **A_B, "along": "setting", "above": 0}], lost)
    assert verdict.word == LEANS_FOR and verdict.clauses[0].numbers[0].estimate.value == np.inf
    counts = {"a": 110.0, "b": 100.0}
    alone = [record(method, SETS[0], 0, row_operations=count) for method, count in counts.items()]
    assert judge(tmp_path, [{"ratio": "row_operations", **A_B, "below": 1.2}], alone).word == HOLDS
    assert judge(tmp_path, [{"ratio": "row_operations", **A_B, "below": 1.05}], alone).word == FAILS


RATES = [
    record(m, "pima", split, id=f"{m}{rate}-{split}", setting=str(rate), metrics={"nll": slope * rate + 0.01 * split})
    for m, slope in (("a", 1.0), ("b", 0.25))
    for rate in (0.1, 0.2, 0.4)
    for split in range(5)
]
"""By 0.3 and 0.075 the nll of a and b ranges over three rates."""


@pytest.mark.parametrize(("errors", "verdict"), [((0.1, 0.2), HOLDS), ((0.15, 0.17), LEANS_FOR)])
def test_errors_of_one_split_differ_by_its_test_rows_where_those_of_splits_are_known_as_large(
    tmp_path, errors, verdict
):
    """1,000 rows: the standard errors are 0.016 and 0.016."""
    single = [record(name, "pima", 0, metrics={"error": error}, test_rows=1000) for name, error in zip("ab", errors)]
    clause = {"difference": "error", **A_B, "below": 0}
    assert judge(tmp_path, [clause], single).word == LEANS_FOR
    assert judge(tmp_path, [{**clause, "split_ratio": 1}], single).word == verdict
    assert judge(tmp_path, [{**clause, "split_ratio": 5}], single).word == (LEANS_FOR if verdict == HOLDS else MIXED)
    ratio = judge(tmp_path, [{"ratio": "seconds", **A_B, "above": 2}], single)
    assert ratio.word == LEANS_FOR
    assert report.evidence(ratio).startswith("the ratio is 3; required here: seconds of a are")
    assert report.marks(ratio) == "one split" and report.evidence(ratio).endswith("those of b; no error is known")


def test_a_preset_selects_the_runs_of_a_claim_and_a_size_that_it_lacks_is_judged_in_the_other(tmp_path):
    """In the quick preset, b is better than a."""
    quick = [replace(r, id=f"q{r.id}", preset="quick", metrics={"nll": 1 - r.metrics["nll"]}) for r in RECORDS]
    for preset, word in (("full", HOLDS), ("quick", FAILS)):
        verdict = judge(tmp_path, [{"difference": "nll", **A_B, "below": 0}], RECORDS + quick, preset=preset)
        assert (verdict.word, verdict.preset) == (word, preset)
    # And methods are called as the experiment calls them, whatever their own names.
    sizes = {"quick": ("1", "2"), "full": ("4",)}

    def planned(id, preset):
        return [cells(word, 10, 10, m=size) for word in "ab" for size in sizes[preset]]

    for m, preset in (("2", "quick"), ("4", "full")):
        clause = {"difference": "nll", **A_B, "where": {"m": m}, "below": 0}
        verdict = judge(tmp_path, [clause], planned=planned, experiments="mine/fig1")
        assert (verdict.word, verdict.preset) == (HOLDS, preset)
    with pytest.raises(ConfigError, match="no run has m=8"):
        judge(tmp_path, [{**clause, "where": {"m": 8}}], planned=planned, experiments="mine/fig1")


def test_the_full_preset_is_judged_and_named_where_it_alone_has_or_lacks_runs(tmp_path):
    """Runs that both presets have are the quick one's where the full one has no others."""
    claim = {"clauses": [{"difference": "nll", **A_B, "below": 0}], "experiments": "mine/fig1"}
    for presets, preset in (
        ({"quick": (5, 5), "full": (20, 5)}, "quick"),
        ({"quick": (5, 5), "full": (20, 20)}, "full"),
        ({"quick": (5, 0), "full": (20, 6)}, "full"),
    ):
        verdict = judge(tmp_path, planned=plan(presets), **claim)
        assert (verdict.word, verdict.preset) == (HOLDS, preset)
    both = judge(tmp_path, planned=plan({"quick": (5, 0), "full": (20, 0)}), **claim)
    full = judge(tmp_path, planned=plan({"full": (20, 0)}), **claim)
    assert both.reason == "gpbench reproduce mine/fig1 [--preset full]"
    assert full.reason == "gpbench reproduce mine/fig1 --preset full"


def test_ranks_are_over_the_splits_that_all_methods_have(tmp_path):
    """b is the better one on every split that both have; a's further splits are easier."""
    nll = {"a": lambda split: 0.5 if split < 5 else 0.1, "b": lambda split: 0.4}
    splits = {"a": range(20), "b": range(5)}
    uneven = [record(m, d, k, metrics={"nll": nll[m](k)}) for m in "ab" for d in SETS for k in splits[m]]
    clause = {"rank": "nll", "a": {"method": "b"}, "b": {"method": "a"}, "among": {}, "below": 0}
    assert judge(tmp_path, [clause], uneven).word == HOLDS


def test_memory_and_operations_are_counted_and_a_diagnostic_is_read_as_a_metric(tmp_path):
    """n² + 50 n is no line in logarithms, but that of least squares has an exponent without an error."""
    for field in ("step_memory_mb", "step_operations"):
        sizes = [replace(of, **{field: 1e-6 * int(of.setting) * (int(of.setting) + 50)}) for of in SIZES]
        clause = {"slope": field, "of": {}, "along": "setting"}
        assert judge(tmp_path, [{**clause, "between": [1.5, 2.0]}], sizes).word == HOLDS
        assert judge(tmp_path, [{**clause, "below": 1.5}], sizes).word == FAILS
    diagnosed = [
        sample(f"{m}{split}", method=m, split=split, metrics={"rmse": 1.0}, diagnostics={"relevant": count + split})
        for m, count in (("a", 400.0), ("b", 10.0))
        for split in range(3)
    ]
    of_b = {"value": "diagnostics.relevant", "of": {"method": "b"}, "between": [7, 26]}
    for clause, value in ((of_b, 11.0), ({"difference": "diagnostics.relevant", **A_B, "above": 0}, 390.0)):
        (number,) = judge(tmp_path, [clause], diagnosed).clauses[0].numbers
        assert (number.estimate.value, number.estimate.n) == (value, 3)
    with pytest.raises(ConfigError, match=r"diagnostics\.relevance'.*diagnostics\.relevant"):
        judge(tmp_path, [{**of_b, "value": "diagnostics.relevance"}], diagnosed)


def test_clauses_must_all_hold_unless_any_is_enough_and_ratios_are_ratios_in_json(tmp_path):
    good, bad = ({"difference": "nll", **A_B, side: 0} for side in ("below", "above"))
    assert judge(tmp_path, [good, bad]).word == FAILS
    assert judge(tmp_path, [good, bad], any=True).word == HOLDS
    clause = {"ratio": "seconds", **A_B, "between": [2.5, 3.5], "over": "dataset"}
    (found,) = report.as_dict(judge(tmp_path, [clause]))["clauses"]
    assert [found["low"], found["high"], found["numbers"][0]["value"]] == pytest.approx([2.5, 3.5, 3.0])
    (found,) = report.as_dict(judge(tmp_path, [{**clause, "between": [0, 3.5]}]))["clauses"]
    assert (found["low"], found["clause"]) == (None, "seconds of a are less than 3.5 times those of b over data sets")
    runs = [KeyedCell({"method": "a", "steps": "9"}, None), KeyedCell({"method": "a"}, None)]
    assert select_cells(runs, {"steps": ("",)}) == runs[1:]
    assert select_cells(runs, {"steps": ("any",)}) == runs


def test_a_control_is_the_clause_about_other_runs_and_a_margin_of_a_ratio_is_measured_from_a_ratio(tmp_path):
    """a is below b and c, and b is not below c by 0.05."""
    clause = {"difference": "nll", **A_B, "below": -0.05}
    for control, passes in (({"a": {"method": "c"}}, False), ({"b": {"method": "c"}}, True)):
        verdict = judge(tmp_path, [{**clause, "control": control}])
        assert verdict.word == (LEANS_FOR if passes else HOLDS)
        assert ("its control lies there too" in report.evidence(verdict)) == passes
    with pytest.raises(ConfigError, match="clause 1: no run has method=z"):
        judge(tmp_path, [{**clause, "control": {"a": {"method": "z"}}}])
    assert judge(tmp_path, [{**clause, "control": "c, which is not run"}]).word == HOLDS
    # seconds of a are 3 times those of b: above 2 and above 2^.5, not above 2^2
    ratio = {"ratio": "seconds", **A_B, "above": 2}
    assert [judge(tmp_path, [ratio | ours]).word for ours in ({}, {"margin_from": 1})] == [HOLDS, MIXED]
    assert judge(tmp_path, [{**ratio, "above": 1.5, "margin_from": 1}]).word == HOLDS


def test_rivals_that_a_number_is_not_shown_against_and_keys_with_their_default_are_named(tmp_path):
    clause = {"difference": "nll", "a": {"method": "b"}, "b": {"method": ["a", "c"]}, "above": 0, "over": "dataset"}
    evidence = report.evidence(judge(tmp_path, [clause]))
    assert evidence.startswith("b has higher nll than a or c in 1 of 2 cases; not c")
    twins = [replace(of, setting="m=1" if of.split < 5 else "m=2") if of.method == "c" else of for of in RECORDS]
    clause = {"difference": "nll", "a": {"method": "a"}, "b": {"method": "c", "setting": ["m=1", "m=2"]}, "above": 0}
    verdict = judge(tmp_path, [clause], twins)
    line = "a has higher nll than c setting=m=1|m=2 in none of 14 comparisons; the errors exclude it for 14"
    assert report.evidence(verdict) == line
    lines = "\n".join(report.details(verdict))
    assert "australian c m=1: -0.09" in lines and "australian c m=2: -0.1" in lines
    clause = {**clause, "a": {"method": "a", "setting": ""}, "b": {"method": "c", "setting": "m=1"}}
    evidence = report.evidence(judge(tmp_path, [clause], twins))
    assert evidence.startswith("a setting=default has higher nll than c setting=m=1 in none of 7 cells")


def test_sentences_are_those_that_a_person_would_say(tmp_path):
    said = lambda clause, records=RECORDS: report.evidence(judge(tmp_path, [clause], records))
    rivals = {"difference": "nll", "a": {"method": "a"}, "b": {"method": ["b", "c"]}, "below": 0, "least": 5}
    assert said(rivals) == "a has lower nll than both b and c in all 7 cells, where 5 must"
    few = [replace(of, setting=m, id=of.id + m) for of in RECORDS if of.dataset in SETS[:2] for m in ("m=1", "m=2")]
    seconds = {"ratio": "seconds", **A_B, "above": 1, "where": {"setting": "m=1"}}
    assert said(seconds, few) == "seconds of a exceed those of b in both cells"
    changed = lambda of: replace(of, metrics={"nll": 0.5}) if (of.method, of.setting) == ("a", "m=2") else of
    equal = [changed(of) for of in few if of.dataset == SETS[0]]
    each = {"difference": "nll", **A_B, "below": 0, "each": "setting"}
    assert "; not setting=m=2; the errors show 1 of them and exclude it for 1" in said(each, equal)
    lines = report.details(judge(tmp_path, [{**each, "over": "dataset"}], few))
    assert "; mean -0.0" in lines[0] and " of 2 cases, median -0.0" in lines[0]
    (p,) = (line for line in lines if line.startswith("p for "))
    assert re.fullmatch(r"p for \S+, p against \S+; two-sided over the claims of the paper \S+", p)
    share = said({"share": "nll", **B_C, "above": 0.9})
    assert re.match(r"the share is \d\.\d\d \[\d\.\d\d, \d\.\d\d\]; required here: ", share)


def test_records_in_any_order_and_from_parquet_give_the_same_verdicts(tmp_path):
    store = Store(tmp_path)
    for of in RECORDS:
        store.write(of, {}, {})
    collection.write(tmp_path / "records.parquet", [(of, "") for of in RECORDS])
    clauses = [{"difference": "nll", **B_C, "within": 0.05, "least": 5}]
    first, *others = (
        judge(tmp_path, clauses, records)
        for records in (RECORDS, RECORDS[::-1], store.all(), collection.open_store(tmp_path / "records.parquet").all())
    )
    assert all(other.evidence == first.evidence and other.word == first.word for other in others)
