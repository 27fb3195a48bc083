"""Claims about diagnostics that methods record."""

import json

import pytest
from samples import sample

from gpbench.claims import definition, verdicts
from gpbench.errors import ConfigError

RECORDS = [
    sample(f"{m}{split}", method=m, split=split, metrics={"rmse": 1.0}, diagnostics={"relevant": count + split})
    for m, count in (("few", 10.0), ("many", 400.0))
    for split in range(3)
]


def judge(folder, clause):
    (folder / "claims").mkdir(exist_ok=True)
    (folder / "claims" / "mine.yaml").write_text(json.dumps({"c": {"text": "as it says", "clauses": [clause]}}))
    (verdict,) = verdicts.judge(definition.read("mine", [folder]), RECORDS, lambda id, preset: ())
    return verdict


def test_a_diagnostic_is_read_as_a_metric(tmp_path):
    clause = {"value": "diagnostics.relevant", "of": {"method": "few"}, "between": [7, 26]}
    (number,) = judge(tmp_path, clause).clauses[0].numbers
    assert number.estimate.value == 11.0 and number.estimate.n == 3
    sides = {"a": {"method": "many"}, "b": {"method": "few"}}
    (number,) = judge(tmp_path, {"difference": "diagnostics.relevant", **sides, "above": 0}).clauses[0].numbers
    assert number.estimate.value == 390.0


def test_a_diagnostic_that_no_run_has_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"diagnostics\.relevance'.*diagnostics\.relevant"):
        judge(tmp_path, {"value": "diagnostics.relevance", "of": {"method": "few"}, "below": 1})
