"""Records that ship with gpbench, read where nothing of one's own answers, and several results folders read as one."""

import json

import pytest
from samples import sample

import gpbench
from gpbench import paths
from gpbench.cli import main
from gpbench.errors import AbsentError, ConfigError
from gpbench.records import collection
from gpbench.records.store import Store
from gpbench.records.unions import SHIPPED, _StoreUnion, first_answer, open_one, open_stores


def runs(method, first, dataset="pima", created="2026-01-01", nll=0.5):
    """Runs of a method on three splits, with ids from `first` on."""
    facts = {"dataset": dataset, "method": method, "created": created, "train_rows": 900, "test_rows": 100}
    of_split = lambda split: {"split": split, "metrics": {"nll": nll + split / 10}, "seconds": {"train": 1.0}}
    return [sample(f"{first + split:016x}", **facts | of_split(split)) for split in range(3)]


@pytest.fixture(autouse=True)
def shipped(tmp_path, monkeypatch):
    """Shipped records of sep and svi; one run of svi is in the files of two papers."""
    folder = tmp_path / "shipped"
    for paper, records in {"sep": runs("sep", 0) + runs("svi", 16), "gam": runs("svi", 16)[:1]}.items():
        collection.write(folder / paper / "records.parquet", [(record, "method: {}") for record in records])
    monkeypatch.setenv("GPBENCH_SHIPPED", str(folder))
    monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path / "own"))
    return folder


def own(folder, records):
    for record in records:
        Store(folder).write(record, {}, {})
    return folder


def table(capsys, *words):
    """The rows of `gpbench table`, and what it says on stderr."""
    assert main(["table", "--metric", "nll", "--json", *words]) == 0
    out, err = capsys.readouterr()
    return {row["method"]: row["n_splits"] for row in json.loads(out)}, err


def test_shipped_runs_are_read_where_nothing_is_recorded_or_the_default_is_a_collection(capsys, shipped, monkeypatch):
    rows, err = table(capsys)
    assert rows == {"sep": 3, "svi": 3}
    assert err == "gpbench: nothing recorded here: these are the 6 runs that ship with gpbench\n"
    for words in (["ls", "runs"], ["show", "--last"], ["rank", "--dataset", "pima"], ["show", "0000000000000001"]):
        main(words)
        assert capsys.readouterr().err.startswith("gpbench: nothing recorded here: these are the 6 runs")
    monkeypatch.setenv("GPBENCH_RESULTS", str(shipped / "sep"))
    assert table(capsys) == ({"sep": 3, "svi": 3}, "")


def test_own_runs_that_answer_and_a_folder_that_is_named_are_read_alone(tmp_path, capsys, streams):
    folder = own(tmp_path / "other", runs("mine", 32))
    assert table(capsys, "--results", str(folder)) == ({"mine": 3}, "")
    streams("table", "--method", "svi", "--results", folder, code=2)
    own(tmp_path / "own", runs("sep", 32))
    assert table(capsys) == ({"sep": 3}, "")


def test_python_names_both_results_where_own_runs_lack_a_method(tmp_path):
    own(tmp_path / "own", runs("mine", 32))
    with pytest.raises(AbsentError, match=r"known are mine; results=\['.*own', 'shipped'\] reads those that ship too"):
        gpbench.compare("mine", "svi")


def test_shipped_runs_answer_where_own_ones_have_no_such_run(tmp_path, capsys):
    own(tmp_path / "own", runs("mine", 32, "wdbc"))
    rows, err = table(capsys, "--method", "svi")
    line = "gpbench: read from the 6 runs that ship with gpbench: nothing of the kind is recorded here\n"
    assert (rows, err) == ({"svi": 3}, line)
    assert main(["show", "0000000000000001"]) == 0 and "nothing of the kind is recorded here" in capsys.readouterr().err
    assert main(["compare", "sep", "svi"]) == 0 and "nothing of the kind is recorded here" in capsys.readouterr().err


def test_an_unknown_id_is_one_line_that_names_the_shipped_files_once_and_both_lists(refused):
    _, line = refused("plot", "facade").splitlines()
    assert line.startswith("gpbench: no run 'facade' in the runs that ship with gpbench; ")
    assert line.endswith("; of figures, `gpbench ls experiments`") and "records.parquet" not in line


