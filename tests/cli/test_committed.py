"""The records that are committed under results/ are those that the experiments of today ask for."""

from pathlib import Path

import pytest

from gpbench.cli import main

RESULTS = Path(__file__).resolve().parents[2] / "results"


@pytest.mark.parametrize(
    ("experiment", "preset"), [("sep/table1", "full"), ("svdgp/table3", "quick"), ("svdgp/table5", "quick")]
)
def test_a_committed_table_misses_no_run(experiment, preset, capsys):
    """A key that a method gets later must not make its old runs other runs (`gpbench.records.identity`)."""
    records = RESULTS / experiment.split("/")[0] / "records.parquet"
    assert main(["table", experiment, "--preset", preset, "--results", str(records)]) == 0
    assert "MISSING" not in capsys.readouterr().out
