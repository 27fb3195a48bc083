"""The static site: every record is on it, escaped and reproducible, and other files are left alone."""

import json
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
import sites

from gpbench.analysis.cells import entries, group_runs
from gpbench.analysis.statistics import paired_t_test
from gpbench.claims.definition import read_clause
from gpbench.claims.estimates import student
from gpbench.claims.grades import Judged
from gpbench.claims.selection import Number
from gpbench.cli import main
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.report.site import charts
from gpbench.report.site.facts import page
from gpbench.report.site.views import mark_datasets

VOID = {"img", "input", "link", "meta", "br"}


class Reader(HTMLParser):
    """A page's links, ids, tags and text; raises AssertionError for a tag that is not closed."""

    def __init__(self, path: Path):
        super().__init__()
        self.links, self.ids, self.open, self.tags, self.words = [], set(), [], [], []
        self.feed(path.read_text(encoding="utf-8"))
        assert not self.open, (path, self.open)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append((tag, values))
        self.links += [values[name] for name in ("href", "src") if name in values]
        self.ids.add(values.get("id"))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        self.words += data.split()

    @property
    def text(self):
        return " ".join(self.words)


@pytest.fixture(scope="module")
def read(site):
    return {path.relative_to(site).as_posix(): Reader(path) for path in site.rglob("*.html")}


def test_every_link_leads_to_a_file_of_the_site_and_every_page_has_one_heading_captions_and_scopes(site, read):
    for name, reader in read.items():
        for link in reader.links:
            if link == "data:,":
                continue
            assert "://" not in link, (name, link)
            path, _, anchor = link.partition("#")
            target = (site / name).parent / path if path else site / name
            assert target.is_file() and target.resolve().is_relative_to(site.resolve()), (name, link)
            if anchor:
                assert anchor in read[target.resolve().relative_to(site.resolve()).as_posix()].ids, (name, link)
    for name, reader in read.items():
        tags = [tag for tag, _ in reader.tags]
        assert tags.count("h1") == 1 and tags.count("table") == tags.count("caption"), name
        assert all(values.get("scope") in ("col", "row") for tag, values in reader.tags if tag == "th"), name
        assert all(values.get("alt") for tag, values in reader.tags if tag == "img"), name


def test_every_record_stands_whole_on_the_page_of_its_cell(site, results):
    def at(lists, k):
        return {name: value[k] if isinstance(value, list) else at(value, k) for name, value in lists.items()}

    def known(fields):  # a field that no record of the cell has, None, may be left out
        return Record.from_json({name: value for name, value in fields.items() if value is not None})

    records = {}
    for path in (site / "cell").glob("*.html"):
        texts = re.findall(r"<pre class=\"json.*?>(\{.*?\})</pre>", path.read_text(encoding="utf-8"))
        shared, columns = map(json.loads, map(unescape, texts))
        for k, id in enumerate(columns["id"]):
            records[id] = known({**shared, **at(columns, k)})
    assert records == {one.id: known(one.to_json()) for one in Store(results).all()}


def test_no_name_leads_out_of_the_site_and_a_folder_with_other_files_is_left_alone(tmp_path, results, refused):
    for name in ("../../etc/passwd", "/etc", "a/b", "..", ".hidden", sites.HOSTILE, "a\\b", "ü?"):
        for kind in ("dataset", "experiment"):
            path = page(kind, name)
            assert (tmp_path / path).resolve().is_relative_to(tmp_path / kind) and "?" not in path and "\\" not in path
            assert path != page(kind, name + "-") and not Path(path).name.startswith(".")
    mine = tmp_path / "thesis.tex"
    mine.write_text("years of work")
    for out in (tmp_path, mine):
        error = refused("report", "--results", results, "--out", out)
        assert ("not part of a report" in error or "is a file" in error) and error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_diverged_dirty_and_quick_runs_inputs_and_published_values_are_seen_wherever_they_show(read):
    for name in (page("dataset", "pima"), page("method", "sep")):
        assert all(f" {word} " in f" {read[name].text} " for word in ("1 diverged", "quick")), name
    cells = [reader for name, reader in read.items() if name.startswith("cell/") and "on pima" in reader.text]
    assert any("uncommitted changes" in reader.text and "is NaN" in reader.text for reader in cells)
    assert "Quick preset: 2 of these runs" in read["index.html"].text
    crabs, own = page("dataset", "crabs"), page("experiment", "own")
    for name, text in (
        (crabs, r"sep m=15% 0\.4\d+ ± 0\.00\d+ [*≈] paper 0\.06, \+[\d.]+ se .* 4 "),
        (crabs, r"svi m=15% 0\.4\d+ ± 0\.00\d+ [*≈] paper 0\.07, \+[\d.]+ se .* 4 "),
        (crabs, r"gfitc m=15% 0\.7\d+ ± 0\.00\d+ paper 0\.07, \+[\d.]+ se .* 4 "),
        (crabs, "inputs 7: sp, index, FL, RW, CL, CW, BD target sex"),
        ("index.html", "10 of 12 runs"),
        (own, "1 of 4 cells are incomplete"),
        (own, "gpbench reproduce own --preset full"),
        (own, "dataset=wdbc method=constant 1 3"),
    ):
        assert re.search(text, read[name].text), text