@pytest.mark.parametrize(
    "words, line",
    [
        ("rank --method mine,svi", "no run has method 'svi'; known are mine; --with-shipped reads the runs that ship"),
        ("compare mine svi", "no run has the method 'svi'; known are mine; --with-shipped reads the runs that ship"),
        ("table --method mime", "no run has method 'mime'; did you mean mine?"),
        ("rank --method sepp", "no run has method 'sepp'; did you mean sep?"),  # not of own runs alone
        ("compare sep sv", "no run has the method 'sv'; did you mean svi?"),
    ],
)
def test_a_name_that_own_or_shipped_runs_lack_is_told_from_one_that_neither_has(tmp_path, words, line, refused):
    own(tmp_path / "own", runs("mine", 32))
    err = refused(*words.split())
    assert err.startswith(f"gpbench: {line}") and err.count("\n") == 1


def test_own_and_shipped_runs_stand_beside_each_other_where_both_are_asked_for(tmp_path, capsys, printed):
    assert table(capsys, "--with-shipped")[0] == {"sep": 3, "svi": 3}  # nothing of one's own yet
    own(tmp_path / "own", runs("mine", 32))
    assert table(capsys, "--with-shipped") == ({"mine": 3, "sep": 3, "svi": 3}, "")
    assert "shipped with gpbench" in printed("table", "--metric", "nll", "--with-shipped")  # the mark of a cell
    frame = gpbench.frame([tmp_path / "own", SHIPPED])
    assert frame.groupby("method")["shipped"].sum().to_dict() == {"mine": 0, "sep": 3, "svi": 3}
    assert gpbench.frame(SHIPPED)["shipped"].isna().all()  # alone they need no mark


def test_a_run_in_several_folders_counts_once_the_latest(tmp_path, capsys):
    a, b = own(tmp_path / "a", runs("sep", 0)), own(tmp_path / "b", runs("sep", 0, created="2026-02-02", nll=0.1)[:1])
    store = open_one([a, b])
    for one in (store, open_one([b, a])):
        assert [one.get(record.id).metrics["nll"] for record in store.all()] == [0.6, 0.7, 0.1]
    assert store.folder_of("0" * 16) == b / "runs" / ("0" * 16) and store.folder_of(f"{1:016x}").parent.parent == a
    assert table(capsys, "--results", str(a), "--results", str(a)) == ({"sep": 3}, "")


def test_a_verb_that_writes_refuses_a_second_folder_and_deletes_no_shipped_run(tmp_path, refused, shipped):
    for words in (["rm", "0000"], ["reproduce", "sep/table1"], ["doctor"]):
        assert "--results is given twice" in refused(*words, "--results", tmp_path / "a", "--results", tmp_path / "b")
    with pytest.raises(ConfigError, match="several folders"):
        _StoreUnion(open_stores(SHIPPED)).delete("0" * 16)
    before = (shipped / "sep" / "records.parquet").read_bytes()
    assert "no run" in refused("rm", "0000000000000001")
    assert (shipped / "sep" / "records.parquet").read_bytes() == before


def test_the_records_of_every_paper_ship_and_an_id_is_found_without_reading_other_papers(monkeypatch):
    read, files = collection.read, []
    monkeypatch.setattr(collection, "read", lambda path: files.append(path.parent.name) or read(path))
    assert open_one().get("0" * 16).method == "sep" and files == ["sep"]
    monkeypatch.delenv("GPBENCH_SHIPPED")
    folders = {path.parent.name for path in (paths.conf_dir().parent / "results").glob("*/records.parquet")}
    assert folders == {path.parent.name for path in paths.shipped_files()} and len(folders) == 7


def test_answers_of_own_runs_come_first(tmp_path):
    own(tmp_path / "own", runs("mine", 32))
    assert first_answer(None, len) == 1
    assert first_answer(None, lambda stores: len(stores[0].all()), lambda n: n == 3) == 1  # of the first file

    def fail(stores):
        raise AbsentError(f"nothing in {stores[0].runs}")

    with pytest.raises(AbsentError, match="own"):
        first_answer(None, fail)


def test_of_a_folder_and_its_collection_the_folder_is_read_which_has_more(tmp_path):
    folder = own(tmp_path / "a", runs("sep", 0)[:1])
    assert main(["collect", str(folder), "--out", str(tmp_path / "a.parquet")]) == 0
    for results in ([folder, tmp_path / "a.parquet"], [tmp_path / "a.parquet", folder]):
        assert open_one(results).folder_of("0" * 16) == folder / "runs" / ("0" * 16)
