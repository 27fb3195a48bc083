"""Experiment files: each can be read and composed, has the runs that its paper has, and ids that never change."""

import functools
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from committed import PLANNER

from gpbench.analysis.experiment import by_dataset, table_blocks
from gpbench.errors import ConfigError
from gpbench.experiments import definition, layout
from gpbench.experiments.definition import PRESETS, overrides
from gpbench.experiments.layout import FIGURES, TABLES
from gpbench.experiments.plan import plan, plans
from gpbench.records.collection import open_store


@functools.cache
def planned(id, preset):
    """The cells of an experiment, composed once for all tests."""
    return plan(definition.read(id), preset, PLANNER)


def runs(cells):
    return sum(len(cell.splits) for cell in cells)


def test_the_full_preset_has_the_runs_of_the_paper():
    for id, cells, count in (
        ("sep/table1", 7 * 3 * 3, 1260),
        ("sep/fig1_left", 4, 4),
        ("sep/fig2", 3 * 6, 32),
        ("sep/fig3_left", 3 * 3, 630),
        ("sep/fig3_right", 2 * 8, 16),
        ("sep/fig4_top", 4, 4),
        ("sep/fig4_bottom", 3, 3),
    ):
        full = planned(id, "full")
        assert (len(full), runs(full)) == (cells, count), id
        assert runs(planned(id, "quick")) <= count
    jobs = definition.read("sep/fig3_right").jobs("full")
    assert {job["method"] for job in jobs} == {"sep", "svi"} and {job["run.devices"] for job in jobs} >= {"1", "12"}


def test_every_file_says_what_it_is_every_kind_describes_its_options_and_an_unknown_one_is_refused():
    for id in definition.names():
        experiment = definition.read(id)  # which checks the layout
        assert experiment.title and experiment.paper and set(experiment.presets) == set(PRESETS), id
        assert all(picture.figure["kind"] in FIGURES for picture in experiment.pictures.values()), id
    page = (Path(__file__).parents[2] / "docs" / "reference" / "experiments.md").read_text(encoding="utf-8")
    for kind in (*TABLES.values(), *FIGURES.values()):
        options = {**kind.required, **kind.optional}
        assert set(options.values()) <= layout._CHECKS.keys(), kind.path
        assert callable(kind.function) and all(f"`{name}" in page for name in options), kind.path
    experiment = definition.read("sep/table1")
    narrow = replace(experiment, table={**experiment.table, "blocks": []})
    with pytest.raises(ConfigError, match="australian gfitc: two cells of the table are at one place"):
        table_blocks(narrow, planned("sep/table1", "quick"))
    with pytest.raises(ConfigError, match="did you mean sep/table1"):
        definition.read("sep/tabel1")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_cell_has_a_place_of_its_own_in_the_table(preset):
    for id in definition.names():
        experiment = definition.read(id)
        if experiment.table.get("kind") == "ranks":
            label, metrics = experiment.table["label"], experiment.table["metrics"]
            assert by_dataset(experiment, planned(id, preset), label, metrics[0]), id
        elif experiment.table:
            assert table_blocks(experiment, planned(id, preset)), id


def test_a_job_is_each_combination_of_a_blocks_values(tmp_path):
    text = """
    title: mine
    all: {split: "[0,1]", seed: 3}
    runs:
      - {method: [a, b], method.m: {quick: 1, full: [1, 2]}, x: null}
      - {method: c, seed: {quick: 4, full: 5}}
    table: {rows: split, columns: method, metrics: [nll]}
    """
    experiment = reading(tmp_path, text)
    first = {"split": "[0,1]", "seed": "3", "method": "a", "method.m": "1", "x": "null"}
    quick, full = experiment.jobs("quick"), experiment.jobs("full")
    assert quick[0] == first and definition.overrides(first)[-1] == "x=null"
    assert len(quick) == 3 and len(full) == 5 and full[-1]["seed"] == "5"


OTHER = """
title: other
paper: mine
all: {dataset: [pima, heart]}
runs:
  - {protocol: [clean, hl2016], method: a, m: {quick: 1, full: [1, 2]}}
  - {protocol: {quick: hl2016, full: [clean, hl2016]}, method: b}
  - {protocol: hl2016, method: c}
labels: {method: {a: A, b: B}, m: {1: M = 1}}
table: {rows: dataset, columns: [method, m], metrics: [nll]}
"""


def reading(folder, text):
    (folder / "experiment").mkdir(exist_ok=True)
    (folder / "experiment" / "other.yaml").write_text(OTHER)
    (folder / "experiment" / "mine.yaml").write_text(text)
    return definition.read("mine", [folder])


