"""The shipped cards are complete, and the built-in data sets need nothing but them."""

import inspect
import re
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from gpbench.config import cards as config
from gpbench.config.compose import compose
from gpbench.data import cards, cells, configured, lines, load, splits, tables
from gpbench.data_registry import READERS, SPLIT_SETS
from gpbench.errors import ConfigError
from gpbench.records.plan import RunPlan

SOURCE = "name: mine\ntask: binary\nsources: [{{{}}}]\n"
FILE = SOURCE.format("kind: file, path: a, target: y")
BUILTIN = [
    *("wdbc", "digits_odd_even", "diabetes", "sinc", "sinc20", "sinc500", "friedman", "moons", "kuka_sim1"),
    *("kuka_sim2", "mountain_car"),
]


OPTION = re.compile(r"""options(?:\.get\(|\[|, )"(\w+)""")


def test_the_options_of_a_reader_and_the_keys_of_a_split_set_are_those_that_it_reads():
    of_table = (tables.table, cells.read, lines.delimited, cells.Numbers.from_options)
    for name, entry in READERS.items():
        functions = of_table if name == "table" else (entry.function,)
        read = {option for function in functions for option in OPTION.findall(inspect.getsource(function))}
        read |= {"outputs"} if name == "mat" else set()  # asked for by `in`
        assert {*entry.options.keys} == read - {"variant"}, name
    for name, entry in SPLIT_SETS.items():
        source = inspect.getsource(entry.function)
        read = set(re.findall(r"""\["splits"\](?:\.get\(|\[)"(\w+)""", source))
        read |= {"folds"} if ".folds(card" in source else set()
        read |= {"repeats"} if "k // folds" in source else set()  # the number of the division into folds
        assert {*entry.options.keys} == read, name


def faults(name: str):
    """What a shipped card lacks."""
    card = cards.read(name)
    not_known = {"rows", "checksum"} if {s["kind"] for s in card["sources"]} <= {"official", "copy", "file"} else set()
    for key in ("title", "rows", "inputs", "checksum", "splits", "oddities", "licence", "cite"):
        if card[key] is None and key not in not_known:
            yield f"{name} lacks {key}"
    if card["name"] != name or not card["splits"]["sets"] or splits.count(card) < 1:  # no default changes its splits
        yield f"{name} has another name, or no splits"
    if (card["task"] in ("regression", "count")) != ("labels" not in card):
        yield f"{name} has labels, or lacks them"
    if "counts" in card and sum(card["counts"].values()) != card["rows"]:
        yield f"{name} counts other rows"
    for source in card["sources"]:
        for file, sha256 in source.get("files", {}).items():
            if source["kind"] != "official" and len(sha256) not in (64, 40):  # 40: git's
                yield f"{name}: {file} has no checksum"


def test_every_card_says_what_a_reader_of_a_table_needs():
    assert [fault for name in cards.names() for fault in faults(name)] == []


@pytest.mark.parametrize("name", BUILTIN)
def test_builtin_data_are_the_same_on_every_machine_and_need_no_download(name):
    card = cards.read(name)
    dataset = load(card, offline=True)  # compares with the checksum of the card
    assert dataset.X.shape == (card["rows"], card["inputs"])
    if dataset.classes:
        assert dict(zip(dataset.classes, np.unique(dataset.y, return_counts=True)[1])) == card["counts"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", r"the card must be a mapping, not \[1, 2\]"),
        (FILE.replace("sources", "source"), "lacks sources and has an unknown key 'source'; did you mean sources"),
        (FILE.replace("name: mine", "name: yours"), "name: yours is not the file's name, .*: write `name: mine`"),
        (FILE + "labels: {1: -1, 1: 1}", "not YAML: .* duplicate key 1"),
        ("name: mine\ntask: binary\nsources: [web]", r'sources=\["web"\]: must be a list of mappings'),
        (FILE + "oddities: [from the site: not tested]", r"oddities=.*: must be a list of texts .* put quotes around"),
        (FILE + "columns: [a, no]", r'columns=\["a", false\]: must be a list of texts or numbers; put quotes'),
        (SOURCE.format("kind: rows, inputs: {x: [1, 2]}, target: [1, b]"), "target=.*: must be a list, each entry a"),
        ("name: mine\ntask: binary\nsources: [{kind: web}]", "source kind 'web' is none of"),
        ("name: mine\ntask: binary\nsources: [{kind: file, path: a}]", "the file source lacks target"),
        ("name: [", "line 1: not YAML"),
        (
            SOURCE.format("kind: file, path: a, reader: npz, drop: [a]"),
            r'drop=\["a"\]: must be a list, each entry a whole number from 0',
        ),
        (SOURCE.format("kind: web").replace("binary", "ranking"), "task=ranking: must be binary, multiclass,"),
        (FILE + "labels: {a: no, b: 1}", "the code of label 'a'=false: must be a whole number"),
        (FILE + "splits: {sets: {random09: 5}}", "splits.sets has an unknown key 'random09'; did you mean random90"),
        (FILE + "splits: {sets: {random90: 0}}", "splits.sets: random90=0: must be a whole number from 1"),
        (FILE + "splits: {sets: {random: 5}}", "splits lacks test_rows"),
        (FILE + "variants: [a]", r'variants=\["a"\]: must be a mapping'),
        (FILE + "variant: a\nvariants: {b: {}}", "mine has no variant 'a'"),
        (FILE + "variant: a\nvariants: {a: {row: 3}}", "a variant has an unknown key 'row'; did you mean rows?"),
        (SOURCE.format("kind: file, path: a, target: y, delimeter: ;"), "unknown key 'delimeter'; did you mean delim"),
        (SOURCE.format("kind: file, path: a, reader: npz, delimiter: ;"), "the file source has an unknown key 'delimi"),
        (SOURCE.format("kind: file, path: a, reader: npy"), "unknown reader 'npy': did you mean npz"),
        (SOURCE.format("kind: file, path: a, target: y, missing: {a: 1}"), "a number or a list of them"),
        (SOURCE.format("kind: file, path: a, reader: mujoco_walk, frames: 3"), "frames=3: must be 1 or 2"),
        (FILE.replace("y}", "y, order: {d: '%Q'}}"), "must be a column, or a mapping from it to"),
        (SOURCE.format("kind: sklearn, loader: wine, reader: npz"), "the sklearn source has an unknown key 'reader'"),
        (SOURCE.format("kind: generated, generator: sinc, seed: 0, row: 9"), "the generated source lacks rows"),
    ],
)
def test_a_card_that_is_wrong_gives_one_clear_line(tmp_path, text, message, one_line, new_file):
    new_file(tmp_path / "dataset" / "mine.yaml", text)
    with one_line(ConfigError, match=message):
        cards.read("mine", [tmp_path])


