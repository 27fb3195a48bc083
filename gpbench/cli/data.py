"""`gpbench data`: lists, describes, checks, fetches and exports data sets; a function for each action."""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from gpbench import outputs, paths
from gpbench.analysis.printing import fitted, print_json, width
from gpbench.api.words import with_cards
from gpbench.config.cards import split_sets
from gpbench.errors import ConfigError, DataError, GpbenchError, StorageError, listed, printable, require
from gpbench.log import log

_Card = Mapping[str, Any]
_Described = tuple[dict[str, Any], str]  # what an action says of a data set, as plain data and as text


class Places(TypedDict):
    """Options of every action: the places of data sets, and the form of the answer."""

    json: bool
    mirror: Path | None
    store: Path | None
    config_dir: Sequence[Path]


def _of_each(action: Callable[[_Card, Places], _Described]) -> Callable[..., int]:
    """The verb of an action on each data set."""

    def call(*names: str, **places: Unpack[Places]) -> int:
        return _each(names, places, action)

    call.__doc__ = action.__doc__
    return call


def ls(**places: Unpack[Places]) -> int:
    """One line per data set."""
    return _each(["all"], places, _ls)


def fetch(*names: str, offline: bool = False, again: bool = False, **places: Unpack[Places]) -> int:
    """Download data sets into the store.

    Args:
        offline: do not download
        again: replace what the store has
    """

    def fetched(card: _Card, places: Places) -> _Described:
        name, dataset, stored = card["name"], _loaded(card, places, offline=offline, again=again), _stored(card, places)
        if stored:
            fault = f"cannot store {name} in {stored.parent}: set GPBENCH_STORE or --store to another folder"
            require(stored.is_file(), fault, StorageError)
        row = {"rows": len(dataset.y), "checksum": dataset.checksum, "stored": stored and str(stored)}
        return {"name": name, **row}, f"{name:<16} {stored or 'not stored: its card has no checksum'}"

    return _each(names, places, fetched)


@_of_each
def verify(card: _Card, places: Places) -> _Described:
    """Check store, mirror and built-in data against the checksums of the cards."""
    from gpbench.data import sources, store
    from gpbench.data.dataset import checksum
    from gpbench.data.files import Absent

    folder, mirror = places["store"] or paths.store_dir(), places["mirror"] or paths.mirror_dir()
    searched = sources.folders(places["config_dir"], folder)
    loaders: dict = {f"store {folder}": partial(store.get, card, folder)}
    for source in card["sources"]:
        if source["kind"] not in ("official", "copy"):
            loaders[sources.describe(source)] = partial(sources.obtain, card, source, mirror=mirror, folders=searched)
    states: dict[str, str] = {}
    checksums: dict[str, str] = {}
    bad: list[str] = []
    for name, load in loaders.items():
        states[name] = "absent"
        try:
            if dataset := load():
                states[name] = "right" if card.get("checksum") else "no checksum in the card"
                checksums["checksum"] = dataset.checksum
                checksums |= {"folds_checksum": checksum(dataset.folds)} if dataset.folds else {}
        except Absent:
            pass
        except (DataError, ConfigError) as error:
            states[name] = str(error)
            bad.append(name)
    lines = [f"{card['name']:<16} {key}: {value}" for key, value in {**states, **checksums}.items()]
    return {"name": card["name"], "places": states, **checksums, "bad": bad}, "\n".join(lines)


@_of_each
def info(card: _Card, places: Places) -> _Described:
    """Print all fields of the card, the inputs and the target."""
    from gpbench.data.sources import describe

    names, target = [*map(str, card.get("columns") or [])], None
    if any(source["kind"] == "file" for source in card["sources"]):
        with contextlib.suppress(DataError):  # `check` says what is wrong
            dataset = _loaded(card, places, offline=True)
            names, target = [*dataset.columns], listed(dataset.outputs or [dataset.target])
    sources = [describe(source) for source in card["sources"]]
    row = {**card, **_summary(card, places), "sources": sources, "input_names": names, "target_name": target}
    inputs = ": ".join(filter(None, [f"{row['inputs'] or len(names)}", listed(names)]))
    values = {**row, "inputs": inputs if inputs != "0" else None, "target": row.get("target") or target}
    keys = ["title", "task", "rows", "inputs", "outputs", "target", "counts", "licence", "cite", "published"]
    lines = [(key, values[key]) for key in (*keys, "checksum") if values.get(key) not in (None, "")]
    lines += [("splits", row["splits"])] + [("source", source) for source in sources]
    lines += [("oddity", oddity) for oddity in card.get("oddities") or []] + [("stored", row["stored"] or "no")]
    return row, "\n".join([card["name"], *(f"  {key:<9} {_plain(value)}" for key, value in lines)])


@_of_each
def check(card: _Card, places: Places) -> _Described:
    """Describe the rows and name what is doubtful in them: notes, each with how to mend it."""
    from gpbench.data.checks import check

    report = check(card, _loaded(card, places, quiet=True))
    return report.to_json(), str(report)


