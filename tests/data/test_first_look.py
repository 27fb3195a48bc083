"""Tables without a card: the card that `dataset=PATH target=NAME` and `dataset=openml:NUMBER` write."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from servers import serving

import gpbench
from gpbench.api.words import with_cards
from gpbench.cli import main
from gpbench.config import words as grammar
from gpbench.data import cards, load
from gpbench.data import openml as openml_api
from gpbench.data.splits import indices
from gpbench.errors import ConfigError, DataError

ROWS = "".join(f"{k // 2},{5 * (k % 2)};{'on' if k % 3 else 'off'};{'xyz'[k % 3]};{k * k % 7},5\n" for k in range(30))
CSV = f"speed;valve;kind;drag\n{ROWS}?;on;x;1,5\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, new_file):
    monkeypatch.chdir(tmp_path)
    new_file(tmp_path / "tables" / "pump 1.csv", CSV)
    return tmp_path


def test_a_card_is_written_beside_the_table_and_never_overwritten(folder, capsys):
    path = "dataset=tables/pump 1.csv"
    words, folders = with_cards(["method=linear", path, "target=drag"], [Path("mine")])
    assert words == ["method=linear", "dataset=pump_1"] and folders == [folder / "tables", Path("mine")]
    line = capsys.readouterr().err
    said = "regression of drag; decimal comma; codes for valve; columns for the texts of kind; 1 rows with missing"
    assert line.count("\n") == 1 and said in line
    card = folder / "tables" / "dataset" / "pump_1.yaml"
    dataset = load(cards.read("pump_1", folders[:1]), config_dirs=folders[:1])
    assert dataset.columns == ("speed", "valve", "kind=x", "kind=y", "kind=z") and dataset.task == "regression"
    assert "pump_1: rows that lack speed are left out" in capsys.readouterr().err
    assert dataset.X[:2].tolist() == [[0, 0, 1, 0, 0], [0.5, 1, 0, 1, 0]] and dataset.y[:3].tolist() == [0.5, 1.5, 4.5]
    card.write_text(card.read_text() + "title: mine\n")
    for target in ([], ["target=drag"]):
        assert with_cards([path, *target], []) == (["dataset=pump_1"], folders[:1])
    assert card.read_text().endswith("title: mine\n") and not capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"target=speed: .* has the target drag; edit it"):
        with_cards([path, "target=speed"], [])


@pytest.mark.parametrize(
    "path, name",
    [
        *(("./~.csv", "_"), ("~none/x.csv", "x"), ("日.csv", "_"), (f"{'n' * 251}.csv", "n" * 200)),
        *((f"{name}.csv", f"my_{name}") for name in ("2024", "nan", "true", "1e3")),
    ],
)
def test_a_table_whose_name_is_no_word_or_a_number_has_a_card_of_another_name(folder, path, name):
    (folder / "~none").mkdir()
    (folder / path).write_text(CSV)
    words, folders = with_cards([f"dataset={path}", "target=drag"], [])
    assert words == [f"dataset={name}"] and load(cards.read(name, folders), config_dirs=folders).y[0] == 0.5


@pytest.mark.parametrize(
    "words, message",
    [
        (["dataset=tables/pump 1.csv"], "target=NAME; columns are speed, valve, kind, drag"),
        (["dataset=tables/pump 1.csv", "target=drug"], "target=drug: no such column in pump 1.csv; did you mean drag"),
        (["dataset=tables/none.csv", "target=drag"], "dataset=tables/none.csv: no such file"),
        (["dataset=rows.npy", "target=y"], "dataset=rows.npy: a first look reads text, .*: save it so, or write"),
        (["dataset=rows.svm", "target=y"], "target=y: lines of libsvm begin with the target: leave target out"),
        (["dataset=void.csv", "target=y"], "void.csv: .*no complete rows: column 'y' is empty"),
        (["dataset=empty.svm"], "not libsvm text: the table has no rows"),
        (["dataset=openml:61", "data.offline=true"], "data.offline=true, and .*openml_61.yaml is not there"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line_and_writes_no_card(folder, words, message):
    (folder / "rows.svm").write_text("1 1:2\n2 1:3\n")
    (folder / "empty.svm").touch()
    (folder / "void.csv").write_text("x,y\n1,\n2,\n")
    np.save(folder / "rows.npy", np.eye(3))
    with pytest.raises((ConfigError, DataError), match=message):
        with_cards(words, [])
    assert not [*folder.rglob("*.yaml")]


def test_where_only_a_card_can_say_how_to_read_a_table_the_line_begins_it(folder):
    """What is begun, with the key that the line names, is the card of the table."""
    (folder / "cafe.csv").write_bytes("cups,größe\n1,2\n3,4\n5,6\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"`encoding: latin-1`; there is no card yet: write .*, which begins ") as line:
        with_cards(["dataset=cafe.csv", "target=cups"], [])
    file, text = str(line.value).split("no card yet: write ")[1].split(", which begins as ")
    Path(file).parent.mkdir()
    Path(file).write_text(text.replace("target: cups", "target: cups, encoding: latin-1"))
    assert load(cards.read("cafe", [folder]), config_dirs=[folder]).columns == ("größe",)


@pytest.mark.parametrize(("column", "target"), [("b", "y"), ("y", "b")])
def test_a_cell_that_is_no_number_among_many_that_are_is_named_and_no_column_is_left_out(folder, column, target):
    cells = [f"{k % 7},{'n/k' if k == 7 else k},{k}.5" for k in range(60)]
    (folder / "cell.csv").write_text("\n".join(["a,b,y" if column == "b" else "a,y,b", *cells]))
    line = rf"column '{column}': 59 cells are numbers, and 1 not, as 'n/k' \(row 8\): mend the table, or write"
    with pytest.raises(DataError, match=line):
        with_cards(["dataset=cell.csv", f"target={target}"], [])
    with pytest.raises(DataError, match=line):
        with_cards(["dataset=cell.csv", f"target={column}"], [])
    assert not [*folder.glob("*.yaml")]


def test_other_words_are_those_of_the_grammar():
    words = ["dataset=pima,heart", "method.kernel={a: 1}", "+x='a.csv'", "seed=0,1"]
    assert with_cards(words, [])[0] == words
    quoted = ["dataset='tables/pump 1.csv'", "target=drag"]
    [word] = grammar.read(with_cards(quoted, [])[0])
    assert (word.key, word.value) == ("dataset", "pump_1")


def test_several_tables_are_the_data_sets_of_a_sweep_and_names_of_ours_and_of_other_tables_are_not_taken(folder):
    for name in ("a", "b"):
        (folder / f"{name}.csv").write_text("x,y\n" + "".join(f"{k % 7},{k}.5\n" for k in range(20)))
    assert with_cards(["dataset=a.csv,b.csv,pima", "target=y"], []) == (["dataset=a,b,pima"], [folder])
    (folder / "wine.csv").write_text("x,y\n" + "1,2\n2,3\n3,4.5\n" * 4)
    assert with_cards(["dataset=wine.csv", "target=y"], [])[0] == ["dataset=my_wine"]
    (folder / "tables" / "wine.csv").write_text("x,y\n" + "1,2\n2,3\n3,5.5\n" * 4)
    folders = with_cards(["dataset=tables/wine.csv", "target=y"], [])[1]
    assert load(cards.read("my_wine", folders), config_dirs=folders).y.max() == 5.5  # and not the one of this folder
    (folder / "wine.tsv").write_text("x\ty\n1\t2\n")
    with pytest.raises(ConfigError, match=r"my_wine.yaml is the card of wine.csv: rename wine.tsv"):
        with_cards(["dataset=wine.tsv"], [])


LIBSVM = "+1 1:0.5 3:2 # first\n-1 2:1.5\n\n+1 1:1 2:1\n-1 3:1\n"
ARFF = """@relation r
@attribute id numeric
@attribute a numeric
@attribute grade {1,2,3}
@data
%s"""


@pytest.mark.parametrize(
    "name, content, target, task, columns",
    [
        ("a.tsv", "a\tb\tc\n1\t2\tu\n2\t3\tv\n3\t1\tu\n", "c", "binary", 2),
        ("a.arff", ARFF % "".join(f"{k},{k * k},{k % 3 + 1}\n" for k in range(12)), "grade", "multiclass", 1),
        ("a.libsvm", LIBSVM, None, "binary", 3),
        ("a.csv", "a,y\n.,7.5\n" + "".join(f"{k},{k}.5\n" for k in range(60)), "y", "regression", 1),
    ],
)
def test_the_task_and_the_spelling_are_guessed(folder, name, content, target, task, columns):
    (folder / name).write_text(content)
    folders = with_cards([f"dataset={name}", *([f"target={target}"] if target else [])], [])[1]
    dataset = load(cards.read("a", folders), config_dirs=folders)
    assert (dataset.task, dataset.X.shape[1]) == (task, columns)


def test_a_first_look_is_a_configuration_and_a_metric_beside_its_table_is_left_out(folder, printed, new_file):
    assert "name: pump_1" in printed("run", "dataset=tables/pump 1.csv", "target=drag", "method=linear", "--cfg")
    data = gpbench.load("tables/pump 1.csv")
    assert data.columns[:2] == ("speed", "valve") and len(data.y) == 30
    new_file(folder / "tables" / "metric" / "wide.yaml", "_target_: beside.wide\nbetter: lower\ntasks: [regression]\n")
    words = ["dataset=tables/pump 1.csv", "target=drag", "method=constant", "run.results=r"]
    assert main(["run", "-m", "--dry-run", *words]) == 0
    (record,) = json.loads(printed("run", "--json", *words))["records"]
    assert "rmse" in record["metrics"] and not record.get("own_metrics")


@pytest.fixture
def openml(folder, monkeypatch):
    """A server that answers as OpenML does, with data set 7, task 8 on it, two repeats of three folds, and suite 9."""
    content = (ARFF % "".join(f"{k},{k * k % 11 if k else '?'},{k % 3 + 1}\n" for k in range(30))).encode()
    about = {"name": "toy", "licence": "CC0", "default_target_attribute": "grade", "row_id_attribute": "id"}
    parts = [f"{'TEST' if (i // (r + 1)) % 3 == f else 'TRAIN'},{i},{r},{f}\n" for r, f, i in np.ndindex(2, 3, 30)]
    header = "type {TRAIN,TEST}", "rowid INTEGER", "repeat INTEGER", "fold INTEGER"
    about["splits"] = "".join(["@relation x\n", *(f"@attribute {line}\n" for line in header), "@data\n", *parts])

    def texts(path):
        procedure = {"type": "crossvalidation", "data_splits_url": f"{address}splits.arff"}
        source = {"name": "source_data", "data_set": {"data_set_id": "7", "target_feature": "grade"}}
        inputs = [source, {"name": "estimation_procedure", "estimation_procedure": procedure}]
        task = {"task_type_id": about.get("type", "1"), "task_type": "Clustering", "input": inputs}
        study = {"tasks": {"task_id": about.get("tasks", ["8", "10"])}}
        answers = {"task/8": {"task": task}, "study/9": {"study": study}, "data/7": {"data_set_description": about}}
        if path.endswith("splits.arff"):
            return about["splits"]
        return about.get("raw") or json.dumps(answers.get(path.partition("json/")[2], {}))

    def answer(handler):
        is_file = handler.path.endswith("toy.arff")
        elsewhere = about.get("elsewhere") and is_file and "localhost" not in str(handler.headers)
        handler.send_response(302 if elsewhere else about.get("status", 200))
        if elsewhere:
            handler.send_header("Location", f"{address.replace('127.0.0.1', 'localhost')}{handler.path}")
        handler.end_headers()
        about["url"] = f"{address}v1/download/7/toy.arff"
        if "elsewhere" in about:
            about.pop("md5_checksum", None)
        handler.wfile.write(content if is_file else texts(handler.path).encode())

    with serving(answer) as address:
        monkeypatch.setattr(openml_api, "_API", f"{address}json/")
        about["md5_checksum"] = hashlib.md5(content).hexdigest()
        yield about


def test_a_data_set_of_openml_is_downloaded_with_its_checksum(folder, openml):
    words, folders = with_cards(["dataset=openml:7"], [])
    assert (words, folders) == (["dataset=openml_7"], [folder])
    card = cards.read("openml_7", folders)
    assert card["task"] == "multiclass" and card["licence"] == "CC0" and card["sources"][0]["drop"] == ["id"]
    dataset = load(card)
    assert dataset.columns == ("a",) and dataset.classes == ("1", "2", "3")
    np.testing.assert_array_equal(dataset.X[:, 0], [k * k % 11 for k in range(1, 30)])


def test_a_task_of_openml_has_all_rows_and_its_own_splits_and_a_suite_is_its_tasks(folder, openml, capsys):
    with pytest.raises(ConfigError, match="target=a: openml:task:8 has the target grade"):
        with_cards(["dataset=openml:task:8", "target=a"], [])
    words, folders = with_cards(["dataset=openml:task:8"], [])
    dataset = load(card := cards.read("openml_task_8", folders), config_dirs=folders)
    assert words == ["dataset=openml_task_8"] and card["task"] == "multiclass" and len(dataset.y) == 30
    assert (card["impute"], card["splits"]) == ("median", {"set": "fixed", "folds": 6})
    for split in range(6):
        train, test = indices(card, dataset, split)[:2]
        of_test = [i for i in range(30) if (i // (split // 3 + 1)) % 3 == split % 3]
        assert test.tolist() == of_test and sorted([*train, *test]) == [*range(30)]
    file = folder / "dataset" / "openml_task_8_splits.csv"
    file.write_text(file.read_text().replace("test", "train", 1))
    with pytest.raises(DataError, match="arrays with checksum"):
        load(card, config_dirs=folders, again=True)
    with pytest.raises(DataError, match="dataset=openml:task:10: the answer of OpenML is no description"):
        with_cards(["dataset=openml:suite:9,wdbc"], [])
    (folder / "dataset" / "openml_suite_9.txt").write_text("openml:task:8\n")
    assert with_cards(["dataset=openml:suite:9,wdbc", "data.offline=true"], [])[0][0] == "dataset=openml_task_8,wdbc"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"type": "5"}, "openml:task:8: a task of the type Clustering"),
        ({"raw": "[" * 10**5}, "the answer of OpenML is no description of it"),
        ({"splits": "none"}, "its file of splits is none of OpenML's"),
        ({"splits": ("TRAIN,29,0,0", "TRAIN,30,0,0")}, "its splits are not of the 30 rows of its table"),
        ({"splits": ("TRAIN,29,0,0", "TRAIN,0,0,0")}, "a row trains and tests in one of its splits"),
        ({"splits": ("TEST", "TRAIN")}, "has no row 'test'"),
    ],
)
def test_a_task_that_is_none_of_ours_is_refused_and_writes_nothing(folder, openml, change, message):
    if isinstance(change.get("splits"), tuple):
        change = {"splits": openml["splits"].replace(*change["splits"])}
    openml |= change
    with pytest.raises((ConfigError, DataError), match=message):
        with_cards(["dataset=openml:task:8"], [])
    assert not (folder / "dataset").exists()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"md5_checksum": "0" * 32}, "md5 is .*, not 0000.*: damaged or another version"),
        ({"default_target_attribute": None}, "target=NAME; columns are id, a, grade"),
        ({"default_target_attribute": "a,grad"}, "target=grad: no such column in openml:7; did you mean grade"),
        ({"elsewhere": True}, "leads to http://localhost:.*toy.arff, and no checksum says which file is meant"),
        ({"status": 412}, "dataset=openml:7: OpenML has none of this number"),
        (None, r"dataset=openml:7: OpenML does not answer .*: check the network"),
    ],
)
def test_other_files_of_openml_are_refused_and_no_answer_too(folder, openml, change, message, monkeypatch):
    if change is None:
        monkeypatch.setattr(openml_api, "_API", "http://127.0.0.1:9/")
    openml |= change or {}
    with pytest.raises((ConfigError, DataError), match=message):
        with_cards(["dataset=openml:7"], [])
    assert not (folder / "dataset").exists()
