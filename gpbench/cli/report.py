"""`gpbench report`: one static site of all that is recorded, beside what the papers printed."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench.errors import GpbenchError

if TYPE_CHECKING:
    from gpbench.report.site import Planned


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "report",
        help="a static site of all that is recorded",
        description="Make a static site that opens from disk: a page for each paper, experiment, data set, method and"
        " cell, from the records that are there.",
        epilog="example: gpbench report --out site",
    )
    parser.add_argument("--out", type=Path, default=None, metavar="DIR", help="default: site/ in the results folder")
    parser.add_argument("--config-dir", action="append", default=[], type=Path, metavar="DIR",
                        help="a folder with your own experiment/, dataset/, method/ files")  # fmt: skip
    parser.add_argument("--results", type=Path, action="append", metavar="DIR",
                        help="the results folder; may be repeated")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON: where, how many files, bytes and records")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run the verb; the exit code.  Raises ConfigError where nothing is recorded, or --out is somebody else's."""
    from gpbench.cli.ls import described
    from gpbench.cli.selection import gathered, newest, stores
    from gpbench.data import cards
    from gpbench.report import site, text

    held = stores(args.results)
    out = args.out or held[0].runs.parent / "site"
    site.check(out)
    records = newest(gathered(held))
    made_at = {record["id"]: record.get("created") for record in records}
    store_of = {r["id"]: store for store in held for r in store.all() if r.get("created") == made_at[r["id"]]}
    config_dirs = [folder.expanduser().resolve() for folder in args.config_dir]
    facts = site.Facts(
        records=records,
        planned=list(_planned(records, config_dirs)),
        cards={name: cards.read(name, config_dirs) for name in cards.names(config_dirs)},
        methods={item["name"]: item["description"] for item in described("method", config_dirs)},
        trace=lambda id: store_of[id].trace(id),
        config=lambda id: store_of[id].config(id),
    )
    made = site.put(out, site.pages(facts))
    size = sum(file.stat().st_size for file in made)
    start = out / "index.html"
    if args.json:
        text.as_json({"start": str(start), "files": len(made), "bytes": size, "records": len(records)})
    else:
        print(f"{start}: {len(made)} files, {size / 1e6:.1f} MB, of {len(records)} runs")
    return 0


def _planned(records: Sequence[dict], config_dirs: Sequence[Path]) -> "Iterator[Planned]":
    """Every experiment in every preset with its records; one that cannot be planned says why."""
    from gpbench.experiments import definition, plan
    from gpbench.report.site import Planned

    ours, by_id = definition.names(), {record["id"]: record for record in records}
    for id in definition.names(config_dirs):
        experiment = definition.read(id, config_dirs)
        folders = () if id in ours else config_dirs  # what the jobs of ours come to is kept from call to call
        for preset in definition.PRESETS:
            try:
                yield Planned(experiment, preset, plan.plan(experiment, preset, folders, by_id))
            except GpbenchError as error:
                yield Planned(experiment, preset, problem=str(error))
