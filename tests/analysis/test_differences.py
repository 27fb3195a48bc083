"""Paired differences: the right pairs, verdicts, and unambiguous sides."""

from dataclasses import replace

import numpy as np
import pytest
from samples import sample

from gpbench.analysis import differences, formats
from gpbench.analysis.differences import paired_differences
from gpbench.analysis.sides import Side, parse_sides, shared_metrics
from gpbench.errors import ConfigError
from gpbench.report.figures.comparisons import draw_differences

A, B = [0.41, 0.50, 0.48, 0.54, 0.40], [0.44, 0.52, 0.47, 0.60, 0.45]
SIDES = Side("method", "sep"), Side("method", "svi")


def record(method="sep", split=0, nll=0.5, dataset="pima", **fields):
    name = {"id": f"{method}{dataset}{split}{fields}", "dataset": dataset, "method": method, "setting": "m=15%"}
    facts = {"commit": "a1b2", "train_rows": 900, "test_rows": 100, "precision": "float64"}
    return sample(**name | {"split": split, "metrics": {"nll": nll}} | facts | fields)


def both(a=A, b=B, of_a=(), **of_b):
    return [record(split=k, nll=v, **dict(of_a)) for k, v in enumerate(a)] + [
        record(**{"method": "svi", "split": k, "nll": v, **of_b}) for k, v in enumerate(b)
    ]


def compared(records, first="sep", second="svi", metric="nll"):
    return paired_differences(*parse_sides(first, second, records), records, metric)


def test_only_splits_that_both_have_count_and_the_winner_follows_the_direction_and_needs_significance():
    (one,), _ = compared(both(b=[*B, 99.0]))
    assert one.n == 5 and one.mean_b == pytest.approx(np.mean(B))
    (one,), _ = compared(both(train_rows=200))
    assert one.ratio == 0.5
    (one,), _ = compared([*both(), record(split=9, status="diverged"), record("svi", 9)])
    assert (one.n, one.diverged) == (5, 1)
    (close,), _ = compared(both())
    (clear,), _ = compared(both(b=[b + 1 for b in B]))
    assert (close.winner, clear.winner) == ("", "A")
    records = [replace(r, metrics={"test_ll": r.metrics["nll"]}) for r in both(b=[b + 1 for b in B])]
    (higher,), _ = compared(records, metric="test_ll")
    assert higher.winner == "B"


def test_a_side_on_one_split_is_never_better_and_settings_are_paired_alike():
    clear = both(b=[b + 1 for b in B])
    unknown = [replace(r, train_rows=None) for r in clear]
    reasons = ("a single split", "records without the numbers of training and test rows")
    for records, reason in zip((clear[::5], unknown), reasons):
        pairs, _ = compared(records)
        assert (pairs[0].winner, pairs[0].test.low) == ("", None)
        sheet = differences.sheet(*SIDES, pairs, [])
        assert f"no test ({reason}): pima" in sheet.remarks and "no significant difference in 0" in sheet.summary[0]
        assert sheet.grids[0].rows[0][-1] == "" and sheet.rows[0]["better"] is None
    sizes = [record(split=k, setting=size) for k in (0, 1) for size in ("m=15%", "m=25%")]
    pairs, unmatched = compared([*sizes, *both(a=[], setting="m=25%")[:2], *both(a=[], setting="m=99")[:2]])
    assert [(d.a.setting, d.b.setting) for d in pairs] == [("m=25%", "m=25%")]
    assert [(c.method, c.label) for c in unmatched] == [("sep", "m=15%"), ("svi", "m=99")]
    pairs, unmatched = compared(several := [*sizes, *both(a=[], setting="")[:2]])
    assert [(d.a.setting, d.b.setting) for d in pairs] == [("m=15%", ""), ("m=25%", "")] and not unmatched
    # settings are sides too, of one method each
    pairs, unmatched = compared(several, "setting:m=25%", "m=15%")
    assert [(d.a.method, d.a.setting, d.b.setting) for d in pairs] == [("sep", "m=25%", "m=15%")] and not unmatched
    defaults = [record(split=k, setting="") for k in (0, 1)]
    assert len(compared([*sizes, *defaults], "setting:none", "setting:m=25%")[0]) == 1
    others = [replace(r, method="svi", id=f"{r.id}svi") for r in (*sizes, *defaults)]
    with pytest.raises(ConfigError, match="settings are compared of one method, and these have sep, svi"):
        compared([*sizes, *defaults, *others], "setting:none", "setting:m=25%")


