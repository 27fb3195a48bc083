"""README.md and docs/: their lengths, the output of commands, counts and grades of the records, and the tutorials."""

import csv
import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest
from committed import PLANNER
from PIL import Image
from pyarrow import parquet
from test_commands import PAGES, ROOT, blocks
from test_examples import EXAMPLES, call, gpbench

from gpbench.analysis.reproduction import load_reproductions, outcomes, total
from gpbench.api import tables
from gpbench.claims import definition
from gpbench.claims.grades import SCALE
from gpbench.cli import main
from gpbench.papers import PAPERS
from gpbench.records.collection import open_store
from gpbench.records.store import latest

README = ROOT / "README.md"
MADE = {"settings.md", "datasets.md", "experiment_list.md", "reproduced.md", "defaults.md", "verdicts.md"}
HEADER, *ROWS = (
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in re.search(r"^\| claims of \|(?:.*\n)(?:\|.*\n)*", README.read_text(), re.MULTILINE)[0].splitlines()
)
ROWS = {paper: dict(zip(HEADER[1:], map(int, (n or "0" for n in numbers)))) for paper, *numbers in ROWS[1:]}
"""Numbers of claims with each grade by paper, of the table in README.md."""
DECIDED = "proved, holds, mostly holds, fails, refuted"


def shown() -> list[tuple[Path, str, str]]:
    """Every command of a block `console`, with its page and the output below it."""
    parts = re.compile(r"^\$ gpbench (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
    return [(page, *found) for page in PAGES for block in blocks(page, "console") for found in parts.findall(block)]


def test_the_documentation_stays_short_and_every_paper_has_a_row_of_all_its_claims():
    assert len(README.read_text().splitlines()) <= 149
    for drawer, most in {"tutorial": 800, "how-to": 4_000, "reference": 6_230, "results": 5_710}.items():
        texts = [page.read_text() for page in PAGES if page.parent.name == drawer and page.name not in MADE]
        prose = (re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL) for text in texts)
        assert sum(len(re.findall(r"[^\W\d_]{2,}", text)) for text in prose) <= most, drawer
    *papers, last = ROWS
    assert sorted(papers) == sorted(definition.files()) and last == "all"
    assert all(sum(ROWS[paper].values()) == len(definition.read(paper)) for paper in papers)
    assert ROWS["all"] == {word: sum(ROWS[paper][word] for paper in papers) for word in ROWS["all"]}
    claims = [claim for paper in definition.files() for claim in definition.read(paper)]
    assert all(claim.clauses or claim.tests or claim.elsewhere for claim in claims)
    decided, none = (sum(ROWS["all"][w] for w in words.split(", ")) for words in (DECIDED, "not run, not here"))
    rest = len(claims) - decided - none
    text = f"Of {len(claims)} claims {decided} are decided, {rest} lean or are mixed, and {none} have"
    assert all(text in " ".join(page.read_text().split()) for page in COUNTED[::2])


@pytest.mark.parametrize("page, command, output", shown(), ids=[command for _, command, _ in shown()])
def test_a_command_prints_what_the_page_shows(page, command, output, tmp_path, monkeypatch):
    monkeypatch.delenv("GPBENCH_SHIPPED", raising=False)
    prints = call if command.startswith("run") else gpbench  # quicker where JAX is imported
    printed = prints(tmp_path, *command.split())
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.OutputChecker().check_output(output, printed, options), printed


@pytest.mark.parametrize("paper", definition.files())
def test_the_row_of_a_paper_has_the_grades_of_its_claims(paper):
    verdicts: Sequence = tables.verify(paper, results=sorted(ROOT.glob("results/*/records.parquet"))).data
    assert ROWS[paper] == {grade.word: sum(row["verdict"] == grade.word for row in verdicts) for grade in SCALE}


COUNTED = (ROOT / "README.md", ROOT / "docs" / "results" / "README.md", ROOT / "paper" / "paper.md")
TARGETS = {"sep": (50, 4, 0), "aep_dgp": (31, 25, 2), "qsgp": (3, 3, 0)}
"""Numbers of targets that are equal, better and worse."""
HEADLINE = "118 targets: 84 equal, 32 better, 2 worse; 3 informative"


def rows(paper: str) -> list[str]:
    lines = [line for page in COUNTED for line in page.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if re.match(rf"\| \[`?{paper}`?\]", line)]


