"""`gpbench collect`: the records of several results folders, also from several machines, in one Parquet file."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench import paths
from gpbench.errors import ConfigError
from gpbench.report import text

_ROUNDING = 1e-6
"""Relative: by less do the numbers of one run differ from machine to machine."""


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "collect",
        help="records of several folders in one Parquet file",
        description="Gather the records of results folders, or of Parquet files made before, in one Parquet file: a row"
        " for each run, a column for each field.  A run that several of them have is taken from the one that made it"
        " first.  Wherever --results names a folder it may name such a file, but traces are not in it.",
        epilog="example: gpbench collect results here/results there/results --out all.parquet",
    )
    parser.add_argument("results", nargs="*", type=Path, metavar="DIR", help="default: the results folder")
    parser.add_argument("--out", type=Path, default=Path("records.parquet"), metavar="FILE",
                        help="default: records.parquet")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run the verb; the exit code.  Raises ConfigError where there is nothing to collect, and StorageError."""
    from gpbench.records import collected

    if args.out.suffix != collected.SUFFIX:
        raise ConfigError(f"--out {args.out}: the name must end in {collected.SUFFIX}")
    found, counts = [], []
    for folder in args.results or [paths.results_dir()]:
        if not folder.exists():
            raise ConfigError(f"{folder}: no such folder")
        store = collected.open_store(folder)
        records = store.all()
        counts.append({"results": str(folder), "records": len(records)})
        found += [(record, store.config_text(record["id"])) for record in records]
    if not found:
        raise ConfigError("no runs there yet; make one with `gpbench run`")
    chosen, differing = _merged(found)
    collected.write(args.out, chosen)
    if args.json:
        told = {"out": str(args.out), "records": len(chosen), "from": counts, "differing": differing}
        text.as_json(told)
        return 0
    for count in counts:
        print(f"{count['records']:>8,}  {count['results']}")
    print(f"{len(chosen):>8,}  different runs in {args.out}")
    if differing:
        some = ", ".join(differing[:5]) + (", ..." if len(differing) > 5 else "")
        print(f"{len(differing)} of them were made more than once, with numbers that differ beyond rounding: {some}")
    return 0


def _merged(found: Sequence[tuple[Mapping, str]]) -> tuple[list[tuple[Mapping, str]], list[str]]:
    """One of each id, the one made first, in order of their making; and the ids whose numbers differ."""
    chosen: dict[str, tuple[Mapping, str]] = {}
    differing: dict[str, None] = {}
    for record, config in sorted(found, key=lambda pair: (pair[0].get("created") or "", pair[0]["id"])):
        first, _ = chosen.setdefault(record["id"], (record, config))
        if not _same(first, record):
            differing[record["id"]] = None
    return list(chosen.values()), list(differing)


def _same(a: Mapping, b: Mapping) -> bool:
    if (a["status"], a["metrics"].keys()) != (b["status"], b["metrics"].keys()):
        return False
    pairs = [(value, b["metrics"][name]) for name, value in a["metrics"].items()]
    return all(x == y or (None not in (x, y) and abs(x - y) <= _ROUNDING * max(abs(x), abs(y))) for x, y in pairs)