def test_other_split_sets_settings_protocols_and_data_are_not_compared():
    line = "sep has pima on random90, svi on groups90: split sets are not compared"
    with pytest.raises(ConfigError, match=line):
        compared(both(of_a={"split_set": "random90"}, split_set="groups90"))
    records = [record(m, k, setting=f"{m}={size}") for m in ("sep", "svi") for size in range(3) for k in range(2)]
    line = r"sep \(3 settings\) and svi \(3 settings\) share pima, but no setting is on both sides: choose one with --s"
    with pytest.raises(ConfigError, match=line):
        compared(records)
    with pytest.raises(ConfigError, match="no common split"):
        compared(both(protocol="hl2016"))
    with pytest.raises(ConfigError, match="no common split"):
        compared(both(data_checksum="other"))


def test_shared_metrics_are_those_of_a_data_set_that_both_have_and_two_commits_are_compared():
    own = [record("sep", dataset="wdbc"), record("svi", dataset="heart")]
    shared = [record(m, dataset="boston", metrics={"rmse": 1.0}) for m in ("sep", "svi")]
    assert shared_metrics(*SIDES, [*own, *shared]) == {"rmse"}
    before = [record(split=k, nll=v) for k, v in enumerate(A)]
    records = before + [record(split=k, nll=v + 1, commit="c3d4") for k, v in enumerate(A)]
    (one,), _ = compared(records, "commit:a1", "c3")
    assert one.test.mean == pytest.approx(-1)


def test_seconds_of_different_machines_are_named_and_other_metrics_need_no_such_line():
    a = {"seconds": {"train": 1.0}, "host": {"cores": 1}, "versions": {"jax": "0.1", "numpy": "2"}}
    b = {**a, "host": {"cores": 8}, "versions": {"jax": "0.2", "numpy": "2"}}
    line = "seconds are not comparable where these differ: cores 1 (5), 8 (5); jax 0.1 (5), 0.2 (5)"
    for records, metric, expected in (
        (both(of_a=a, **b), "seconds", [line]),
        (both(of_a=a, **a), "seconds", []),
        (both(of_a={**a, "host": {"cores": [1]}}, **{**a, "host": {"cores": [1]}}), "seconds", []),  # of another's file
        (both(of_a=a, **b), "nll", []),
    ):
        pairs, _ = compared(records, metric=metric)
        feet = differences.sheet(*SIDES, pairs, []).remarks
        assert [foot for foot in feet if foot.startswith("seconds")] == expected
        assert (line.split(":")[0] in draw_differences(*SIDES, pairs).get_supxlabel()) == bool(expected)


def test_unknown_and_ambiguous_sides_are_one_line():
    records = [*both(), record("both", protocol="both"), record(split=8, commit="a1ff"), record(split=9, commit="c3")]
    for first, second, line in (
        ("methd:sep", "svi", "did you mean method"),
        ("method:x", "svi", "no run has method"),
        ("sep", "clean", "different kinds"),
        ("both", "svi", "ambiguous: use method:both or protocol:both"),
        ("", "svi", "no run has the method ''"),
        ("commit:a1", "c3", "2 commits start with 'a1'"),
        ("sep", "sep", "is on both sides; name two different ones"),
    ):
        with pytest.raises(ConfigError, match=line):
            parse_sides(first, second, records)


def test_the_table_has_the_winner_and_the_interval_in_every_format_and_the_picture_a_line_each():
    pairs, unmatched = paired_differences(*SIDES, both(b=[b + 1 for b in B]), "nll")
    sheet = differences.sheet(*SIDES, pairs, unmatched)
    for name in ("terminal", "md", "latex"):
        text = formats.FORMATS[name](sheet)
        words = ("pima", "all with m=15", "sep is significantly better in 1 of 1", "-1.03")
        assert all(word in text for word in words)
    assert formats.FORMATS["csv"](sheet).splitlines()[0].startswith("dataset,output,method_a")
    records = [*both(), *both(a=A[:1], b=B[:1], of_a={"dataset": "heart"}, dataset="heart")]
    pairs, _ = paired_differences(*SIDES, records, "nll")
    (axis,) = draw_differences(*SIDES, pairs).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["heart (n = 1)", "pima (n = 5)"]
    assert "← sep better" in axis.get_xlabel()
