"""The records committed under results/ are those of the experiments, and make the committed tables."""

import functools
import re
from pathlib import Path

import pytest
from committed import PLANNER, share

from gpbench.api import tables
from gpbench.cli import main
from gpbench.experiments import definition
from gpbench.experiments.plan import plan
from gpbench.metrics import METRICS
from gpbench.records.collection import open_store
from gpbench.records.identity import SCHEMA

RESULTS = Path(__file__).resolve().parents[2] / "results"
_TABLES = {
    "full": """
        sep/table1 sep/fig4_top sep/fig4_bottom sep/table1_100 svdgp/table3 svdgp/table5 gam/fig1 qsgp/table2
    """,
    "quick": """
        svdgp/table3 svdgp/table4 svdgp/table5 svdgp/table6 gpbench/regression gpbench/networks gpbench/networks_ranks
        sep/table1_isotropic aep_dgp/table3_dsdgp
        aep_dgp/table1 aep_dgp/table2 aep_dgp/table3 aep_dgp/table3_inducing aep_dgp/table3_stop aep_dgp/ranks
        aep_dgp/fig1 aep_dgp/fig5 gam/fig1_paper gam/regression gam/classification qsgp/table2 qsgp/table3 qsgp/mnist
    """,
}
TABLES = [(name, preset) for preset, names in _TABLES.items() for name in names.split()]
RUNS = {
    "full": {"sep/fig1_left": 4, "sep/fig2": 32, "sep/fig3_left": 630, "svdgp/fig1": 3, "qsgp/fig2": 25},
    "quick": {"sep/table1": 210, "svdgp/fig2": 12, "gam/table1": 33, "qsgp/fig3": 5, "qsgp/table1": 23},
}
"""The numbers of runs of experiments that have no committed table, in which a missing run would be named."""


_make = tables._experiment_table


def file_name(experiment: str, preset: str) -> str:
    """The committed table of a preset: of two the full one's has another name."""
    return f"{experiment}_full" if preset == "full" and (experiment, "quick") in TABLES else experiment


@functools.cache
def made(experiment: str, preset: str, results: str) -> tables.Table:
    """The table of an experiment, made once for all formats."""
    return _make(experiment, preset, False, [], [results])


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """Reading the records, planning the jobs and making a table cost more than most of these tests."""
    share(monkeypatch)
    once = lambda id, preset, missing, folders, results: made(id, preset, *map(str, results))
    monkeypatch.setattr(tables, "_experiment_table", once)


def records(experiment: str) -> Path:
    return RESULTS / experiment.split("/")[0] / "records.parquet"


COUNTS = {"sep": 2644, "svdgp": 1020, "gpbench": 751, "aep_dgp": 3262, "gam": 373, "qsgp": 206, "leaderboard": 661}


def test_every_committed_record_has_this_schema_and_its_id_and_a_figure_misses_no_run():
    for paper, count in COUNTS.items():
        store = open_store(RESULTS / paper / "records.parquet")
        committed = store.all()
        assert len(committed) == len({record.id for record in committed}) == count, paper
        assert {record.schema for record in committed} == {SCHEMA}
        assert not any(record.dirty for record in committed)  # none is from uncommitted code
        configs = {store.config_text(record.id) for record in committed}
        assert not any(re.search(r"^ +(results|mirror|store): .*/", text, re.MULTILINE) for text in configs)
        assert {name for record in committed for name in record.metrics} <= METRICS.keys()
    for preset, counts in RUNS.items():
        for experiment, count in counts.items():
            cells = plan(definition.read(experiment), preset, PLANNER, open_store(records(experiment)))
            missing = sum(len(cell.missing) for cell in cells)
            assert (sum(len(cell.splits) for cell in cells), missing) == (count, 0), experiment


@pytest.mark.parametrize("paper", sorted(COUNTS.keys() - {"gpbench", "leaderboard"}))
def test_the_claims_of_a_paper_are_judged_from_its_records(paper, capsys):
    """With exit code 1 where one is contradicted, and never 2, which is an error."""
    assert main(["verify", paper, "--results", str(RESULTS / paper / "records.parquet")]) in (0, 1)
    assert f"{paper}/c01" in capsys.readouterr().out


@pytest.mark.parametrize(("experiment", "preset"), TABLES)
def test_a_committed_table_is_made_again_byte_for_byte(experiment, preset, tmp_path):
    where = ["--preset", preset, "--results", str(records(experiment)), "--out", str(tmp_path / "table")]
    sheet = made(experiment, preset, str(records(experiment))).sheet
    is_answered = bool(definition.read(experiment).answer) and not any("runs missing" in line for line in sheet.summary)
    assert bool(sheet.answer) == is_answered  # held by the committed words below
    for format in ("md", "csv"):
        assert main(["table", experiment, *where, "--format", format]) == 0
        committed = RESULTS / f"{file_name(experiment, preset)}.{format}"
        assert (tmp_path / "table").read_bytes() == committed.read_bytes()


IMPORTED = {
    "gpbench/imported.md": "boston,energy,yacht --method gpr,gpytorch_gp,linear,sklearn_gp,svi,vsgpr --split 0-9",
    "gpbench/sparse.md": "concrete,energy --method gpboost_vif,gpjax_sgpr,gpytorch_svgp,svi,vif,vsgpr --split 0-9",
    "gam/peer.md": "boston,concrete,energy,power,protein",
}


@pytest.mark.parametrize(("file", "words"), IMPORTED.items())
def test_a_committed_table_with_imported_runs_is_made_again_byte_for_byte(file, words, tmp_path):
    words = ["--results", str(records(file)), "--dataset", *words.split()]
    words += ["--metric", "rmse,test_ll", "--format", "md", "--out", str(tmp_path / "table")]
    assert main(["table", *words]) == 0
    table = (tmp_path / "table").read_bytes()
    assert table == (RESULTS / file).read_bytes() and b"imported: predictions" in table


@pytest.mark.parametrize("file", sorted((RESULTS / "leaderboard").glob("*.md")), ids=lambda file: file.stem)
def test_a_committed_board_is_made_again_byte_for_byte(file, tmp_path):
    division, *quick = file.stem.split("_")
    words = ["--division", division, *(f"--{word}" for word in quick)]
    out = tmp_path / "board.md"
    assert main(["leaderboard", *words, "--results", str(file.with_name("records.parquet")), "--out", str(out)]) == 0
    assert out.read_bytes() == file.read_bytes()
