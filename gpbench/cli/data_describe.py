"""The actions `info` and `check` of `gpbench data`: a data set described by its card, and by its rows."""

import argparse
from collections.abc import Mapping

from gpbench.errors import DataError, listed


def info(card: Mapping, summary: Mapping, args: argparse.Namespace) -> tuple[dict, str]:
    """Describes a data set by its card; the names of a user's inputs are those of the table.  Returns the description
    as plain data and as text.
    """
    from gpbench.data.sources import describe

    names, target = _names(card, args)
    sources = [describe(source) for source in card["sources"]]
    row = {**card, **summary, "sources": sources, "input_names": names, "target_name": target}
    inputs = f"{row['inputs'] or len(names)}" + f": {listed(names)}" * bool(names)
    values = {**row, "inputs": inputs if inputs != "0" else None, "target": row.get("target") or target}
    keys = ["title", "task", "rows", "inputs", "outputs", "target", "counts", "licence", "cite", "published"]
    lines = [(key, values[key]) for key in (*keys, "checksum") if values.get(key) not in (None, "")]
    lines += [("splits", row["splits"])] + [("source", source) for source in sources]
    lines += [("oddity", oddity) for oddity in card.get("oddities") or []] + [("stored", row["stored"] or "no")]
    return row, "\n".join([card["name"], *(f"  {key:<9} {_plain(value)}" for key, value in lines)])


def _names(card: Mapping, args: argparse.Namespace) -> tuple[list[str], str | None]:
    """Names of the inputs, and of the target, as far as the card or a table of the user's says them."""
    if all(source["kind"] != "file" for source in card["sources"]):
        return [*map(str, card.get("columns") or [])], None
    from gpbench.data.sources import load

    try:
        dataset = load(card, config_dirs=args.config_dir, mirror=args.mirror, store=args.store, offline=True)
    except DataError:  # `check` says what is wrong
        return [*map(str, card.get("columns") or [])], None
    return [*dataset.columns], listed(dataset.outputs or [dataset.target])


def _plain(value) -> str:
    return ", ".join(f"{key}: {item}" for key, item in value.items()) if isinstance(value, Mapping) else str(value)


def check(card: Mapping, args: argparse.Namespace) -> tuple[dict, str]:
    """Describes the rows of a data set, and what is doubtful in them.  Returns the report as plain data and as text, in
    which each finding is a line.  Raises DataError, ConfigError: The card cannot be used.
    """
    from gpbench.data.checks import check
    from gpbench.data.sources import load

    dataset = load(card, config_dirs=args.config_dir, mirror=args.mirror, store=args.store, quiet=True)
    report = check(card, dataset)
    return report.to_json(), str(report)
