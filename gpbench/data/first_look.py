"""Tables without a card: `dataset=PATH target=NAME` and `dataset=openml:NUMBER` write one, where there is none."""

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpbench import paths, yamls
from gpbench.config.cards import reader
from gpbench.config.words import read
from gpbench.data import cards, files, guesses, openml
from gpbench.data.conversion import from_raw
from gpbench.data.tables import split_table
from gpbench.data_registry import function_and_options
from gpbench.errors import ConfigError, DataError, StorageError, failure, require
from gpbench.log import log
from gpbench.outputs import write_whole

_TABLES = (
    *(".csv", ".tsv", ".txt", ".data", ".dat", ".arff", ".parquet", ".pq", ".feather", ".arrow"),
    *(".xlsx", ".xls", ".ods", *guesses.LIBSVM, ".gz", ".bz2", ".xz", ".zip"),
)


def with_cards(words: Sequence[str], config_dirs: Sequence[Path]) -> tuple[list[str], list[Path]]:
    """The words of a command line with names of cards, written where they lack, for tables; and all folders."""
    of_word = {i: _values(word[8:]) for i, word in enumerate(words) if word.startswith("dataset=")}
    of_word = {i: values for i, values in of_word.items() if any(map(_is_table, values))}
    if not of_word:
        return [*words], [*config_dirs]
    target = next((_target(_unquoted(word[7:])) for word in reversed(words) if word.startswith("target=")), None)
    offline = any(re.fullmatch(r"\+*data\.offline=true", word, re.IGNORECASE) for word in words)
    result, folders = [*words], [*config_dirs]
    for i, of_suites in of_word.items():
        parts = [_suite(value, offline) if value.startswith("openml:suite:") else [value] for value in of_suites]
        values = [value for entry in parts for value in entry]
        for k, value in enumerate(values):
            if _is_table(value):
                card = _openml(value, target, offline) if value.startswith("openml:") else _own(value, target)
                values[k], folder = card.stem, card.parent.parent
                folders = [folder, *(other for other in folders if other != folder)]
        result[i] = f"dataset={','.join(values)}"
    return [word for word in result if not word.startswith("target=")], folders


def _unquoted(text: str) -> str:
    return text[1:-1].replace("\\" + text[0], text[0]) if len(text) > 1 and text[0] == text[-1] in "'\"" else text


def _values(text: str) -> list[str]:
    """The data sets of a word: one path, which may have commas, or several of a sweep."""
    path = _unquoted(text)
    return [path] if path != text or paths.expanded(path).is_file() else [*map(_unquoted, text.split(","))]


def _is_table(value: str) -> bool:
    """Whether a data set is named by its number at OpenML, by the name of a table, or by another file that is there."""
    ending = Path(value).suffix.lower()
    return value.startswith("openml:") or ending in _TABLES or (ending != "" and paths.expanded(value).is_file())


def _target(text: str) -> Any:
    """The target as a card has it: a name, a number of a column, or several in brackets."""
    if text.startswith("[") and text.endswith("]"):
        return [_target(_unquoted(entry.strip())) for entry in text[1:-1].split(",")]
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _own(value: str, target: Any) -> Path:
    """The card of a table."""
    path = paths.expanded(value)
    absent = "no such file" if not path.exists() else "is a folder" if path.is_dir() else "is no plain file"
    require(path.is_file(), f"dataset={value}: {absent}", ConfigError)
    readable = "text, workbooks (.xlsx, .xls, .ods), Parquet, Feather, ARFF and libsvm"
    fault = f"a first look reads {readable}: save it so, or write a card with `reader`"
    require(path.suffix.lower() in _TABLES, f"dataset={value}: {fault}", ConfigError)
    folder = path.parent.resolve()
    folder = folder.parent if folder.name == "dataset" else folder
    stem = path
    while stem.suffix.lower() in _TABLES:
        stem = stem.with_suffix("")
    name = re.sub(r"[^\w.-]", "_", stem.name, flags=re.ASCII).lstrip(".-")[:200] or "table"
    is_ours = (paths.conf_dir() / "dataset" / f"{name}.yaml").exists()
    is_text = isinstance(read([f"dataset={name}"])[0].value, str)  # no number or null, as 2024 and nan
    card = folder / "dataset" / f"{name if is_text and not is_ours else f'my_{name}'}.yaml"
    if card.exists():
        return _existing(card, target, path.name)
    shadow = Path(path.name)  # a path is looked for in the current folder first
    is_other = shadow.exists() and not shadow.samefile(path)
    source = {"kind": "file", "path": str(path.resolve()) if is_other else path.name}
    _write(card, path.name, openml.Entry(source, files.from_folder(path.parent, path.name, None), target))
    return card