def test_an_experiment_has_its_table_with_marks_its_figures_and_its_numbers_as_csv(site, read):
    reader = read[page("experiment", "own")]
    assert "<i>Own</i> table" in reader.text and "none yet" not in reader.text
    assert sum("best" in values.get("class", "").split() for tag, values in reader.tags if tag == "td") == 1
    assert (site / "experiment" / "own-full.csv").read_text().count("\n") == 5
    assert "own" in read["paper/mine.html"].text
    reader = read[page("experiment", "ranking")]
    pictures = {values["src"]: values["alt"] for tag, values in reader.tags if tag == "img"}
    names = [f"../experiment/ranking-full-{label}.svg" for label in ("nll", "diagram")]
    assert list(pictures) == names and pictures[names[0]] == "Own dots, preset full"
    assert "means over splits ± one standard error" in reader.text
    assert "Not drawn: ranking: no run here has kept its arrays" in reader.text
    assert "average rank, nll" in reader.text and "critical difference" in reader.text
    ranks = (site / "experiment" / "ranking-full.csv").read_text().splitlines()
    assert ranks[1].startswith("all methods,nll,logistic,1,2,") and len(ranks) == 3


def test_ranks_are_those_of_the_verb(read, results, printed):
    values = json.loads(printed("rank", "--results", results, "--preset", "full", "--setting", "m=15%", "--json"))
    expected = [f"{name} {average:.2f}" for name, average in zip(values["methods"], values["average"])]
    pictures = [values["alt"] for tag, values in read["ranks.html"].tags if tag == "img"]
    assert f"Average ranks: {', '.join(expected)}" in pictures and values["methods"][-1] == "gfitc"
    assert "gfitc m=15%; sep m=15%; svi m=15%" in read["ranks.html"].text


def test_the_start_page_answers_three_questions_in_order_with_the_boards_of_best(read, results, printed):
    reader = read["index.html"]
    questions = ("Which method for which data?", "Do the papers reproduce?", "What was run?")
    places = [reader.text.index(words) for words in questions]
    assert places == sorted(places) and {"which", "papers", "runs"} <= reader.ids
    assert "binary, 1,000 to 10,000 rows by nll, protocol hl2016: 3 methods, 3 data sets, sep first" in reader.text
    labels = [values.get("alt", "") for tag, values in reader.tags if tag == "img"]
    assert any(label.startswith("Average ranks: ") for label in labels)
    words = ["best", "--task", "binary", "--rows=1000-9999", "--metric", "nll", "--protocol", "hl2016"]
    assert f"gpbench {' '.join(words)}" in reader.text
    answer = json.loads(printed(*words, "--results", results, "--json"))["answer"]
    assert f"{answer}." in reader.text


def test_a_page_of_claims_has_verdicts_with_their_evidence_and_cells(site, read, results, streams):
    words = ["verify", "mine", "--results", results, "--config-dir", site.parent / "conf", "--json"]
    verdicts = {item["claim"]: item["verdict"] for item in json.loads(streams(*words, code=1).out)}
    grades = {"better": "holds", "large": "fails", "traced": "fails", "other": "not run"}
    assert verdicts == {f"mine/{id}": grade for id, grade in grades.items()}
    reader = read[page("claims", "mine")]
    assert {*verdicts} <= {f"mine/{id}" for id in reader.ids} and "1 holds, 2 fails, 1 not run" in reader.text
    assert "lower NLL than <b>the constant</b>" in reader.text and "the paper gives no figure" in reader.text
    plots = [values for tag, values in reader.tags if (tag, values.get("class")) == ("svg", "claim")]
    cells = [link for link in reader.links if link.startswith("../cell/")]
    assert len(plots) == 3 and len(cells) == 4  # of two methods, and twice of one
    assert "1 holds, 2 fails" in (site / "claims" / "mine.svg").read_text()
    assert "claims/mine.html" in read["index.html"].links


def test_a_wrong_file_of_claims_is_left_out_and_the_documentation_linked_where_it_is_a_page(results, tmp_path, capsys):
    site = sites.make(results, tmp_path / "site", "--docs", "../index.html")
    err = capsys.readouterr().err
    assert err.startswith("gpbench: left out: ") and "wrong.yaml: a" in err and err.count("\n") == 1
    assert not (site / "claims" / "wrong.html").exists() and (site / "claims" / "mine.html").exists()
    counts = re.search(r"gpbench: (\d+) targets?: .*?; (\d+ informative)", (site / "badge.svg").read_text())
    index = (site / "index.html").read_text()
    assert counts and f"<li>{counts[2]}: no other" in index  # one count on the badge and on the front page
    assert f">{int(counts[1]) or 'No'}</strong> targets" in index
    assert "../../index.html" in Reader(site / "dataset" / "pima.html").links
    for address in ("nonsense", "javascript:alert(1)", "javascript:x.html"):
        assert main(["report", "--results", str(results), "--out", str(tmp_path / "s"), "--docs", address]) == 2
        assert "neither an http address nor a page" in capsys.readouterr().err


