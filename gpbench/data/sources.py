"""Loading of data sets: from the local store, else from the sources of the card in order (mirror, addresses)."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from gpbench import paths
from gpbench.config.cards import reader, resolved
from gpbench.data import archives, builtin, cards, files
from gpbench.data import store as local
from gpbench.data.conversion import from_raw
from gpbench.data.dataset import Dataset, checksum
from gpbench.data.mapped import mapped
from gpbench.data.tables import split_table
from gpbench.data_registry import READERS, function_and_options
from gpbench.errors import ConfigError, DataError

_BUILTIN = {"sklearn": builtin.sklearn, "generated": builtin.generated, "rows": builtin.rows}


def load(
    card: Mapping,
    *,
    mirror: Path | None = None,
    store: Path | None = None,
    offline: bool = False,
    again: bool = False,
    config_dirs: Sequence[Path | str] = (),
    quiet: bool = False,
) -> Dataset:
    """Loads the data set of a card from the first source that has it with the right checksum.  Raises DataError: no
    source has the data; the message names the files, their checksums and the places tried; ConfigError: the card is
    wrong.
    """
    checked = cards.checked(card, config_dirs=config_dirs)
    options = {"offline": offline, "again": again, "quiet": quiet}
    return _load(checked, mirror=mirror, store=store, config_dirs=config_dirs, **options)


def _load(
    card: Mapping,
    *,
    mirror: Path | None,
    store: Path | None,
    offline: bool,
    again: bool = False,
    quiet: bool = False,
    config_dirs: Sequence[Path | str],
) -> Dataset:
    store = Path(store) if store else paths.store_dir()
    try:
        if not again and (stored := local.get(card, store)):
            return stored
    except DataError as error:
        local.warn(f"{error}; fetching it again")
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
                local.warn(f"{problem}; took the next source")
        if not dataset.file:
            local.save(dataset, card, store)
        if dataset.left_out and not quiet:
            lines = "; ".join(dataset.left_out)
            _warn_once(f"{card['name']}: {lines}: no input; to make it one, name it in `keep`")
        return dataset
    remedy = ""
    if offline and any(reader(source) for source in card["sources"] if "at" in source):
        remedy = f"; run `gpbench data fetch {card['name']}` where there is a network and copy that store here"
    name = cards.location(card["name"], config_dirs)
    texts = [str(error) for error in failures]
    if len(texts) == 1:
        prefix = f"{card['name']}: "
        raise DataError(
            f"{texts[0].replace(prefix, f'{name}: ', 1) if texts[0].startswith(prefix) else texts[0]}{remedy}"
        )
    reasons = "; ".join(text.removeprefix(f"{card['name']}: ") for text in texts)
    raise DataError(f"{name} is unavailable: not in the store {store}; {reasons}{remedy}")


def folders(config_dirs: Sequence[Path | str], store: Path) -> list[Path]:
    """Folders where the file of a `file` source may lie: this one, those of the user's cards, and the store."""
    return [Path(), *(Path(folder) / "dataset" for folder in config_dirs), *map(Path, config_dirs), store]


def configured(cfg: Mapping) -> Dataset:
    """Loads the data set of a resolved configuration.  Raises DataError, ConfigError: as for `load`."""
    mirror, store = (Path(folder) if (folder := cfg["data"][key]) else None for key in ("mirror", "store"))
    offline = cfg["data"]["offline"]
    card = resolved(cfg["dataset"])  # checked when it was composed
    return _load(card, mirror=mirror, store=store, offline=offline, config_dirs=cfg["config_dirs"])