def test_a_name_that_is_a_path_and_an_unknown_argument_of_a_loader_are_refused():
    with pytest.raises(ConfigError, match="may hold letters"):
        cards.checked({"name": "../mine", "task": "binary", "sources": [{"kind": "file", "path": "a"}]})
    card = {"name": "mine", "task": "regression", "sources": [{"kind": "sklearn", "loader": "diabetes"}]}
    card["sources"][0]["arguments"] = {"n_class": 3}
    with pytest.raises(ConfigError, match=r"scikit-learn's load_diabetes: .*n_class"):
        load(card, offline=True)


READER = """
from gpbench.data import Raw
import numpy as np

def rows(blobs, options):
    table = np.array([line.split(options["separator"]) for line in blobs[0].decode().split()], float)
    return Raw(table[:, :-1], table[:, -1])
"""


@pytest.fixture
def user(tmp_path, monkeypatch):
    """A folder of a user with a table and the module of a reader."""
    monkeypatch.setenv("GPBENCH_STORE", str(tmp_path / "store"))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "reader_of_cards.py").write_text(READER)
    (tmp_path / "a.txt").write_text("1;2;3\n4;5;7\n")
    for folder in ("dataset", "reader"):
        (tmp_path / folder).mkdir()
    return tmp_path


def own(folder, reader):
    card = f"name: mine\ntask: regression\nsources: [{{kind: file, path: a.txt, reader: {reader}}}]"
    (folder / "dataset" / "mine.yaml").write_text(card)
    return load(cards.read("mine", [folder]), config_dirs=[folder])


TARGET = "{_target_: reader_of_cards.rows, separator: ;}"


def test_a_reader_of_ones_own_is_named_by_its_target_by_a_file_or_by_an_entry_point(user, monkeypatch):
    np.testing.assert_array_equal(own(user, TARGET).X, [[1, 2], [4, 5]])
    (user / "reader" / "mine.yaml").write_text(TARGET)
    np.testing.assert_array_equal(own(user, "mine").y, [3, 7])
    point = EntryPoint("theirs", "reader_of_cards:rows", "gpbench.readers")
    monkeypatch.setattr("gpbench.plugins.points", lambda group: [point] * (group == point.group))
    (source,) = (own_card := cards.read("mine", [user]))["sources"]
    assert source["reader"]["_target_"] == "reader_of_cards.rows" and own_card["name"] == "mine"
    assert config.check({**own_card, "sources": [{**source, "reader": "theirs"}]})[0]["reader"] == {
        "_target_": "reader_of_cards.rows"
    }


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        ("theirs", "unknown reader 'theirs'"),
        ("{separator: ;}", "reader: _target_=null: write MODULE.NAME"),
        ("{_target_: reader_of_cards.columns}", "'reader_of_cards.columns': reader_of_cards has no 'columns'; "),
        ("[npz]", 'reader=["npz"]: must be the name of a reader'),
    ],
)
def test_a_reader_of_ones_own_that_is_wrong_gives_one_clear_line(user, reader, message, one_line):
    with one_line(ConfigError, match=re.escape(message)):
        own(user, reader)


def test_a_name_that_is_taken_is_refused_and_a_card_is_checked_once_a_run(user, monkeypatch):
    (user / "reader" / "npz.yaml").write_text(TARGET)
    with pytest.raises(ConfigError, match="the name npz is built in"):
        own(user, "npz")
    checks = []
    check = config.check
    monkeypatch.setattr(config, "check", lambda *args: checks.append(args) or check(*args))
    monkeypatch.setattr(cards, "check", config.check)
    cfg = compose(["dataset=sinc", "method=linear"])
    RunPlan.from_config(cfg)
    configured(cfg)
    assert len(checks) == 1