RANKS = "kind: ranks, label: method, metrics: [nll]"


def test_runs_and_labels_of_another_experiment_are_those_that_where_selects_and_each_figure_is_one(tmp_path):
    where = "where: {protocol: clean, method: [a, b]}, labels: {m: {1: one}}"
    mine = reading(tmp_path, f"{{title: a, runs_of: other, {where}, table: {{{RANKS}}}}}")
    for preset in PRESETS:
        jobs = definition.read("other", [tmp_path]).jobs(preset)
        assert mine.jobs(preset) == [job for job in jobs if job["protocol"] == "clean" and job["method"] in "ab"] != []
    assert (mine.id, mine.title, mine.paper) == ("mine", "a", "mine")
    assert (mine.label("method", "a"), mine.label("m", "1"), mine.label("m", "2")) == ("A", "one", "2")
    dots = "{kind: dots, label: method, metric: nll, title: Dots}"
    mine = reading(tmp_path, f"{{title: a, runs_of: other, figures: {{nll: {dots}, ranks: {{{RANKS}}}}}}}")
    assert {name: (one.title, one.figure["kind"]) for name, one in mine.pictures.items()} == {
        "nll": ("Dots", "dots"),
        "ranks": ("a", "ranks"),
    }
    assert not definition.read("other", [tmp_path]).pictures
    assert list(definition.read("sep/fig2").pictures) == [""]


CHOICES = [
    ("where: {protocol: cleen}", "no run of other has protocol=cleen"),
    ("where: {protocl: clean}", "has the key 'protocl'; did you mean protocol"),
    ("runs_of: mine", "mine -> mine: an experiment cannot have its own runs"),
    ("runs: [{method: a}]", "give `runs` or `runs_of`, not both"),
    ("runs_of: othr", "did you mean other"),
    (f"figure: {{{RANKS}}}, figures: {{a: {{{RANKS}}}}}", "put `figure` among `figures`"),
    ("answer: of m=15% and 8-bit numbers 30 of 36", "answer: 30: write a number as the {CONDITIONS}"),
    (f"figure: {{{RANKS}}}, answer: none", "answer: its numbers are those of a table"),
    ("figures: [3]", "figures=[3]: must be a mapping of names to figures"),
    (f"figures: {{a/b: {{{RANKS}}}}}", "figures: a/b cannot be part of the name of a file"),
]


NONE = [
    ("[1]", "the experiment must be a mapping, not [1]"),
    ("{", "mine.yaml"),
    ("{title: a, runs: [], tabel: {}}", "lacks runs and has an unknown key 'tabel'; did you mean table"),
    ("{title: a, runs: [{method: sep}]}", "a table or a figure"),
    ("{title: a, runs: [3]}", "runs=[3]: must be a list of mappings"),
    ("{title: a, all: 3, runs: [{method: sep}], table: {x: 1}}", "all=3: must be a mapping"),
    ("{title: a, runs: [{m: {quick: 1}}], table: {x: 1}}", "a value for each of quick and full"),
]


def test_a_file_that_is_no_experiment_and_a_wrong_choice_of_anothers_runs_or_figures_are_one_line(tmp_path, one_line):
    texts = dict(NONE)
    for text, line in CHOICES:
        of = "" if "runs_of:" in text else "runs_of: other, "
        table = "" if "figure" in text else f", table: {{{RANKS}}}"
        texts[f"{{title: a, {of}{text}{table}}}"] = line
    for text, line in texts.items():
        with one_line(ConfigError, says=line):
            reading(tmp_path, text)


