"""`gpbench data ls|info|check|fetch|verify|rows|probe`: lists, describes, checks, fetches and exports data sets.

`ls` reads cards only; `info` takes the names of inputs from data that are here.
"""

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gpbench import outputs, paths
from gpbench.analysis.printing import fitted, print_json, width
from gpbench.api.words import folders, with_cards
from gpbench.cli import data_describe
from gpbench.config.cards import split_sets
from gpbench.errors import ConfigError, DataError, GpbenchError, StorageError, printable


def add_parser(subparsers) -> None:
    """Adds the verb and its actions to the parser."""
    verb = subparsers.add_parser("data", description=__doc__)
    actions = verb.add_subparsers(dest="action", required=True, metavar="ls|info|check|fetch|verify|rows|probe")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON")
    common.add_argument("--mirror", type=Path, help="a folder of data files; default: GPBENCH_MIRROR")
    common.add_argument("--store", type=Path, help="the local store; default: GPBENCH_STORE, or datasets/")
    common.add_argument("--config-dir", action="append", default=[], help="a folder with your own dataset/ cards")
    for action, text in {
        "ls": "one line per data set",
        "fetch": "download data sets into the store",
        "verify": "check store, mirror and built-in data against the checksums of the cards",
        "info": "print all fields of the card, the inputs and the target",
        "check": "describe the rows and name what is doubtful in them: notes, each with how to mend it",
        "rows": "write the rows of a split into a NumPy file: X, y, and the row numbers train and test",
        "probe": "ask every address of the cards whether it still answers: size, redirects, checksums of small files",
    }.items():
        parser = actions.add_parser(action, help=text, description=text, parents=[common])
        if action != "ls":
            text = "data sets, or the path of a table; target=COLUMN after it writes its card"
            parser.add_argument("names", nargs="*" if action == "probe" else "+", metavar="NAME|TABLE|all", help=text)
        if action == "fetch":
            parser.add_argument("--offline", action="store_true", help="do not download")
            parser.add_argument("--again", action="store_true", help="replace what the store has")
        if action == "rows":
            parser.add_argument("--split", type=int, required=True, metavar="K", help="the number of the split")
            parser.add_argument("--set", metavar="NAME", help="the split set; default: the card's")
            text = "default: NAME-K.npz, or NAME-SET-K.npz where SET is not the card's"
            parser.add_argument("--out", type=Path, metavar="FILE", help=text)
        parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs one action and returns the exit code: 0, or that of the first error."""
    from gpbench.data import cards

    args.config_dir = folders(args.config_dir)  # on Python's path, for custom readers

    names = getattr(args, "names", ["all"])
    if names in (["all"], []):
        names = cards.names(args.config_dir)
    else:  # of a table its card, which target=COLUMN writes, as of gpbench run
        texts = [name if name.startswith(("dataset=", "target=")) else f"dataset={name}" for name in names]
        texts, args.config_dir = with_cards(texts, args.config_dir)
        names = [text.removeprefix("dataset=") for text in texts]
        if target := next((name for name in names if name.startswith("target=")), None):
            raise ConfigError(f"{target}: this is for the path of a table, as in a.csv {target}")
    if args.action == "probe":
        return _probe(names, args)
    action = {
        "ls": _ls,
        "fetch": _fetch,
        "verify": _verify,
        "info": _info,
        "check": data_describe.check,
        "rows": _rows,
    }[args.action]
    if getattr(args, "out", None) and len(names) > 1:
        raise ConfigError(f"--out {args.out}: one file for {len(names)} data sets; leave it out, or name one data set")
    rows, code = [], 0
    for name in names:
        try:
            row, text = action(cards.read(name, args.config_dir), args)
        except GpbenchError as error:
            if len(names) == 1:
                raise
            # an unavailable data set does not stop the others
            row, text, code = {"name": name, "error": str(error)}, "", code or error.exit_code
            print(f"gpbench: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        code = code or (DataError.exit_code if row.get("bad") else 0)
        rows.append(row)
        if text and not args.json:
            lines = (piece for line in text.split("\n") for piece in fitted(printable(line), width()))
            print("\n".join(lines), flush=True)
    if args.json:
        print_json(rows)
    return code


def _summary(card: Mapping, args: argparse.Namespace) -> dict:
    stored = _stored(card, args)
    return {
        "name": card["name"],
        "task": card["task"],
        "rows": card.get("rows"),
        "inputs": card.get("inputs"),
        "outputs": card.get("outputs", 1),
        "splits": split_sets(card),
        "title": card.get("title", ""),
        "stored": str(stored) if stored and stored.is_file() else None,
    }


def _stored(card: Mapping, args: argparse.Namespace) -> Path | None:
    from gpbench.data import store

    return store.path(card, args.store or paths.store_dir())


def _ls(card: Mapping, args: argparse.Namespace) -> tuple[dict, str]:
    row = _summary(card, args)
    splits = ", ".join(f"{name} {count}" for name, count in row["splits"].items())
    size = f"{row['rows'] or '?'} x {row['inputs'] or '?'}"
    mark = "stored" if row["stored"] else ""
    facts = f"{row['name']:<16} {row['task']:<11} {size:>13}  {splits:<24} {mark:<7}"
    is_long = len(f"{facts} {row['title']}") > (width() or math.inf)
    return row, f"{facts.rstrip()}\n{'':<16} {row['title']}" if is_long else f"{facts} {row['title']}"


def _info(card: Mapping, args: argparse.Namespace) -> tuple[dict, str]:
    return data_describe.info(card, _summary(card, args), args)


def _fetch(card: Mapping, args: argparse.Namespace) -> tuple[dict, str]:
    from gpbench.data.sources import load

    options = {"mirror": args.mirror, "store": args.store, "offline": args.offline, "again": args.again}
    dataset = load(card, config_dirs=args.config_dir, **options)
    stored = _stored(card, args)
    if stored and not stored.is_file():
        raise StorageError(f"cannot store {card['name']} in {stored.parent}")
    row = {"name": card["name"], "rows": len(dataset.y), "checksum": dataset.checksum, "stored": stored and str(stored)}
    return row, f"{card['name']:<16} {stored or 'not stored: its card has no checksum'}"


def _rows(card: Mapping, args: argparse.Namespace) -> tuple[dict, str]:
    """Writes X (N, D) and y (N,) or (N, O) in original units, classes coded, and the row numbers of the split.

    Raises ConfigError for a file that cannot be made.
    """
    import numpy as np

    from gpbench.cli.options import require_place
    from gpbench.data import splits
    from gpbench.data.sources import load

    default = splits.identity(card)["set"]
    card = splits.with_set(card, args.set)
    split_set = splits.identity(card)["set"]
    splits.split_numbers(card, args.split)
    parts = [card["name"], split_set if split_set != default else "", str(args.split)]
    out = args.out or Path("-".join(filter(None, parts)) + ".npz")
    require_place("--out", out)
    dataset = load(card, config_dirs=args.config_dir, mirror=args.mirror, store=args.store)
    train, test = splits.indices(card, dataset, args.split)
    names: dict[str, Any] = {key: np.array(getattr(dataset, key), str) for key in ("columns", "classes", "outputs")}
    row = {"name": card["name"], "split": args.split, "split_set": split_set}
    names |= {"dataset": np.array(card["name"]), "split": np.array(args.split), "split_set": np.array(split_set)}
    with outputs.output(out) as file:  # NumPy would append .npz to other names
        np.savez_compressed(file, X=dataset.X, y=dataset.y, train=train, test=test, **names)
    row |= {"train": len(train), "test": len(test), "out": str(out)}
    return row, f"{card['name']} split {args.split}: {len(train)} training and {len(test)} test rows in {out}"


def _probe(names: Sequence[str], args: argparse.Namespace) -> int:
    """Prints a line for each file, and those data sets on stderr that no address has.  The exit code is 3 with any."""
    from gpbench.data import cards, probe

    addresses = [address for name in names for address in probe.addresses(cards.read(name, args.config_dir))]
    answers, rows = [], []
    for answer in probe.ask(addresses):
        answers.append(answer)
        address, problem, redirect = answer.address, answer.problem, answer.redirect
        rows.append(
            {
                "name": address.dataset,
                "url": address.url,
                "problem": problem or None,
                "bytes": answer.size,
                "redirect": redirect or None,
                "checksum_compared": answer.compared,
            }
        )
        if not args.json:
            words = [
                problem or "answers",
                "" if answer.size is None else f"{answer.size:,} bytes",
                "checksum right" if answer.compared and not problem else "",
                f"redirects to {redirect}" if redirect else "",
                "" if address.read else "not read by gpbench",
            ]
            print(f"{address.dataset:<16} {address.url}: {', '.join(filter(None, words))}", flush=True)
    unavailable = probe.unavailable(answers)
    if args.json:
        print_json({"files": rows, "unavailable": unavailable})
    if unavailable:
        fault = f"no address answers for {', '.join(unavailable)}; find a copy and add it to the card"
        print(f"gpbench: {fault}", file=sys.stderr)
    return DataError.exit_code if unavailable else 0


def _verify(card: Mapping, args: argparse.Namespace) -> tuple[dict, str]:
    """Verifies all copies that need no download, and prints the checksum, also for a card without one."""
    from gpbench.data import sources, store
    from gpbench.data.dataset import checksum
    from gpbench.data.files import Absent

    folder, mirror = args.store or paths.store_dir(), args.mirror or paths.mirror_dir()
    places = sources.folders(args.config_dir, folder)
    loaders: dict = {f"store {folder}": partial(store.get, card, folder)}
    for source in card["sources"]:
        if source["kind"] not in ("official", "copy"):
            loaders[sources.describe(source)] = partial(sources.obtain, card, source, mirror=mirror, folders=places)
    states: dict[str, str] = {}
    checksums: dict[str, str] = {}
    bad: list[str] = []
    for name, load in loaders.items():
        try:
            dataset = load()
            state = "absent" if dataset is None else "right" if card.get("checksum") else "no checksum in the card"
        except Absent:
            dataset, state = None, "absent"
        except (DataError, ConfigError) as error:
            dataset, state = None, str(error)
            bad.append(name)
        if dataset:
            checksums["checksum"] = dataset.checksum
            checksums |= {"folds_checksum": checksum(dataset.folds)} if dataset.folds else {}
        states[name] = state
    lines = [f"{card['name']:<16} {key}: {value}" for key, value in {**states, **checksums}.items()]
    return {"name": card["name"], "places": states, **checksums, "bad": bad}, "\n".join(lines)
