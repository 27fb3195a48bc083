"""Wrong inputs, drawn by a seed and from lists: the words of every verb, files of `--config-dir`, tables, Python.

None may end in a traceback, hang, or change what is recorded; what is refused is one line.
"""

import copy
import random
import shutil
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml
from attackers import FULL, call, contents, fault, within
from inputs import ARGUMENTS, TABLES, TEXTS, VALUES, WORDS
from samples import grid, write

import gpbench
from gpbench import paths
from gpbench.errors import UNPRINTABLE, GpbenchError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    """Records of two methods on six splits, a folder for `--config-dir`, and a table."""
    world = tmp_path_factory.mktemp("wrong inputs, ünï")
    metrics = lambda dataset, method, split: {"nll": 0.5 + split % 5 / 10 + (method == "svi") / 9, "error": 0.1}
    records = grid(["pima"], ["sep", "svi"], 6, metrics=metrics, seconds={"train": 1.0})
    write(world / "results", records, {"config_dirs": []})
    for folder in ("dataset", "method", "protocol", "experiment/mine", "claims", "kernel", "likelihood", "metric"):
        (world / "conf" / folder).mkdir(parents=True)
    for module in (ROOT / "docs" / "examples").glob("*.py"):
        shutil.copy(module, world / "conf")
    rows = "\n".join(f"{i % 7},{i * i % 11},{i * 1.5}" for i in range(30))
    (world / "conf" / "mine.csv").write_text(f"a,b,price\n{rows}\n")
    (world / "few.csv").write_text("a,b\n1,2\n")
    return world


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder to work in: what a wrong word makes is made here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


# ----- words


def _commands(word: str, world: Path) -> Iterator[list[Any]]:
    """Every verb with this word in every place where it is quick to say no."""
    results = ["--results", world / "results"]
    for verb in ("run", "data", "doctor", "ls", "check"):
        if not (verb == "check" and word == "{}") and not (verb == "run" and word == "--"):  # of the defaults
            yield [verb, word] if verb in ("data", "ls") else [verb, word, "--no-such"]
    for key in ("dataset", "method", "protocol", "split", "seed", "output", "run.jobs", "method.kernel", "data.store"):
        yield ["run", "--dry-run", "run.results=out", f"{key}={word}"]
    yield ["run", "--cfg", "--config-dir", word]
    for verb in ("table", "rank", "verify", "show", "rm", "plot", "cite"):
        yield [verb, word, *results]
    for verb in ("compare", "power"):
        yield [verb, "sep", word, *results]
        yield [verb, "sep", "svi", "--metric", word, *results]
    for option in ("--dataset", "--setting", "--precision", "--metric", "--format", "--out"):
        yield ["table", option, word, *results]
    for option in ("--dataset", "--status", "--where"):
        yield ["ls", "runs", option, word, *results]
    for where in (f"split{word}", f"metrics.nll<{word}"):
        yield ["ls", "runs", "--where", where, *results]
    for verb in ("table", "rank", "collect", "show"):
        yield [verb, word] if verb == "collect" else [verb, *(["--last"] if verb == "show" else []), "--results", word]
    yield ["collect", world / "results", "--out", word]
    yield ["import", word]
    yield ["import", world / "few.csv", "--protocol", word]
    yield ["predict", word, "--data", world / "few.csv", *results]
    yield ["predict", "--last", "--data", word, *results]
    yield ["reproduce", word]
    yield ["reproduce", "sep/table1", "--jobs", word, "no=word"]
    yield ["data", "info", word]
    yield ["data", "check", word]
    yield ["data", "rows", "wdbc", "--split", word]
    yield ["data", "rows", "wdbc", "--split", "0", "--set", word]
    yield ["check", f"kernel:{word}"]


def test_no_word_of_any_verb_ends_in_a_traceback(world, here):
    commands = [words for word in WORDS for words in _commands(word, world)]
    before = contents(world)
    faults = []
    for words in commands if FULL else random.Random(0).sample(commands, 150):
        code, _, err = call(*words)
        faults += [f"{[str(word)[:60] for word in words]}: {problem}" for problem in [fault(code, err)] if problem]
    assert not faults, "\n".join(faults)
    assert contents(world) == before


