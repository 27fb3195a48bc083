"""Loading of data sets: from the local store, else from the sources of the card in order (mirror, addresses)."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from gpbench import paths
from gpbench.config.cards import reader, resolved
from gpbench.config.values import Config
from gpbench.data import archives, builtin, cards, files
from gpbench.data import store as local
from gpbench.data.conversion import from_raw
from gpbench.data.dataset import Dataset, differences
from gpbench.data.faults import first_rows, reject
from gpbench.data.mapped import mapped
from gpbench.data.tables import split_table
from gpbench.data_registry import READERS, function_and_options
from gpbench.errors import ConfigError, DataError, listed, printable, require
from gpbench.log import log, warn, warn_once

_BUILTIN = {"sklearn": builtin.sklearn, "generated": builtin.generated, "rows": builtin.rows}


def load(card: Mapping, **options: Any) -> Dataset:
    """Loads the data set of a checked card; its exposure, if it has one, is the last input."""
    dataset = _load(card, **options)
    if not (name := card.get("exposure")):
        return dataset
    inputs, fault = dataset.columns, f"{card['name']}: `exposure: {name}`"
    is_fit = card["task"] == "count" and not dataset.file
    require(is_fit, f"{fault} is for `task: count`, of a table in memory: leave it out")
    gaps = "an exposure has no gaps: leave it out of `impute`, and mend its cells"
    require(name not in dataset.impute, f"{fault}: {gaps}")
    takes = "must be an input of numbers, in none of `encode`, `drop`, `group` and `order`"
    require(name in inputs, f"{fault} {takes}, and in `keep` if it counts the rows; inputs are {listed(inputs, 20)}")
    require(len(inputs) > 1, f"{fault} is the only input: name another one, on which counts depend")
    low = np.flatnonzero(dataset.X[:, inputs.index(name)] <= 0.0)
    require(not len(low), f"{fault} is not above 0 ({first_rows(low.tolist())}): mend or drop such rows")
    order = [*(i for i, other in enumerate(inputs) if other != name), inputs.index(name)]
    return replace(dataset, X=dataset.X[:, order], columns=tuple(inputs[i] for i in order), exposure=True)


def _load(
    card: Mapping,
    *,
    mirror: Path | str | None = None,
    store: Path | str | None = None,
    offline: bool = False,
    again: bool = False,
    config_dirs: Sequence[Path | str] = (),
    quiet: bool = False,
) -> Dataset:
    """Loads a data set from the store, or from the first source with the right checksum."""
    store = Path(store) if store else paths.store_dir()
    try:
        if not again and (stored := local.get(card, store)):
            return stored
    except DataError as error:
        warn(f"{error}; fetching it again")
    mirror = Path(mirror) if mirror else paths.mirror_dir()
    places = folders(config_dirs, store)
    failures: list[DataError] = []
    for source in card["sources"]:
        try:
            dataset = obtain(card, source, mirror=mirror, offline=offline, folders=places)
        except DataError as error:
            failures.append(error)
            continue
        for problem in failures:
            if not isinstance(problem, files.Absent):
                warn(f"{problem}; took the next source")
        log.debug("made %s of %s", card["name"], describe(source))
        if not dataset.file:
            local.save(dataset, card, store)
        gaps = listed([*dataset.missing]) if card.get("incomplete") == "drop" else ""
        if dataset.left_out and not quiet:
            warn_once(f"{card['name']}: {'; '.join(dataset.left_out)}: no input; to make it one, name it in `keep`")
        if gaps and not quiet:
            warn_once(f"{card['name']}: rows that lack {gaps} are left out, by `incomplete: drop`")
        return dataset
    name, subject = cards.location(card["name"], config_dirs), f"{card['name']}: "
    plain = [str(error).removeprefix(subject) for error in failures]
    fault = f"{name} is unavailable: not in the store {store}; {'; '.join(plain)}"
    if len(failures) == 1:
        fault = f"{name}: {plain[0]}" if str(failures[0]).startswith(subject) else plain[0]
    if offline and any(reader(source) for source in card["sources"] if "at" in source):
        fault += f"; run `gpbench data fetch {card['name']}` where there is a network and copy that store here"
    raise DataError(fault)


def folders(config_dirs: Sequence[Path | str], store: Path) -> list[Path]:
    """Folders where the file of a `file` source may lie: this one, those of the user's cards, and the store."""
    return [Path(), *(Path(folder) / "dataset" for folder in config_dirs), *map(Path, config_dirs), store]


def configured(cfg: Config) -> Dataset:
    """Loads the data set of a resolved configuration.  Raises DataError as `load` does."""
    return load(resolved(cfg["dataset"]), **cfg["data"], config_dirs=cfg["config_dirs"])


