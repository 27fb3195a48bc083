"""Experiment files: each can be read and composed, and has the runs that its paper has."""

import math

import pytest

from gpbench.errors import ConfigError
from gpbench.experiments import definition
from gpbench.experiments.definition import PRESETS
from gpbench.experiments.plan import plan
from gpbench.report.figures import KINDS


def runs(cells):
    return sum(len(cell.splits) for cell in cells)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("id", definition.names())
def test_every_experiment_is_composed_into_cells_that_all_differ(id, preset):
    cells = plan(definition.read(id), preset)
    assert len({cell.id for cell in cells}) == len(cells) > 0


@pytest.mark.parametrize(
    "id, cells, count",
    [("sep/table1", 7 * 3 * 3, 1260), ("sep/fig1_left", 4, 4), ("sep/fig2", 3 * 6, 18),
     ("sep/fig3_left", 3 * 3, 900), ("sep/fig3_right", 2 * 8, 16), ("sep/fig4_top", 4, 4), ("sep/fig4_bottom", 3, 3)],
)  # fmt: skip
def test_the_full_preset_has_the_runs_of_the_paper(id, cells, count):
    made = plan(definition.read(id), "full")
    assert (len(made), runs(made)) == (cells, count)
    assert runs(plan(definition.read(id), "quick")) <= count


def test_figure_3_right_measures_two_methods_on_up_to_twelve_devices():
    jobs = definition.read("sep/fig3_right").jobs("full")
    assert {job["method"] for job in jobs} == {"sep", "svi"} and {job["run.devices"] for job in jobs} >= {"1", "12"}


@pytest.mark.parametrize("id", definition.names())
def test_every_file_says_what_it_is_and_its_layout_names_keys_of_its_runs(id):
    told = definition.read(id)
    assert told.title and told.paper and set(told.presets) == set(PRESETS)
    assert not told.figure or told.figure["kind"] in KINDS
    for preset in PRESETS:
        keys = set.intersection(*(set(job) for job in told.jobs(preset))) | {"output"}
        for layout in (told.table or {}, told.figure or {}):
            assert {layout[name] for name in ("rows", "columns", "blocks", "colour", "style") if name in layout} <= keys


def test_a_job_is_each_combination_of_a_blocks_values(tmp_path):
    folder = tmp_path / "experiment"
    folder.mkdir()
    text = """
    title: mine
    all: {split: "[0,1]", seed: 3}
    runs:
      - {method: [a, b], method.m: {quick: 1, full: [1, 2]}, x: null}
      - {method: c, seed: {quick: 4, full: 5}}
    table: {rows: dataset, columns: method, metrics: [nll]}
    """
    (folder / "mine.yaml").write_text(text)
    told = definition.read("mine", [tmp_path])
    first = {"split": "[0,1]", "seed": "3", "method": "a", "method.m": "1", "x": "null"}
    assert told.jobs("quick")[0] == first and definition.overrides(first)[-1] == "x=null"
    assert len(told.jobs("quick")) == 3 and len(told.jobs("full")) == 5 and told.jobs("full")[-1]["seed"] == "5"


@pytest.mark.parametrize(
    "text, line",
    [("title: a", "a title and a list of runs"), ("[1]", "a title and a list of runs"), ("{", "mine.yaml"),
     ("{title: a, runs: [], tabel: {}}", "no key 'tabel'; did you mean table"),
     ("{title: a, runs: [{method: sep}]}", "a table or a figure"),
     ("{title: a, runs: [{m: {quick: 1}}], table: {x: 1}}", "a value for each of quick and full")],
)  # fmt: skip
def test_a_file_that_is_no_experiment_is_one_line(tmp_path, text, line):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        definition.read("mine", [tmp_path])
    assert line in str(caught.value) and "\n" not in str(caught.value)


def test_an_unknown_experiment_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean sep/table1"):
        definition.read("sep/tabel1")


def test_the_paper_counts_what_the_file_counts():
    table = plan(definition.read("sep/table1"), "full")
    assert {cell.job["method.inducing"] for cell in table} == {"0.15", "0.25", "0.5"}
    assert {len(cell.splits) for cell in table} == {20} and math.prod((7, 3, 3, 20)) == runs(table)