# ----- files of --config-dir

EXPERIMENT: dict[str, Any] = {
    "title": "Mine",
    "paper": "sep",
    "presets": {"quick": "q", "full": "f"},
    "all": {"protocol": "clean", "split": {"quick": [0], "full": [0, 1]}},
    "runs": [{"dataset": ["wdbc"], "method": ["logistic", "constant"]}],
    "labels": {"method": {"logistic": "L"}},
}
CLAUSE = {"a": {"method": "sep"}, "b": {"method": "svi"}, "below": 0}
FILES: dict[str, Any] = {
    "dataset/mine": {
        "name": "mine",
        "task": "regression",
        "rows": 30,
        "inputs": 2,
        "splits": {"set": "random90", "sets": {"random90": 20}},
        "sources": [{"kind": "file", "path": "mine.csv", "target": "price", "delimiter": ",", "skip": 0}],
        "columns": ["a", "b"],
        "cite": "Yeh (1998)",
    },
    "method/mine": "method/logistic",
    "protocol/mine": "protocol/clean",
    "experiment/mine/e": {**EXPERIMENT, "table": {"rows": "dataset", "columns": "method", "metrics": ["nll"]}},
    "experiment/mine/f": {**EXPERIMENT, "figure": {"kind": "traces"}},
    "experiment/mine/g": {
        "title": "Half",
        "runs_of": "sep/table1",
        "where": {"dataset": ["heart"]},
        "labels": {"method": {"sep": "S"}},
        "table": {"rows": "dataset", "columns": "method", "metrics": ["nll"]},
    },
    "claims/mine": {
        "c01": {"text": "t", "experiments": "mine/e", "clauses": [{"difference": "nll", **CLAUSE}], "printed": "none"},
        "c02": {"text": "t", "clauses": [{"rank": "nll", "among": {"method": ["sep", "svi"]}, **CLAUSE}]},
        "c03": {"text": "t", "clauses": [{"value": "nll", "of": {"method": "sep"}, "between": [0, 1]}]},
        "c04": {"text": "t", "reason": "r"},
    },
    "kernel/cosine": {"_target_": "cosine.Cosine", "period": 6.0},
    "likelihood/cauchit": {"_target_": "cauchit.Cauchit"},
    "metric/pinball": {"_target_": "pinball.pinball", "unit": "u", "better": "lower", "tasks": ["regression"]},
}
DRY = ["run", "--cfg", "run.results=out"]
ON_CANCER, OF_MINE = [*DRY, "dataset=wdbc"], ["dataset=mine", "method=linear"]
USES = {
    "dataset/mine": [["data", "info", "mine"], ["data", "check", "mine"], [*DRY, *OF_MINE], ["cite", "mine"]],
    "method/mine": [[*ON_CANCER, "method=mine"]],
    "protocol/mine": [[*ON_CANCER, "method=sep", "protocol=mine"]],
    "experiment/mine/e": [["table", "mine/e"], ["ls", "experiments"]],
    "experiment/mine/f": [["plot", "mine/f"]],
    "experiment/mine/g": [["table", "mine/g"]],
    "claims/mine": [["verify", "mine", "--json"]],
    "kernel/cosine": [[*ON_CANCER, "method.kernel=cosine"]],
    "likelihood/cauchit": [[*ON_CANCER, "method.likelihood=cauchit"]],
    "metric/pinball": [[*DRY, "dataset=boston", "method=linear"]],
}


def _places(value: Any, place: tuple = ()) -> Iterator[tuple]:
    """The path of every value in a document."""
    yield place
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from _places(entry, (*place, key))