def test_pages_and_the_badge_have_the_numbers_of_targets_of_runs_that_ship_and_of_grades():
    for paper, counts in TARGETS.items():
        words = "{} equal, {} better, {} worse".format(*counts)
        assert rows(paper) and all(f"| {words}" in row for row in rows(paper))
        page = (ROOT / "docs" / "results" / f"{paper}.md").read_text(encoding="utf-8")
        assert f"(targets: {words})" in " ".join(page.split()) and page.count("**In short.**  What ") == 1
    badge = (ROOT / "docs" / "gallery" / "badge.svg").read_text(encoding="utf-8")
    assert HEADLINE in badge and f"![{HEADLINE}]" in COUNTED[0].read_text()
    files = sorted(ROOT.glob("results/*/records.parquet"))
    ids = {id for file in files for id in parquet.read_table(file, columns=["id"]).column("id").to_pylist()}
    for page in (*COUNTED[::2], ROOT / "docs" / "reference" / "records.md"):
        assert f"{len(ids):,} runs" in page.read_text(encoding="utf-8")
    # Which tests/docs/test_readme.py holds against the records.
    table = re.findall(r"^\| (claims of|sep|svdgp|aep_dgp|gam|qsgp) \| (.*) \|$", COUNTED[0].read_text(), re.MULTILINE)
    (_, header), *papers = ((name, [cell.strip() for cell in cells.split("|")]) for name, cells in table)
    assert len(papers) == 5
    for paper, numbers in papers:
        words = ", ".join(f"{n} {word}" for word, n in zip(header, numbers) if n)
        page = (ROOT / "docs" / "results" / f"{paper}.md").read_text(encoding="utf-8")
        assert f"grades the claims: {words}." in " ".join(page.split())


def test_the_numbers_of_targets_are_those_of_the_records():
    records = latest(record for file in ROOT.glob("results/*/records.parquet") for record in open_store(file).all())
    found = load_reproductions(records)
    for paper, counts in TARGETS.items():
        by_outcome = outcomes(ours for ours in found if ours.paper == paper)
        assert tuple(by_outcome[word] for word in ("equal", "better", "worse")) == counts
    assert total(found) == HEADLINE and f"118 of {len(found)} printed numbers" in " ".join(README.read_text().split())
    assert outcomes(ours for ours in found if ours.entry.cell.method == "vi_g") == {"equal": 2, "better": 14}
    for page in COUNTED:
        assert "118 targets 84 are equal, 32 better and 2 worse" in " ".join(page.read_text(encoding="utf-8").split())
    kinds = {"sep": "nll", "aep_dgp": "rmse"}  # of log densities the band in % says little
    targets = [ours for ours in found if not ours.exclusion]
    bands = {p: [o.entry.band for o in targets if (o.paper, o.entry.metric) == (p, kind)] for p, kind in kinds.items()}
    text = "are {:.0f} % of sep's printed values in the median and {:.0f} % of aep_dgp's RMSEs, and only 3 of 118"
    assert text.format(median(bands["sep"]), median(bands["aep_dgp"])) in " ".join(README.read_text().split())
    with Image.open(ROOT / "docs" / "gallery" / "printed.png") as picture:
        assert picture.info["Title"] == f"Ours against printed: {HEADLINE}"