def rows(*names: str, split: int, set: str | None = None, out: Path | None = None, **places: Unpack[Places]) -> int:
    """Write the rows of a split into a NumPy file: X, y, and the row numbers train and test.

    Args:
        split (K): the number of the split
        set (NAME): the split set; default: the card's
        out (FILE): default: NAME-K.npz, or NAME-SET-K.npz where SET is not the card's
    """

    def written(card: _Card, places: Places) -> _Described:
        import numpy as np

        from gpbench.data import splits

        default = splits.identity(card)["set"]
        card = splits.with_set(card, set)
        split_set = splits.identity(card)["set"]
        splits.split_numbers(card, split)
        parts = [card["name"], split_set if split_set != default else "", str(split)]
        file = out or Path("-".join(filter(None, parts)) + ".npz")
        require(not file.is_dir(), f"--out {file}: is a folder", ConfigError)
        require(file.parent.is_dir(), f"--out {file}: no such folder {file.parent}", ConfigError)
        dataset = _loaded(card, places)
        train, test = splits.indices(card, dataset, split)
        facts = {"dataset": card["name"], "split": split, "split_set": split_set}
        facts |= {key: np.array(getattr(dataset, key), str) for key in ("columns", "classes", "outputs")}
        with outputs.output(file) as stream:  # NumPy would append .npz to other names
            np.savez_compressed(stream, X=dataset.X, y=dataset.y, train=train, test=test, **facts)
        row = {"name": card["name"], "split": split, "split_set": split_set, "train": len(train), "test": len(test)}
        text = f"{card['name']} split {split}: {len(train)} training and {len(test)} test rows in {file}"
        return {**row, "out": str(file)}, text

    return _each(names, places, written, out)


def probe(*names: str, **places: Unpack[Places]) -> int:
    """Ask every address of the cards whether it still answers: size, redirects, checksums of small files.

    Args:
        names (NAME|TABLE|all): data sets, or the path of a table; default: all
    """
    from gpbench.data import cards, files

    known, places = _resolve(names, places)
    addresses = [address for name in known for address in files.addresses(cards.read(name, places["config_dir"]))]
    answers = []
    for answer in files.ask(addresses):
        answers.append(answer)
        if not places["json"]:
            print(answer, flush=True)
    unavailable = files.unavailable(answers)
    if places["json"]:
        print_json({"files": [answer.to_json() for answer in answers], "unavailable": unavailable})
    fault = f"no address answers for {', '.join(unavailable)}; find a copy and add it to the card"
    require(not unavailable, fault)
    return 0


def _resolve(names: Sequence[str], places: Places) -> tuple[list[str], Places]:
    """The names of data sets, and the places with their cards: of a table its card, which target=COLUMN writes."""
    from gpbench.data import cards

    if list(names) in (["all"], []):
        return cards.names(places["config_dir"]), places
    texts = [name if name.startswith(("dataset=", "target=")) else f"dataset={name}" for name in names]
    texts, config_dir = with_cards(texts, places["config_dir"])
    for text in texts:
        fault = f"{text}: this is for the path of a table, as in a.csv {text}"
        require(not text.startswith("target="), fault, ConfigError)
    return [text.removeprefix("dataset=") for text in texts], {**places, "config_dir": config_dir}


def _each(
    names: Sequence[str], places: Places, action: Callable[[_Card, Places], _Described], out: Path | None = None
) -> int:
    """Describes each data set; the exit code is 0, or that of the first error."""
    from gpbench.data import cards

    names, places = _resolve(names, places)
    fault = f"--out {out}: one file for {len(names)} data sets; leave it out, or name one data set"
    require(not out or len(names) == 1, fault, ConfigError)
    rows, code = [], 0
    for name in names:
        try:
            row, text = action(cards.read(name, places["config_dir"]), places)
        except GpbenchError as error:
            if len(names) == 1:
                raise
            # an unavailable data set does not stop the others
            row, text, code = {"name": name, "error": str(error)}, "", code or error.exit_code
            log.error(" ".join(str(error).split()))
        code = code or (DataError.exit_code if row.get("bad") else 0)
        rows.append(row)
        if text and not places["json"]:
            lines = (piece for line in text.split("\n") for piece in fitted(printable(line), width()))
            print("\n".join(lines), flush=True)
    if places["json"]:
        print_json(rows)
    return code


def _loaded(card: _Card, places: Places, **options: Any) -> Any:
    from gpbench.data.sources import load

    return load(card, config_dirs=places["config_dir"], mirror=places["mirror"], store=places["store"], **options)


def _summary(card: _Card, places: Places) -> dict:
    stored = _stored(card, places)
    size = {"rows": card.get("rows"), "inputs": card.get("inputs"), "outputs": card.get("outputs", 1)}
    facts = {"name": card["name"], "task": card["task"], **size, "splits": split_sets(card)}
    return {**facts, "title": card.get("title", ""), "stored": str(stored) if stored and stored.is_file() else None}


def _stored(card: _Card, places: Places) -> Path | None:
    from gpbench.data import store

    return store.path(card, places["store"] or paths.store_dir())


def _ls(card: _Card, places: Places) -> _Described:
    row = _summary(card, places)
    splits = ", ".join(f"{name} {count}" for name, count in row["splits"].items())
    size = f"{row['rows'] or '?'} x {row['inputs'] or '?'}"
    mark = "stored" if row["stored"] else ""
    facts = f"{row['name']:<16} {row['task']:<11} {size:>13}  {splits:<24} {mark:<7}"
    is_long = len(f"{facts} {row['title']}") > (width() or math.inf)
    return row, f"{facts.rstrip()}\n{'':<16} {row['title']}" if is_long else f"{facts} {row['title']}"


def _plain(value) -> str:
    return ", ".join(f"{key}: {item}" for key, item in value.items()) if isinstance(value, Mapping) else str(value)