def _existing(card: Path, target: Any, table: str | None = None) -> Path:
    content = yamls.read(card)
    sources = (content.get("sources") if isinstance(content, dict) else None) or [{}]
    source = sources[0] if isinstance(sources[0], Mapping) else {}
    other = f"{card} is the card of {source.get('path')}: rename {table}, or the card"
    require(table is None or Path(str(source.get("path"))).name == table, other, ConfigError)
    stated = f"{card} has the target {source.get('target')}; edit it, or leave target out"
    require(target in (None, source.get("target")), f"target={target}: {stated}", ConfigError)
    return card


def _write(card: Path, title: str, entry: openml.Entry) -> None:
    """Writes a card, and the splits of a task beside it, and says so in a line."""
    target = entry.target
    node: dict[str, Any] = {"name": card.stem, "task": "regression"}
    remedy = ""
    try:
        task, options, summary, guessed = guesses.guess(entry.content, title, target, entry.labels)
        node["task"] = task if task in entry.tasks or not entry.tasks else entry.tasks[-1]
        remedy = "; no card is written"
        node |= {"outputs": len(target)} if isinstance(target, list) and len(target) > 1 else {}
        node["sources"] = [entry.source | options]
        checked = cards.checked({**node, **entry.facts})
        function, _ = function_and_options(reader(checked["sources"][0]) or "table")
        raw = function([entry.content], checked["sources"][0])
        splits = openml.split_file(entry.splits, len(raw.X)) if entry.splits else b""
        if splits:
            raw = replace(raw, split=split_table(splits))
            file = f"{card.stem}_splits.csv"
            node |= {"splits": {"set": "fixed", "folds": raw.split.shape[1]}, "impute": "median"}
            node["sources"] = [{**entry.source, "split_file": file, **options}]
            checked = cards.checked({**node, **entry.facts})
        dataset = from_raw(checked | {"incomplete": "drop"}, raw)
        node |= {"checksum": dataset.checksum} if splits else {}
    except DataError as error:
        reason, start = str(error).removeprefix(f"{card.stem}: "), entry.source | {"target": target or "COLUMN"}
        if re.search(r"\bcard\b|`\w+[:`]", reason):
            with contextlib.suppress(DataError):
                start |= {} if "sources" in node else guesses.guess_spelling(entry.content, target)[0]
            node.setdefault("sources", [start])
            text = yamls.dump(node, default_flow_style=True, width=10**6).strip()
            remedy = f"; there is no card yet: write {card}, which begins as {text}"
        raise DataError(f"dataset={title}: {reason}{remedy}") from None
    lost, gaps = len(raw.X) - len(dataset.y), int(np.isnan(dataset.y.reshape(len(dataset.y), -1)).any(axis=1).sum())
    drops = {"incomplete": "drop"} if lost or gaps else {}
    summary += [f"{lost} rows with missing cells left out"] if lost else []
    summary += [f"{gaps} rows that lack a target count for the others"] if gaps else []
    notes = [f"{text}, which {option} leaves out" if option else text for text, option in dataset.notes]
    line = "; ".join(filter(None, [*summary, *guessed, dataset.account, *notes]))
    mend = "leave `checksum` out, which holds the task's rows and splits, to edit it" if splits else "edit it"
    text = f"# A first look at {title}, as gpbench guesses it: {mend} (docs/how-to/own_data.md)\n"
    if splits:
        _keep(card.with_name(file), splits.decode())
    _keep(card, text + yamls.dump({**node, **drops, **entry.facts}, allow_unicode=True, width=100))
    command = f"--config-dir {card.parent.parent} dataset={card.stem}"
    log.info(f"wrote {card} ({line}): {mend}, then run with {command}")


def _openml(value: str, target: Any, offline: bool) -> Path:
    """The card of a data set or a task of OpenML, in dataset/ of the current folder."""
    card = Path().resolve() / "dataset" / f"{value.replace(':', '_')}.yaml"
    if card.exists():
        return _existing(card, target)
    _require_network(value, card, offline)
    _write(card, value, openml.entry(value, target))
    return card


def _suite(value: str, offline: bool) -> list[str]:
    """The tasks of a suite of OpenML, which stand in a file of dataset/ of the current folder, to be edited."""
    file = Path().resolve() / "dataset" / f"{value.replace(':', '_')}.txt"
    if not file.exists():
        _require_network(value, file, offline)
        _keep(file, "\n".join([*openml.suite(value), ""]))
        log.info(f"wrote {file}: leave tasks out there")
    return file.read_text(encoding="utf-8").split()


def _require_network(value: str, file: Path, offline: bool) -> None:
    absent = f"data.offline=true, and {file} is not there: write it where there is a network"
    require(not offline, f"dataset={value}: {absent}")


def _keep(file: Path, text: str) -> None:
    try:
        write_whole(file, text.encode())
    except OSError as error:
        other = "copy the table into a folder that you may write in"
        raise StorageError(f"cannot write {file}: {failure(error, other)}") from error