def obtain(
    card: Mapping, source: Mapping, *, mirror: Path | None, offline: bool = False, folders: Sequence[Path] = (Path(),)
) -> Dataset:
    """Loads the data set from one source and verifies its checksum.  Raises DataError: the source does not have the
    data, or other data.
    """
    if reader(source) == "mapped":
        if source["kind"] != "file" or source.get("split_file"):
            raise DataError(
                f"{card['name']}: the reader `mapped` is for sources of the kind `file` without `split_file`"
            )
        path = _path(source["path"], folders, source.get("note"))
        return _verified(mapped(path, source, card=card, store=folders[-1]), card, source)
    if source["kind"] in _BUILTIN:
        raw = _BUILTIN[source["kind"]](source)
    else:
        (read, options), blobs = _reader(source), _content(source, mirror, offline, folders)
        try:
            raw = read(blobs, {"variant": card.get("variant"), **source, **options})
            archives.require_memory(16 * raw.X.size, *blobs)  # bytes and bits become numbers of eight bytes
        except DataError as error:
            raise DataError(f"{card['name']}: {describe(source)}: {error}") from None
    if file := source.get("split_file"):
        try:
            raw = replace(raw, split=split_table(_own_file(source, file, folders), {}))
        except DataError as error:
            raise DataError(f"{card['name']}: {file}: {error}") from None
        if len(raw.split) != len(raw.X):
            raise DataError(f"{card['name']}: {file} has {len(raw.split)} rows, and the table {len(raw.X)}")
    try:
        dataset = from_raw(card, raw, source.get("labels"))
    except DataError as error:
        reason = str(error).removeprefix(f"{card['name']}: ")
        raise DataError(f"{card['name']}: {describe(source)}: {reason}") from None
    return _verified(dataset, card, source)


def _verified(dataset: Dataset, card: Mapping, source: Mapping) -> Dataset:
    """The data set, if its arrays have the checksums of its card.  Raises DataError."""
    if reader(source) == "mapped" and source.get("sha256") not in (None, dataset.checksum):
        raise DataError(f"{source['path']}: sha256 is {dataset.checksum}, not {source['sha256']}: another version")
    checksums = {"checksum": dataset.checksum, "folds_checksum": dataset.folds and checksum(dataset.folds)}
    for key, actual in checksums.items():
        if card.get(key) and actual and actual != card[key]:
            raise DataError(f"{card['name']}: {describe(source)} gives arrays with {key} {actual}, not {card[key]}")
    return dataset


@functools.cache
def _warn_once(text: str) -> None:
    """Warns once in a process: a run reads a user's table for its plan, and again for its training."""
    local.warn(text)


def describe(source: Mapping) -> str:
    """A short description of a source: its kind and its files."""
    names = (source.get(key) for key in ("loader", "generator", "path"))
    name = next(filter(None, names), "") or ", ".join(source.get("files", ["of the card"]))
    return f"{source['kind']} {source.get('at', '')}{name}"


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
    if source["kind"] == "file":
        blobs = [_own_file(source, source["path"], folders, source.get("sha256"))]
    elif source["kind"] == "mirror":
        if mirror is None:
            needed = ", ".join(f"{name} (sha256 {sha256})" for name, sha256 in source["files"].items())
            raise files.Absent(f"no mirror (set GPBENCH_MIRROR to a folder with {needed})")
        if not mirror.is_dir():
            raise ConfigError(f"the mirror {mirror}: no such folder; mend GPBENCH_MIRROR, data.mirror or --mirror")
        blobs = [files.from_folder(mirror, name, sha256) for name, sha256 in source["files"].items()]
    elif offline:
        raise files.Absent(f"offline, so not downloaded: {describe(source)}")
    else:
        blobs = [files.from_address(source["at"], name, sha256) for name, sha256 in source["files"].items()]
    return [archives.member(blob, source["member"]) for blob in blobs] if source.get("member") else blobs


def _own_file(source: Mapping, path: str, folders: Sequence[Path], sha256: str | None = None) -> bytes:
    """The content of a user's file, from the first of these folders that has it."""
    file = _path(path, folders, source.get("note"))
    return files.from_folder(file.parent, file.name, sha256)


def _path(path: str, folders: Sequence[Path], note: object) -> Path:
    """The path of a user's file, in the first of these folders that has it."""
    candidates = [folder / path for folder in folders if (folder / path).is_file()]
    if not candidates:
        places = ", ".join(str(f.resolve()) for f in folders)
        raise files.Absent(f"no file {path} in {places}{f': {note}' if note else ''}")
    return candidates[0]
