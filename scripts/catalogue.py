"""The reference pages of data sets and of experiments, made from files in conf/ for scripts/settings.py."""

import re
import textwrap
from itertools import groupby
from typing import Any
from urllib.parse import urlparse

from gpbench.data import cards
from gpbench.experiments import definition

_PATHS = {"github.com", "raw.githubusercontent.com", "media.githubusercontent.com"}


def data_sets() -> str:
    """The page of data sets: a table of all, then the peculiarities, licence and source of each."""
    lines = [
        "# Data sets",
        "",
        "`scripts/settings.py` makes this page from the cards in `conf/dataset`; `gpbench data info NAME` prints one.",
        "[Data](data.md) explains split sets, checksums and variants.  Sizes are after preparation.",
        "",
        "| name | task | suite | rows | inputs | targets | split sets | from |",
        "|---|---|---|---:|---:|---|---|---|",
    ]
    every = {name: cards.read(name) for name in cards.names()}
    for name, card in every.items():
        splits = ", ".join(f"{kind} {number}" for kind, number in card["splits"]["sets"].items())
        rows = f"{card['rows']:,}" if card["rows"] else "not fixed"
        cells = [f"[{name}](#{name})", card["task"], card.get("suite") or "", rows, card["inputs"]]
        cells += [_targets(card), splits]
        lines.append(f"| {' | '.join(map(str, cells))} | {', '.join(_origins(card))} |")
    for name, card in every.items():
        target = f"  Target: {card['target']}." if card.get("target") else ""
        lines += ["", f"## {name}", "", f"{card['title']}.{target}", ""]
        lines += [f"- {oddity}" for oddity in card.get("oddities", [])]
        lines += [f"- licence: {card['licence']}", f"- source: {card['cite']}"]
        if card.get("family") not in (None, name):
            lines.append(f"- family: {card['family']}")
    return "\n".join(lines) + "\n"


def _targets(card: dict[str, Any]) -> str:
    if card["task"] == "regression":
        return f"{card['outputs']} outputs" if card.get("outputs", 1) > 1 else "1 output"
    if card["task"] == "count":
        return "counts"
    return f"{len(card['counts'])} classes" if "counts" in card else "classes"


def _origins(card: dict[str, Any]) -> list[str]:
    """Where the sources of a card come from: hosts, owner and name of a repository, or the kind of the source."""
    found = []
    for source in card["sources"]:
        url = urlparse(source.get("at") or "")
        host = url.hostname or {"mirror": "a mirror", "file": "a script"}.get(source["kind"], source["kind"])
        found.append("/".join(url.path.split("/")[1:3]) if host in _PATHS else host)
    return list(dict.fromkeys(found))


def experiments() -> str:
    """The page of experiments: by paper, what each shows, and what its presets run."""
    lines = [
        "# List of experiments",
        "",
        "`scripts/settings.py` makes this page from the files in `conf/experiment`.  `gpbench reproduce ID` runs an",
        "experiment; [experiments](experiments.md) explains presets, tables and figures.",
    ]
    for paper, ids in groupby(definition.names(), key=lambda id: id.partition("/")[0]):
        lines += ["", f"## {paper}"]
        for id in ids:
            experiment = definition.read(id)
            lines += ["", f"### {id}", "", _wrapped(f"{experiment.title.rstrip('.')}."), ""]
            for preset, text in experiment.presets.items():
                lines += [f"- `{preset}`", *(_wrapped(piece, "    ") for piece in _pieces(text))]
    return "\n".join(lines) + "\n"


def _pieces(text: str) -> list[str]:
    """The parts of a text between semicolons, but for those in parentheses, as items of a list."""
    return [f"    - {piece}" for piece in re.split(r"; (?![^(]*\))", text)]


def _wrapped(text: str, indent: str = "") -> str:
    """The text in lines of at most 120 characters."""
    indent += "  " * bool(indent)
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
