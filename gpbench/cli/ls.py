"""`gpbench ls`: the methods, data sets, protocols and experiments that can be run, and the runs that were."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gpbench import paths, plugins
from gpbench.records import filters
from gpbench.records.collected import open_store
from gpbench.report import text
from gpbench.report.cells import natural

KINDS = {"methods": "method", "datasets": "dataset", "protocols": "protocol", "experiments": "experiment", "runs": ""}


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "ls",
        help="methods, data sets, protocols, experiments, runs",
        description="List what can be run, or what was.",
        epilog="examples: gpbench ls runs --dataset pima --status diverged; gpbench ls runs --where 'seconds.train>60'",
    )
    parser.add_argument("kind", choices=KINDS, help="what to list")
    parser.add_argument("--config-dir", action="append", default=[], type=Path, metavar="DIR",
                        help="a folder with your own dataset/, method/, protocol/ files")  # fmt: skip
    for field in ("dataset", "method", "protocol", "status"):
        parser.add_argument(f"--{field}", metavar="A,B", help=f"runs only: of these {field} values")
    parser.add_argument("--where", action="append", default=[], metavar="FIELD=A,B",
                        help="runs only: of these values of any field, or FIELD<NUMBER, FIELD>NUMBER, as in"
                        " metrics.nll<0.4; may be repeated")  # fmt: skip
    parser.add_argument("--results", type=Path, default=None, metavar="DIR", help="the results folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run the verb; the exit code.  Raises ConfigError for a card that is no card."""
    if args.kind == "runs":
        flags = [f"{name}={value}" for name in ("dataset", "method", "protocol", "status")
                 if (value := getattr(args, name))]  # fmt: skip
        records = filters.matching(open_store(args.results or paths.results_dir()).all(), [*flags, *args.where])
        text.as_json(records) if args.json else text.table(_RUN_HEADER, [_run_row(record) for record in records])
        return 0
    listed = _datasets(args.config_dir) if args.kind == "datasets" else described(KINDS[args.kind], args.config_dir)
    found = list(listed)
    if args.json:
        text.as_json(found)
    elif found:
        text.table(tuple(found[0]), [tuple(str(v if v is not None else "") for v in item.values()) for item in found])
    return 0


_RUN_FIELDS = ("id", "status", "dataset", "method", "setting", "protocol", "split", "seed")
_RUN_HEADER = (*_RUN_FIELDS, "metrics", "train s", "made")


def _run_row(record: dict) -> tuple[str, ...]:
    metrics = ", ".join(f"{name} {text.number(value)}" for name, value in record["metrics"].items())
    made = (record.get("created") or "")[:16].replace("T", " ")
    return (*(str(record[name]) for name in _RUN_FIELDS), metrics, text.number(record["seconds"].get("train")), made)


def _datasets(config_dirs: Sequence[Path]) -> Iterator[dict]:
    from gpbench.data import cards

    for name in sorted(cards.names(config_dirs), key=natural):
        card = cards.read(name, config_dirs)
        yield {"name": name, **{key: card.get(key) for key in ("task", "rows", "inputs", "title")}}


def described(group: str, config_dirs: Sequence[Path]) -> Iterator[dict]:
    """{name, description} of each file of a group, from its first comment line; ours wins over a namesake."""
    found: dict[str, Path] = {}
    for folder in (paths.conf_dir() / group, *(Path(d) / group for d in (*config_dirs, *plugins.folders()))):
        for path in folder.rglob("*.yaml"):
            found.setdefault(path.relative_to(folder).with_suffix("").as_posix(), path)
    for name in sorted(found, key=natural):
        yield {"name": name, "description": _first_comment(found[name])}


def _first_comment(path: Path) -> str:
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("#") and not line.startswith("# @package"):
                return line.lstrip("# ").strip()
    return ""