@pytest.fixture(scope="module")
def records():
    return [record for path in ROOT.glob("results/*/records.parquet") for record in open_store(path).all()]


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_is_that_of_the_records(paper, records, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import reproduced

    assert reproduced.section(paper, records, PLANNER) in reproduced.PAGE.read_text()


def test_the_numbers_outside_the_count_are_those_of_the_records_and_readme_names_them(records, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import reproduced

    outside, readme = reproduced.outside(records, PLANNER), " ".join(README.read_text().split())
    assert reproduced.PAGE.read_text().endswith(outside)
    (worse,) = re.findall(r"and (\d+) are worse", " ".join(outside.split()))
    assert f"22 of ours are better and {worse} worse by over 2 %" in readme
    assert "40 printed numbers without such an error 22 of our means are better" in " ".join(outside.split())
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in outside.splitlines() if line[:2] == "| "]
    named = re.findall(r"(kin8nm|protein) \(test_ll (-?[\d.]+), (?:by later papers )?(-?[\d.]+)", readme)
    later = {(r[0], float(r[2].split()[0]), float(r[3])) for r in rows if r[1] == "test_ll" and r[4] == "worse"}
    assert len(named) == 2 and {row[0] for row in rows if row[4:5] == ["worse"]} == {name for name, *_ in named}
    for dataset, ours, printed in named:
        assert any(k == dataset and f"{a:.3f}" == ours and p == float(printed) for k, a, p in later)
    bases = {r[0]: float(r[1]) > float(r[2]) for r in rows if len(r) == 3 and r[0] not in ("data set", "---")}
    assert bases["kin40k"] and bases["protein_yang"] and bases["keggu"]


def test_the_page_of_sep_has_what_best_shows_over_all_sets(tmp_path):
    page = " ".join((ROOT / "docs" / "results" / "sep.md").read_text(encoding="utf-8").split())
    (command,) = re.findall(r"`gpbench (best [^`]*) --results shipped`", page)
    rows = json.loads(call(tmp_path, *command.split(), "--results", str(ROOT / "results" / "sep"), "--json"))["rows"]
    p = {row["method"].split()[0]: row["p_over_datasets"] for row in rows}
    assert f"p = {p['gfitc']:.2g}); sep may be (p = {p['sep']:.2g})" in page and p["svi"] is None


METHOD = ROOT / "docs" / "tutorial" / "README.md"
TABLE = ROOT / "docs" / "tutorial" / "own_table.md"
OWN = {METHOD: {"quadratic.py": "python", "method/quadratic.yaml": "yaml"}, TABLE: {"dataset/flats.yaml": "yaml"}}
VERDICTS = {"open", "worse", "better"}


def commands(page: Path) -> list[list[str]]:
    """The words of each command `gpbench ...` of a page, in order."""
    lines = [line.partition(" #")[0] for block in blocks(page) for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("gpbench ")]


def write_files(page: Path, folder: Path) -> None:
    for name, language in OWN[page].items():
        path = folder / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(blocks(page, language)[0])
    if page == TABLE:
        assert "cp docs/examples/dataset/flats.csv mine/dataset\n" in blocks(page)[0]
        shutil.copy(EXAMPLES / "dataset" / "flats.csv", folder / "mine" / "dataset")
        (folder / "new.csv").write_text(blocks(page, "text")[-1])


def predicted(folder: Path) -> list[float]:
    with (folder / "rents.csv").open() as lines:
        return [float(row["mean"]) for row in csv.DictReader(lines)]


def test_a_tutorial_shows_the_files_as_they_are():
    for page, files in OWN.items():
        assert all(blocks(page, language)[0] == (EXAMPLES / name).read_text() for name, language in files.items())
    lines = (EXAMPLES / "dataset" / "flats.csv").read_text().splitlines(keepends=True)
    assert blocks(TABLE, "text")[0] == "".join(lines[:2])


def test_every_command_of_the_tutorial_runs_in_its_order(tmp_path):
    write_files(METHOD, tmp_path)
    printed = [gpbench(tmp_path, *words) for words in commands(METHOD)]
    assert len(printed) > 10
    (shown,) = blocks(METHOD, "text")
    ranks = [line.split() for line in printed[-2].splitlines()]
    assert all(line.split() in ranks for line in shown.splitlines()), printed[-2]


def test_a_table_becomes_a_ranking_and_predictions_by_the_commands_of_the_tutorial(tmp_path, monkeypatch):
    """With quick methods and two splits, in this process; the next test runs the commands as they are."""
    write_files(TABLE, tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("RESULTS", "STORE"):
        monkeypatch.setenv(f"GPBENCH_{name}", str(tmp_path / name.lower()))
    quick = {"method=gpr": "method=constant", "gpr": "constant", "sgpr_greedy": "linear", "split=all": "split=[0,1]"}
    for words in commands(TABLE):
        if "shipped" in words:
            continue
        if "method=linear" in words:
            words[words.index("split=0")] = "split=[0,1]"
        each = ["method=linear", "method=constant"] if "-m" in words else [""]
        for method in each:
            used = [method if word.startswith("method=linear,") else quick.get(word, word) for word in words]
            assert main([word for word in used if word != "-m"]) == 0, words
    assert len(predicted(tmp_path)) == 2 and all(200 < rent < 2500 for rent in predicted(tmp_path))


def test_every_command_of_the_tutorial_about_a_table_runs_in_its_order(tmp_path, monkeypatch):
    monkeypatch.delenv("GPBENCH_SHIPPED", raising=False)
    write_files(TABLE, tmp_path)
    printed = {" ".join(words): gpbench(tmp_path, *words) for words in commands(TABLE)}
    ranking = [line.split() for line in printed["best --data flats --config-dir mine"].splitlines()]
    for shown in map(str.split, blocks(TABLE, "text")[1].splitlines()[2:]):
        (line,) = [line for line in ranking if line[:1] == shown[:1] and "has" not in line]
        assert [word for word in line if word in VERDICTS] == [word for word in shown if word in VERDICTS]
        assert float(line[1].strip("*")) == pytest.approx(float(shown[1].strip("*")), rel=0.01)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GPBENCH_RESULTS": "results", "GPBENCH_STORE": "store"}
    code = blocks(TABLE, "python")[0] + "print(*mean)"
    out = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True, capture_output=True).stdout
    assert [float(word) for word in out.split()] == pytest.approx(predicted(tmp_path))
