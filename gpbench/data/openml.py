"""Data sets, tasks and suites of OpenML, by its REST interface: what a card needs to know of each."""

import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import md5, sha256
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from gpbench import limits
from gpbench.data import files
from gpbench.errors import ConfigError, DataError, require

_API = "https://www.openml.org/api/v1/json/"
_TASKS = {"1": ("binary", "multiclass"), "2": ("regression", "count")}  # of gpbench, by OpenML's type of a task


class Entry(NamedTuple):
    """A data set, or that of a task with its splits."""

    source: dict[str, Any]
    content: bytes  # of its file
    target: Any
    labels: Sequence[str] = ()  # columns that only label the rows
    facts: Mapping[str, str] = {}  # of its card
    tasks: Sequence[str] = ()  # of gpbench that it may be; () for any
    splits: bytes = b""  # file of its splits


def suite(value: str) -> list[str]:
    """The tasks of a suite, as in openml:task:59."""
    with _answers(value):
        ids = _description(f"study/{_number(value)}", "study")["tasks"]["task_id"]
        return [f"openml:task:{int(id)}" for id in (ids if isinstance(ids, list) else [ids])]


def entry(value: str, target: Any) -> Entry:
    """What `openml:61` and `openml:task:59` name.  A task has a target of its own."""
    number = _number(value)
    with _answers(value):
        if not value.startswith("openml:task:"):
            return _data(number, target)
        task = _description(f"task/{number}", "task")
        kind, inputs = str(task["task_type_id"]), {item["name"]: item for item in task["input"]}
        other = f"dataset={value}: a task of the type {task.get('task_type')}, and gpbench has classes and regression"
        require(kind in _TASKS, other, ConfigError)
        own = str(inputs["source_data"]["data_set"]["target_feature"])
        require(target in (None, own), f"target={target}: {value} has the target {own}: leave it out", ConfigError)
        table = _data(str(inputs["source_data"]["data_set"]["data_set_id"]), own)
        splits = _file(str(inputs["estimation_procedure"]["estimation_procedure"]["data_splits_url"]), "")
        return table._replace(tasks=_TASKS[kind], splits=splits)


def split_file(content: bytes, rows: int) -> bytes:
    """The table of fixed splits, a column for each, of a file that has a line for each row of each split."""
    import pandas

    head, *body = re.split(rb"(?im)^[ \t]*@data[^\n]*\n", content, maxsplit=1)
    names = re.findall(r"(?im)^[ \t]*@attribute\s+['\"]?(\w+)", head.decode(errors="replace"))
    try:
        table = pandas.read_csv(io.BytesIO(b"".join(body)), names=names, comment="%", dtype={"type": "category"})
        of_row = table["rowid"].to_numpy("int64")
        kinds = table["type"].str.strip("'\" ").str.upper().to_numpy(str)
        is_test, is_train = kinds == "TEST", kinds == "TRAIN"
        folds, of_split = np.unique(table[["repeat", "fold"]].to_numpy("int64"), axis=0, return_inverse=True)
        require((is_test | is_train).all() and (of_row == table["rowid"]).all(), "a row or a type is none", ValueError)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DataError(f"its file of splits is none of OpenML's ({' '.join(str(error).split())[:80]})") from None
    known = len(of_row) and of_row.min() >= 0 and of_row.max() < rows
    require(known, f"its splits are not of the {rows:,} rows of its table")
    limits.check(20 * rows * len(folds), limits.memory(8 * rows), "its splits need", error=DataError)
    cells = np.full((rows, len(folds)), "-", dtype="<U5")
    cells[of_row[is_train], of_split[is_train]] = "train"
    tests = of_row[is_test], of_split[is_test]
    require(not (cells[tests] == "train").any(), "a row trains and tests in one of its splits")
    cells[tests] = "test"
    header = ",".join(f"repeat {repeat} fold {fold}" for repeat, fold in folds)
    return "\n".join([header, *map(",".join, cells), ""]).encode()


def _data(number: str, target: Any) -> Entry:
    about = _description(f"data/{number}", "data_set_description")
    content = _file(url := str(about["url"]), str(about.get("md5_checksum") or "").lower())
    address, _, file = url.rpartition("/")
    source = {"kind": "official", "at": f"{address}/", "files": {file: sha256(content).hexdigest()}, "reader": "table"}
    labels = [*_names(about.get("row_id_attribute")), *_names(about.get("ignore_attribute"))]
    names = {"title": about.get("name"), "licence": about.get("licence")}
    if target is None:
        targets = _names(about.get("default_target_attribute"))
        target = targets if len(targets) > 1 else next(iter(targets), None)
    return Entry(source, content, target, labels, {key: str(text) for key, text in names.items() if text is not None})


def _number(value: str) -> str:
    match = re.fullmatch(r"openml:(?:task:|suite:)?(\d+)", value, re.ASCII)
    mend = "give a number of openml.org, as in openml:61 (a data set), openml:task:59 or openml:suite:99"
    if match is None:
        raise ConfigError(f"dataset={value}: {mend}")
    return match[1]


@contextlib.contextmanager
def _answers(value: str) -> Iterator[None]:
    """Names what is asked for where there is no answer, or another one than OpenML's."""
    import requests

    reason = "the answer of OpenML is no description of it"
    try:
        yield
        return
    except requests.HTTPError as error:
        is_absent = error.response is not None and error.response.status_code in (404, 412)
        reason = "OpenML has none of this number" if is_absent else f"OpenML answers {error}"
    except requests.RequestException as error:
        reason = f"OpenML does not answer ({type(error).__name__}): check the network"
    except DataError as error:
        reason = str(error)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError):
        pass
    raise DataError(f"dataset={value}: {reason}")


def _description(path: str, key: str) -> Any:
    return json.loads(files.download(f"{_API}{path}", largest=2**22))[key]


def _file(url: str, md5sum: str) -> bytes:
    """The content of a file; without a checksum it must be OpenML's own."""
    require(urlsplit(url).scheme == urlsplit(_API).scheme, f"its file is at {url}, which nothing protects on the way")
    actual = md5(content := files.download(url, site="" if md5sum else _API)).hexdigest()
    require(md5sum in ("", actual), f"{url}: md5 is {actual}, not {md5sum}: damaged or another version")
    return content


def _names(entry: Any) -> list[str]:
    """Names of columns as OpenML's descriptions have them: none, a list, or a text with commas."""
    names = entry if isinstance(entry, list) else str(entry or "").split(",")
    return [name for text in names if (name := str(text).strip()) not in ("", "null")]