def test_a_data_set_has_its_methods_as_dots_and_a_cell_its_curves_or_says_that_it_has_no_traces(read):
    labels = [values["aria-label"] for tag, values in read[page("dataset", "crabs")].tags if tag == "figure"]
    assert labels[0].startswith("nll: sep m=15%") and labels[0].index("sep") < labels[0].index("gfitc")
    assert labels[1] == "nll against seconds"
    cells = [reader for name, reader in read.items() if name.startswith("cell/")]
    for reader in cells:
        drawn = "polyline" in [tag for tag, _ in reader.tags]
        traced = "on pima" in reader.text or "on heart" in reader.text
        assert drawn == traced == ("The records have no traces" not in reader.text)


def test_dots_are_best_first_ratios_have_their_axis_and_marks_never_compare_split_sets_or_versions():
    runs = [sites.record("heart", m, k, id=f"{m}{k}") for m in ("gfitc", "sep") for k in range(4)]
    ours = entries(group_runs(runs), ["nll"])
    chart = charts.dots({entry.cell.method: entry for entry in ours}, {one.id: "page" for one in runs})
    assert [dot["name"].split()[0] for dot in chart["dots"]] == ["sep", "gfitc"]
    sep = next(entry for entry in ours if entry.cell.method == "sep")
    test = paired_t_test([*sep.values.values()], sep.cell.ratio)
    low, x, high = (chart["dots"][0][name] for name in ("low", "x", "high"))
    assert [low, x, high] == chart["scale"].pixels([test.low, test.mean, test.high])
    assert low < x < high and chart["dots"][0]["seconds"]
    clause = read_clause({"ratio": "nll", "a": {"method": "a"}, "b": {"method": "b"}, "between": [0.5, 2]}, "mine")
    plot = charts.claim_plot(Judged(clause, [Number(("pima", ""), student(0.1, 0.05, 4, 5))]))
    assert [text for _, text in plot["ends"]] == ["0.5", "2"]
    for field in ("split_set", "data_checksum"):
        runs = [
            sites.record("heart", m, k, id=f"{m}{k}{of}", setting=of, **{"split_set": "random90", field: of})
            for m in ("sep", "gfitc")
            for k in range(4)
            for of in ("random90", "raetsch")
        ]
        marked = mark_datasets(entries(group_runs(runs), ["nll"]))
        assert {(e.cell.method, e.cell.setting): e.mark for e in marked} == {
            (m, of): "best" * (m == "sep") for m in ("sep", "gfitc") for of in ("random90", "raetsch")
        }


def test_the_same_inputs_make_the_same_bytes_and_vector_pictures_follow_the_colour_scheme(site, results, tmp_path):
    again = sites.make(results, tmp_path / "again")
    files = {path.relative_to(site) for path in site.rglob("*") if path.is_file()}
    assert files == {path.relative_to(again) for path in again.rglob("*") if path.is_file()}
    assert all((site / name).read_bytes() == (again / name).read_bytes() for name in files)
    badges = {*site.glob("claims/*.svg"), site / "badge.svg"}  # these bring their own ground and ink
    for picture in set(site.rglob("*.svg")) - badges:
        text = picture.read_text()
        assert "prefers-color-scheme: dark" in text and "var(--ink)" in text
        assert not re.search("#000000|#ffffff", text.partition("</style>")[2]), picture


def test_a_newer_report_takes_the_place_of_an_older_one_and_of_nothing_else(records, results, tmp_path):
    """Though the list of its files points outside."""
    few = sites.write(tmp_path / "few", [r for r in records if r.dataset == "pima"])
    out, precious = sites.make(results, tmp_path / "site"), tmp_path / "precious"
    (out / "mine.txt").write_text("kept")
    precious.write_text("kept")
    listed = json.loads((out / ".gpbench-site.json").read_text())
    (out / ".gpbench-site.json").write_text(json.dumps([*listed, "../precious", str(precious), 3]))
    before = set(out.rglob("*.html"))
    sites.make(few, out)
    assert set(out.rglob("*.html")) < before and (out / "mine.txt").read_text() == "kept"
    assert precious.read_text() == "kept"


def test_no_jax_is_imported(results, tmp_path):
    words = ["report", "--results", str(results), "--out", str(tmp_path / "site")]
    program = f"""
import sys
from gpbench.cli import main
from gpbench.experiments import definition
definition.names = lambda folders=(): ["sep/fig1_left"]  # for speed
sys.exit(main({words!r}) or "jax" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0