def _variants(document: Any) -> Iterator[bytes]:
    """The document with one value replaced, one left out or one added; and texts that are none, alone and after it."""
    text = yaml.dump(document).encode()
    for place in _places(document):
        *above, key = place or (None,)
        changes = [lambda at, key=key, value=value: at.__setitem__(key, value) for value in VALUES]
        changes += [lambda at, key=key: at.__delitem__(key)]
        changes += [lambda at, key=key, new=new: at[key].__setitem__(new, 1) for new in ("zzz", 3, None, True)]
        for change in changes:
            changed = {None: copy.deepcopy(document)}
            try:
                change(reduce(lambda node, key: node[key], [None, *above] if place else [], changed))
            except (TypeError, IndexError, AttributeError):  # nothing can be added to this value
                continue
            yield yaml.dump(changed.get(None)).encode()
    yield from TEXTS
    yield from (text + b"\n" + more for more in TEXTS)


@pytest.mark.parametrize("name", FILES)
def test_no_file_of_a_user_ends_in_a_traceback(name, world, here):
    document = FILES[name]
    if isinstance(document, str):
        document = {**yaml.safe_load((paths.conf_dir() / f"{document}.yaml").read_text()), "name": "mine"}
    variants = list(_variants(document))
    file, options = world / "conf" / f"{name}.yaml", ["--config-dir", world / "conf"]
    faults = []
    for text in [yaml.dump(document).encode(), *(variants if FULL else random.Random(1).sample(variants, 12))]:
        file.write_bytes(text)
        for words in USES[name]:
            results = [] if words[0] in ("run", "data", "ls") else ["--results", world / "results"]
            try:
                code, _, err = call(*words, *options, *results)
                problem = fault(code, err)
            except Exception as error:  # so that one list has all of them
                problem = repr(error)
            faults += [f"{words} with {text[:200]!r}: {problem}"] if problem else []
    file.unlink()
    assert not faults, "\n".join(faults)


# ----- tables


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx", "txt", "npz", ""])
def test_no_table_of_a_user_ends_in_a_traceback(ending, world, here):
    file, faults = here / f"mine.{ending}", []
    for table in TABLES if FULL or ending == "csv" else TABLES[::4]:
        file.write_bytes(table)
        code, _, err = call("import", file, "--results", here / "results")
        faults += [f"{table[:60]!r}: {problem}" for problem in [fault(code, err)] if problem or code == 0]
    assert not faults, "\n".join(faults)
    assert not (here / "results").exists()


# ----- Python

CALLS = {
    "run": (
        {"method": "no_such_method"},
        "overrides config_dir results dataset split seed run__jobs nothing method__x",
    ),
    "multirun": ({"method": "no_such_method"}, "jobs overrides config_dir results dataset split"),
    "load": ({"dataset": "no_such_data"}, "dataset protocol overrides config_dir nothing"),
    "load_run": ({}, "run results"),
    "ls": ({"kind": "runs"}, "kind config_dir results"),
    "table": ({"metric": "nll"}, "metric results dataset method setting preset"),
    "rank": ({"metric": "nll"}, "metric results setting"),
    "compare": ({"a": "sep", "b": "svi", "metric": "nll"}, "a b metric results dataset"),
    "power": ({"a": "sep", "b": "svi"}, "a b metric results"),
    "verify": ({"name": "sep"}, "name results"),
    "best": ({"task": "regression"}, "task rows inputs data seconds metric protocol results"),
}
"""The usual arguments of functions, and the names of those that get others."""


@pytest.mark.parametrize("name", CALLS)
def test_no_argument_of_a_function_ends_in_anything_but_a_line_of_ours(name, world, here):
    function, (usual, keys), faults = getattr(gpbench, name), CALLS[name], []
    if "results" in keys and name not in ("run", "multirun"):
        usual = usual | {"results": world / "results"}
    for key in keys.split():
        for value in ARGUMENTS if FULL else ARGUMENTS[::2]:
            try:
                with within(60):
                    function(**usual | {key: value})
            except GpbenchError as error:
                faults += [f"{key}={value!r}: {str(error)!r}"] if UNPRINTABLE.search(str(error)) else []
            except Exception as error:  # so that one list has all of them
                faults.append(f"{key}={value!r}: {error!r}")
    assert not faults, "\n".join(faults)
