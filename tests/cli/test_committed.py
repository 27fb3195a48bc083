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
TABLES = [
    ("sep/table1", "full"),
    ("sep/fig4_top", "full"),
    ("sep/fig4_bottom", "full"),
    ("svdgp/table3", "quick"),
    ("svdgp/table4", "quick"),
    ("svdgp/table5", "quick"),
    ("svdgp/table6", "quick"),
    ("svdgp/table3", "full"),
    ("svdgp/table5", "full"),
    ("gpbench/regression", "quick"),
    ("sep/table1_isotropic", "quick"),
    ("sep/table1_100", "full"),
    ("aep_dgp/table1", "quick"),
    ("aep_dgp/table2", "quick"),
    ("aep_dgp/table3", "quick"),
    ("aep_dgp/table3_inducing", "quick"),
    ("aep_dgp/table3_stop", "quick"),
    ("aep_dgp/ranks", "quick"),
    ("aep_dgp/fig1", "quick"),
    ("aep_dgp/fig5", "quick"),
    ("gam/fig1", "full"),
    ("gam/fig1_paper", "quick"),
    ("gam/regression", "quick"),
    ("gam/classification", "quick"),
    ("qsgp/table2", "quick"),
    ("qsgp/table2", "full"),
    ("qsgp/table3", "quick"),
    ("qsgp/mnist", "quick"),
]


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


COUNTS = {"sep": 2644, "svdgp": 1020, "gpbench": 551, "aep_dgp": 3227, "gam": 373, "qsgp": 206, "leaderboard": 2246}


@pytest.mark.parametrize(("paper", "count"), COUNTS.items())
def test_every_committed_record_has_this_schema_and_an_id_of_its_own(paper, count):
    store = open_store(RESULTS / paper / "records.parquet")
    committed = store.all()
    assert len(committed) == len({record.id for record in committed}) == count
    assert {record.schema for record in committed} == {SCHEMA}
    assert not any(record.dirty for record in committed)  # none is from uncommitted code
    configs = {store.config_text(record.id) for record in committed}
    assert not any(re.search(r"^ +(results|mirror|store): .*/", text, re.MULTILINE) for text in configs)
    assert {name for record in committed for name in record.metrics} <= METRICS.keys()


@pytest.mark.parametrize(
    ("experiment", "preset", "runs"),
    [
        ("sep/table1", "full", 1260),
        ("sep/table1", "quick", 210),
        ("sep/fig1_left", "full", 4),
        ("sep/fig2", "full", 32),
        ("sep/fig3_left", "full", 630),
        ("sep/fig4_top", "full", 4),
        ("sep/fig4_bottom", "full", 3),
        ("svdgp/fig1", "full", 3),
        ("svdgp/fig2", "quick", 12),
        ("svdgp/table3", "quick", 84),
        ("svdgp/table4", "quick", 168),
        ("svdgp/table5", "quick", 216),
        ("svdgp/table6", "quick", 216),
        ("gpbench/regression", "quick", 411),
        ("sep/table1_isotropic", "quick", 210),
        ("sep/table1_100", "full", 300),
        ("aep_dgp/table1", "quick", 120),
        ("aep_dgp/table2", "quick", 48),
        ("aep_dgp/table3", "quick", 2580),
        ("aep_dgp/table3_inducing", "quick", 630),
        ("aep_dgp/table3_stop", "quick", 60),
        ("aep_dgp/fig1", "quick", 25),
        ("aep_dgp/fig5", "quick", 5),
        ("gam/fig1", "full", 160),
        ("gam/fig1_paper", "quick", 30),
        ("gam/table1", "quick", 33),
        ("gam/regression", "quick", 115),
        ("gam/classification", "quick", 20),
        ("qsgp/fig2", "full", 25),
        ("qsgp/fig3", "quick", 5),
        ("qsgp/table1", "quick", 23),
        ("qsgp/table2", "quick", 24),
        ("qsgp/table3", "quick", 32),
        ("qsgp/mnist", "quick", 4),
    ],
)
def test_a_committed_table_or_figure_misses_no_run(experiment, preset, runs):
    cells = plan(definition.read(experiment), preset, records=open_store(records(experiment)), planner=PLANNER)
    assert (sum(len(cell.splits) for cell in cells), sum(len(cell.missing) for cell in cells)) == (runs, 0)


@pytest.mark.parametrize("paper", sorted(COUNTS.keys() - {"gpbench", "leaderboard"}))
def test_the_claims_of_a_paper_are_judged_from_its_records(paper, capsys):
    """With exit code 1 where one is contradicted, and never 2, which is an error."""
    assert main(["verify", paper, "--results", str(RESULTS / paper / "records.parquet")]) in (0, 1)
    assert f"{paper}/c01" in capsys.readouterr().out


@pytest.mark.parametrize("format", ["md", "csv"])
@pytest.mark.parametrize(("experiment", "preset"), TABLES)
def test_a_committed_table_is_made_again_byte_for_byte(experiment, preset, format, tmp_path):
    where = ["--preset", preset, "--results", str(records(experiment)), "--format", format]
    assert main(["table", experiment, *where, "--out", str(tmp_path / "table")]) == 0
    assert (tmp_path / "table").read_bytes() == (RESULTS / f"{file_name(experiment, preset)}.{format}").read_bytes()


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("gpbench/imported.md", "boston,energy,yacht --method gpr,gpytorch_gp,linear,sklearn_gp,svi,vsgpr --split 0-9"),
        (
            "gpbench/sparse.md",
            "concrete,energy --method gpboost_vif,gpjax_sgpr,gpytorch_svgp,svi,vif,vsgpr --split 0-9",
        ),
        ("gam/peer.md", "boston,concrete,energy,power,protein"),
    ],
)
def test_a_committed_table_with_imported_runs_is_made_again_byte_for_byte(file, words, tmp_path):
    words = ["--results", str(records(file)), "--dataset", *words.split()]
    words += ["--metric", "rmse,test_ll", "--format", "md", "--out", str(tmp_path / "table")]
    assert main(["table", *words]) == 0
    table = (tmp_path / "table").read_bytes()
    assert table == (RESULTS / file).read_bytes() and b"imported: predictions" in table


@pytest.mark.parametrize("file", sorted((RESULTS / "leaderboard").glob("*.md")), ids=lambda file: file.stem)
def test_a_committed_board_is_made_again_byte_for_byte(file, tmp_path):
    division, seconds, *half = file.stem.split("_")
    words = ["--division", division, "--budget", seconds, *(f"--{word}" for word in half)]
    out = tmp_path / "board.md"
    assert main(["leaderboard", *words, "--results", str(file.with_name("records.parquet")), "--out", str(out)]) == 0
    assert out.read_bytes() == file.read_bytes()
