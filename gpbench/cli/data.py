"""`gpbench data ls|fetch|verify|info`: what data there are, getting them, checking them.

`ls` and `info` answer from the cards alone and read no data.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from gpbench import paths
from gpbench.errors import ConfigError, DataError, GpbenchError, StorageError


def add_parser(subparsers) -> None:
    """Adds the verb and its four actions."""
    verb = subparsers.add_parser("data", help="list, fetch, verify and describe data sets", description=__doc__)
    actions = verb.add_subparsers(dest="action", required=True, metavar="ls|fetch|verify|info")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON")
    common.add_argument("--mirror", type=Path, help="folder of data files (default: GPBENCH_MIRROR)")
    common.add_argument("--store", type=Path, help="local store (default: GPBENCH_STORE, or datasets/)")
    common.add_argument("--config-dir", action="append", default=[], help="folder with cards of your own in dataset/")
    for action, text in {
        "ls": "one line per data set",
        "fetch": "get data sets into the store",
        "verify": "check store, mirror and built-in data against the cards' checksums",
        "info": "all that the card says",
    }.items():
        parser = actions.add_parser(action, help=text, description=text, parents=[common])
        if action != "ls":
            parser.add_argument("names", nargs="+", metavar="NAME|all")
        if action == "fetch":
            parser.add_argument("--offline", action="store_true", help="ask no address")
            parser.add_argument("--again", action="store_true", help="even if the store has it")
        parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs one action; the exit code is 0, or that of the first error met."""
    from gpbench.data import cards

    wanted = getattr(args, "names", ["all"])
    names = cards.names(args.config_dir) if wanted == ["all"] else wanted
    action = {"ls": _ls, "fetch": _fetch, "verify": _verify, "info": _info}[args.action]
    rows, code = [], 0
    for name in names:
        try:
            row, text = action(cards.read(name, args.config_dir), args)
        except GpbenchError as error:
            if len(names) == 1:
                raise
            # one data set that cannot be had must not keep the others from being fetched
            row, text, code = {"name": name, "error": str(error)}, "", code or error.exit_code
            print(f"gpbench: {error}", file=sys.stderr)
        code = code or (DataError.exit_code if row.get("bad") else 0)
        rows.append(row)
        if text and not args.json:
            print(text, flush=True)
    if args.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    return code


def _summary(card: Mapping, args: argparse.Namespace) -> dict:
    stored = _stored(card, args)
    return {
        "name": card["name"],
        "task": card["task"],
        "rows": card.get("rows"),
        "inputs": card.get("inputs"),
        "outputs": card.get("outputs", 1),
        "splits": (card.get("splits") or {}).get("sets", {"random90": 20}),
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
    return row, f"{row['name']:<16} {row['task']:<11} {size:>12}  {splits:<24} {mark:<7} {row['title']}"


def _info(card: Mapping, args: argparse.Namespace) -> tuple[dict, str]:
    from gpbench.data.sources import place

    sources = [place(source) for source in card["sources"]]
    row = {**card, **_summary(card, args), "sources": sources}
    keys = ["title", "task", "rows", "inputs", "outputs", "target", "counts", "licence", "cite", "published"]
    lines = [(key, row[key]) for key in (*keys, "checksum") if row.get(key) not in (None, "")]
    lines += [("splits", row["splits"])] + [("source", source) for source in sources]
    lines += [("oddity", oddity) for oddity in card.get("oddities", [])] + [("stored", row["stored"] or "no")]
    return row, "\n".join([card["name"], *(f"  {key:<9} {_plain(value)}" for key, value in lines)])


def _plain(value) -> str:
    return ", ".join(f"{key}: {item}" for key, item in value.items()) if isinstance(value, Mapping) else str(value)


def _fetch(card: Mapping, args: argparse.Namespace) -> tuple[dict, str]:
    from gpbench.data import load

    options = {"mirror": args.mirror, "store": args.store, "offline": args.offline, "again": args.again}
    dataset = load(card, config_dirs=args.config_dir, **options)
    stored = _stored(card, args)
    if stored and not stored.is_file():
        raise StorageError(f"{card['name']} could not be kept in {stored.parent}")
    row = {"name": card["name"], "rows": len(dataset.y), "checksum": dataset.checksum, "stored": stored and str(stored)}
    return row, f"{card['name']:<16} {stored or 'a file without a checksum in the card, so not stored'}"


def _verify(card: Mapping, args: argparse.Namespace) -> tuple[dict, str]:
    """Everything that needs no download.  The checksum found is printed, also for a card that has none yet."""
    from gpbench.data import sources, store
    from gpbench.data.dataset import checksum
    from gpbench.data.files import Absent

    folder, mirror = args.store or paths.store_dir(), args.mirror or paths.mirror_dir()
    folders = sources.folders(args.config_dir, folder)
    places: dict = {f"store {folder}": partial(store.get, card, folder)}
    for source in card["sources"]:
        if source["kind"] not in ("official", "copy"):
            places[sources.place(source)] = partial(sources.obtain, card, source, mirror=mirror, folders=folders)
    states: dict[str, str] = {}
    found: dict[str, str] = {}
    bad: list[str] = []
    for place, get in places.items():
        try:
            dataset = get()
            state = "absent" if dataset is None else "right" if card.get("checksum") else "no checksum in the card"
        except Absent:
            dataset, state = None, "absent"
        except (DataError, ConfigError) as error:
            dataset, state = None, str(error)
            bad.append(place)
        if dataset:
            found["checksum"] = dataset.checksum
            found |= {"folds_checksum": checksum(dataset.folds)} if dataset.folds else {}
        states[place] = state
    lines = [f"{card['name']:<16} {key}: {value}" for key, value in {**states, **found}.items()]
    return {"name": card["name"], "places": states, **found, "bad": bad}, "\n".join(lines)