LAYOUTS = {
    "table: 3": "table=3: must be a mapping with rows, columns, metrics",
    "table: {rows: dataset, columns: method}": "table lacks metrics",
    "table: {ROWS, colums: method}": "table has an unknown key 'colums'; did you mean columns?",
    "table: {rows: nonsense, columns: method, metrics: [nll]}": "table.rows: no run has the key 'nonsense'; known are",
    "table: {rows: dataset, columns: method.m, metrics: [nll]}": "table.columns: not every run has the key 'method.m'",
    "table: {ROWS, blocks: 3}": "table.blocks=3: must be a key of the runs, or a list of such keys",
    "table: {ROWS, blocks: [3]}": "table.blocks=3: must be a key of the runs",
    "table: {ROWS, blocks: [protocol, protocol]}": "table.blocks: protocol is there twice",
    "figure: {kind: pie}": "no figure of kind pie; known are boundaries",
    "figure: {kind: traces, panels: nll, colour: method}": "figure.panels=nll: must be a list of metrics",
    "figure: {kind: scaling, colour: method}": "figure lacks along",
    "figure: {kind: curves, label: method, reference: c}": "figure.reference: no run has the method 'c'",
    "figure: {kind: curves, label: method, margin: 2}": "figure.margin=2: must be a number from 0 to 1",
    "table: {kind: rank}": "no table of kind rank; did you mean ranks",
    "table: {RANKED, metrics: [coverage95]}": "table.metrics: coverage95 ranks no method: neither a lower nor a higher",
    "figure: {RANKED, metrics: [nll], sets: {GPs: [a, bb]}}": "figure.sets.GPs: no run has the method 'bb'; did you",
    "figure: {RANKED, metrics: [nll], sets: {GPs: [a, a]}}": "figure.sets.GPs: a is there twice",
    "figure: {RANKED, metrics: [nll], sets: [a]}": 'figure.sets=["a"]: must be a mapping of names to lists of methods',
    "figures: {one: {kind: dots, label: method, metric: nil}}": "figures.one.metric: no metric 'nil'; did you mean nll",
}


def own(folder, layout):
    runs = "[{dataset: pima, method: a, protocol: clean}, {dataset: pima, method: b, method.m: 3, protocol: clean}]"
    text = f"title: a\nruns: {runs}\n{layout}\n".replace("ROWS", "rows: dataset, columns: method, metrics: [nll]")
    return reading(folder, text.replace("RANKED", "kind: ranks, label: [method, method.m]"))


def test_a_layout_that_does_not_fit_the_runs_is_one_line_and_one_that_fits_is_read(tmp_path, one_line):
    for text, line in LAYOUTS.items():
        with one_line(ConfigError, says=f"{tmp_path / 'experiment' / 'mine.yaml'}: {line}"):
            own(tmp_path, text)
    metrics = "[nmse, seconds, objective]"
    for text in (
        f"table: {{rows: output, columns: method, metrics: {metrics}, blocks: protocol, average: seconds}}",
        "table: {ROWS, blocks: [protocol, dataset]}",
        "table: {ROWS, blocks: []}",
        "figure: {kind: curves, label: method.m}",
        "figure: {kind: curves, label: [method.m, method], reference: a, margin: 1}",
        "figures: {one: {RANKED, metrics: [nll, rmse], sets: {first: [a], both: [a, b]}}}",
        "figure: {kind: dots, label: method, metric: coverage95}",
        "figure: {kind: traces, panels: [objective], colour: method, style: dataset, dashes: {a: dashed}}",
    ):
        assert own(tmp_path, text).title == "a"


RESULTS = Path(__file__).resolve().parents[2] / "results"

KNOWN = json.loads((Path(__file__).parent / "ids.json").read_text())
"""For each experiment and preset: the number of runs, and a digest of their ids, cells, splits and outputs."""


def runs_of(name: str, preset: str) -> list[list]:
    """The runs of an experiment, each as its id, cell, split and output."""
    jobs = [overrides(job) for job in definition.read(name).jobs(preset)]
    return [[run.id, run.cell, run.split, run.output] for plan in PLANNER.plans(jobs) for run in plan.runs]


def test_the_ids_of_every_experiment_and_of_every_committed_record_are_computed_again():
    """In one test, which plans them once."""
    assert {f"{name} {preset}" for name in definition.names() for preset in definition.PRESETS} == KNOWN.keys()
    planned = {key: runs_of(*key.split()) for key in KNOWN}
    digest = lambda of: hashlib.sha256(json.dumps(of).encode()).hexdigest()[:16]
    assert {key: [len(of), digest(of)] for key, of in planned.items()} == KNOWN
    assert not [key for key, of in planned.items() if len({run[0] for run in of}) < len(of)]
    ids = {run[0] for of in planned.values() for run in of}
    job = ["method=logistic", "protocol=hl2016", "split=all"]
    sets = ["australian", "breast", "crabs", "heart", "ionosphere", "pima", "sonar"]
    ids |= {run.id for plan in plans([[*job, f"dataset={name}"] for name in sets]) for run in plan.runs}
    beside_gpboost = ["method=vif", "method.inducing=100", "protocol=clean", "split=[0,1,2,3,4,5,6,7,8,9]"]
    peers = [[*beside_gpboost, f"dataset={name}"] for name in ("concrete", "energy")]
    ids |= {run.id for plan in plans(peers) for run in plan.runs}
    for path in sorted(RESULTS.glob("*/records.parquet")):
        unknown = [record for record in open_store(path).all() if record.id not in ids]
        assert all(record.imported for record in unknown), path