@contextlib.contextmanager
def _reading(name: str, subject: str) -> Iterator[None]:
    """Begins the DataErrors of a data set with its name, and with what is read."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{name}: {subject}: {str(error).removeprefix(f'{name}: ')}") from None


def obtain(
    card: Mapping, source: Mapping, *, mirror: Path | None, offline: bool = False, folders: Sequence[Path] = (Path(),)
) -> Dataset:
    """Loads the data set from one source and verifies its checksum."""
    name, subject, split_file = card["name"], describe(source), source.get("split_file")
    if reader(source) == "mapped":
        is_fit = source["kind"] == "file" and not split_file
        require(is_fit, f"{name}: the reader `mapped` is for sources of the kind `file` without `split_file`")
        path = _path(source["path"], folders, source.get("note"))
        dataset = mapped(path, source, card=card, store=folders[-1])
        fault = f"{path}: sha256 is {dataset.checksum}, not {source.get('sha256')}: another version"
        require(source.get("sha256") in (None, dataset.checksum), fault)
    else:
        if source["kind"] in _BUILTIN:
            raw = _BUILTIN[source["kind"]](source)
        else:
            (read, options), blobs = _reader(source), _content(source, mirror, offline, folders)
            with _reading(name, subject):
                raw = read(blobs, {"variant": card.get("variant"), **source, **options})
                archives.require_memory(16 * raw.X.size, *blobs)  # bytes and bits become numbers of eight bytes
        if split_file:
            with _reading(name, split_file):
                raw = replace(raw, split=split_table(_file(split_file, folders, source)))
            lengths = f"{split_file} has {len(raw.split)} rows, and the table {len(raw.X)}"
            require(len(raw.split) == len(raw.X), f"{name}: {lengths}")
        with _reading(name, subject):
            dataset = from_raw(card, raw, source.get("labels"))
    others = differences(card, dataset.checksum, dataset.folds).items()
    reject(f"{name}: {subject} gives arrays with {key} {actual}, not {stated}" for key, (actual, stated) in others)
    return dataset


def describe(source: Mapping) -> str:
    """A short description of a source: its kind and its files."""
    names = (source.get(key) for key in ("loader", "generator", "path"))
    name = next(filter(None, names), "") or ", ".join(source.get("files", ["of the card"]))
    return printable(f"{source['kind']} {source.get('at', '')}{name}")


def _reader(source: Mapping) -> tuple[Callable, Mapping]:
    """The reader's function, and the options that it has besides those of the source."""
    if (name := reader(source)) is None:
        raise files.Absent(f"{describe(source)}: {source.get('note', 'not read by gpbench')}")
    entry = READERS.get(name) if isinstance(name, str) else None
    if entry and entry.package and find_spec(entry.package) is None:  # said before anything is downloaded
        install = f"pip install -c constraints.txt -e '.[{entry.extra}]' in the checkout"
        raise DataError(f"{describe(source)} needs {entry.package}, which is not installed: {install}")
    return function_and_options(name)


def _content(source: Mapping, mirror: Path | None, offline: bool, folders: Sequence[Path]) -> list[bytes]:
    """The bytes of all files of a source, archive members taken out."""
    checksums, kind = (source.get("files") or {}).items(), source["kind"]
    if kind == "file":
        blobs = [_file(source["path"], folders, source, source.get("sha256"))]
    elif kind == "mirror":
        if mirror is None:
            needed = ", ".join(f"{name} (sha256 {sha256})" for name, sha256 in checksums)
            raise files.Absent(f"no mirror (set GPBENCH_MIRROR to a folder with {needed})")
        absent = f"the mirror {mirror}: no such folder; mend GPBENCH_MIRROR, data.mirror or --mirror"
        require(mirror.is_dir(), absent, ConfigError)
        blobs = [files.from_folder(mirror, name, sha256) for name, sha256 in checksums]
    else:
        require(not offline, f"offline, so not downloaded: {describe(source)}", files.Absent)
        blobs = [files.from_address(source["at"], name, sha256) for name, sha256 in checksums]
    return [archives.member(blob, source["member"]) for blob in blobs] if source.get("member") else blobs


def _file(path: str, folders: Sequence[Path], source: Mapping, sha256: str | None = None) -> bytes:
    """The bytes of a user's file."""
    file = _path(path, folders, source.get("note"))
    return files.from_folder(file.parent, file.name, sha256)


def _path(path: str, folders: Sequence[Path], note: object) -> Path:
    """The path of a user's file, in the first of these folders that has it."""
    if file := next((folder / path for folder in folders if (folder / path).is_file()), None):
        return file
    places = ", ".join(str(folder.resolve()) for folder in folders)
    raise files.Absent(f"no file {printable(path)} in {places}{f': {note}' if note else ''}")
