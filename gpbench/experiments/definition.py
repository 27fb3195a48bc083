"""The papers' tables and figures as data: which runs each is made of, and how it is laid out.  No JAX.
`experiment/PAPER/NAME.yaml` has a `title`, the `runs`, and a `table`, a `figure` or `figures`, or both.  `runs` are
blocks of configuration keys; a key has one value, a list of values (one job for each), or a value or list for each
preset.  `runs_of` names another experiment whose runs it has, those that `where` selects.  See
docs/reference/experiments.md."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpbench import paths, yamls
from gpbench.errors import ConfigError, as_word, require, require_known
from gpbench.experiments import layout
from gpbench.experiments.layout import entries
from gpbench.schema import MAPPING, MAPPING_OF_MAPPINGS, MAPPINGS, TEXT, Keys, mapping, optional, required

PRESETS = ("quick", "full")

FACTS = ("names", "data", "splits", "kernel", "settings", "budget", "cores", "marks", "paper")
"""What a file may say of its runs: names of columns, data, splits, kernel, settings, steps, how far another number of
cores moves them, which runs the marks leave out, and what the paper has."""

_BARE = re.compile(r"(?<![\w.=-])\d[\d.,]*(?![\w-])|[{}]")  # a number of no name, such as m=15%, dgp-2 or 8-bit
KEYS = Keys(
    {
        "title": required("text"),
        "runs": required(MAPPINGS),
        **dict.fromkeys(("paper", "answer"), optional(TEXT)),
        **dict.fromkeys(("runs_of", "table", "figure", "figures"), optional()),
        **dict.fromkeys(("presets", "facts", "all", "where"), optional(MAPPING)),
        "labels": optional(MAPPING_OF_MAPPINGS),
    }
)


@dataclass(frozen=True)
class Experiment:
    """A table, figures, or both, of the same `blocks` of runs.  `facts` says what each preset is, and `presets` the
    same in one line; `figures` has options by name, `figure` those of the only one, or of one of `pictures`."""

    id: str
    title: str
    paper: str
    blocks: Sequence[Mapping[str, Any]]
    answer: str = ""  # sentences on what the table says (`gpbench.analysis.agreement`)
    presets: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    table: Mapping[str, Any] = field(default_factory=dict)
    figure: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def pictures(self) -> "dict[str, Experiment]":
        """The experiment once for each of its figures, as its `figure`, by name; the name of an only one is ""."""
        if self.figure:
            return {"": self}
        return {
            name: replace(self, title=options.get("title", self.title), figure=options, figures={})
            for name, options in self.figures.items()
        }

    def jobs(self, preset: str) -> list[dict[str, str]]:
        """Every job of a preset: its configuration keys, with their values as on a command line."""
        jobs: list[dict[str, str]] = []
        for block in self.blocks:
            of_preset = {key: value[preset] if isinstance(value, dict) else value for key, value in block.items()}
            combinations = itertools.product(*map(entries, of_preset.values()))
            jobs += [dict(zip(of_preset, map(text, values))) for values in combinations]
        return jobs

    def label(self, key: str, value: str) -> str:
        """Name of a value of a key in tables and figures."""
        return self.labels.get(key, {}).get(value, value)

    def labels_of(self, keys: str | Sequence[str], job: Mapping[str, str]) -> list[str]:
        """The labels of a job's values of those of these keys that it has, without empty ones."""
        names = [keys] if isinstance(keys, str) else keys
        return [label for key in names if key in job and (label := self.label(key, job[key]))]


def overrides(job: Mapping[str, str]) -> list[str]:
    """A job as words of `gpbench run`."""
    return [f"{key}={value}" for key, value in job.items()]


def names(config_dirs: Sequence[Path] = ()) -> list[str]:
    """Every experiment's id, sorted."""
    return list(paths.yaml_files("experiment", config_dirs))


def read(id: str, config_dirs: Sequence[Path] = (), *, readers: Sequence[str] = ()) -> Experiment:
    """The experiment of this id; `readers` are those whose `same` or `runs_of` led here."""
    circle = " -> ".join([*readers, id])
    fault = f"{circle}: an experiment cannot have its own runs by `runs_of` or `same`"
    require(id not in readers, fault, ConfigError)
    files = paths.yaml_files("experiment", config_dirs)
    require_known(id, files, f"no experiment {id!r}")
    content = yamls.read(files[id])
    if isinstance(content, dict) and "same" in content:
        return read(str(content["same"]), config_dirs, readers=[*readers, id])
    if isinstance(content, dict) and "runs_of" in content:
        other = read(str(content["runs_of"]), config_dirs, readers=[*readers, id])
        content = _with_runs_of(other, content, files[id])
    return _experiment(id, content, files[id])


def _with_runs_of(other: Experiment, content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The content with those runs of another experiment that it selects, and with that one's labels beside its own."""
    require("runs" not in content, f"{path}: give `runs` or `runs_of`, not both", ConfigError)
    condition = mapping(content.get("where"), f"{path}: `where`")
    known = dict.fromkeys(key for block in other.blocks for key in block)
    for key in condition:
        require_known(str(key), known, f"{path}: where: no run of {other.id} has the key {str(key)!r}")
    runs = [block for block in (_selected(block, condition) for block in other.blocks) if block]
    words = ", ".join(f"{key}={value}" for key, value in condition.items())
    require(runs, f"{path}: no run of {other.id} has {words}", ConfigError)
    own = content.get("labels") or {}
    MAPPING_OF_MAPPINGS.check(f"{path}: labels", own)
    labels = {key: {**other.labels.get(key, {}), **(own.get(key) or {})} for key in {**other.labels, **own}}
    return {"paper": other.paper, "presets": other.facts, **content, "runs": runs, "labels": labels}


def _selected(block: Mapping[str, Any], condition: Mapping[str, Any]) -> dict[str, Any]:
    """The block with those values of the condition's keys that it names; {} where none is left."""
    selected = dict(block)
    for key, accepted in condition.items():
        by_preset = block[key] if isinstance(block.get(key), dict) else dict.fromkeys(PRESETS, block.get(key))
        lists = {p: [v for v in entries(values) if v in entries(accepted)] for p, values in by_preset.items()}
        if not any(lists.values()):
            return {}
        selected[key] = lists
    return selected


def _experiment(id: str, content: Any, path: Path) -> Experiment:
    content = KEYS.check(content, f"{path}: the experiment")
    demand = lambda is_right, fault: require(is_right, f"{path}: {fault}", ConfigError)
    table, figure, figures = (content.get(name) or {} for name in ("table", "figure", "figures"))
    demand(table or figure or figures, "say what is made of the runs, a table or a figure")
    demand(table or not content.get("answer"), "answer: its numbers are those of a table, and there is none")
    bare = _BARE.search(re.sub(r"\{[^{}]*\}", "", content.get("answer") or ""))
    demand(not bare, f"answer: {bare and bare[0]}: write a number as the {{CONDITIONS}} of its rows")
    demand(not (figure and figures), "put `figure` among `figures`, under a name")
    blocks = [{**(content.get("all") or {}), **block} for block in content["runs"]]
    for key, value in ((key, value) for block in blocks for key, value in block.items()):
        demand(isinstance(key, str), f"runs: {as_word(key)} is no key of a run: write a text such as `dataset`")
        is_whole = not isinstance(value, dict) or {*value} == {*PRESETS}
        demand(is_whole, f"{key} needs a value for each of {' and '.join(PRESETS)}, and no other")
    layout.check(path, content, blocks)
    labels = {
        key: {text(value): str(label) for value, label in (names or {}).items()}
        for key, names in (content.get("labels") or {}).items()
    }
    shared, facts = content.get("facts") or {}, {}
    for preset, words in (content.get("presets") or {}).items():
        known = {**shared, **(words if isinstance(words, dict) else {"settings": words})}
        for name in known:
            require_known(str(name), FACTS, f"{path}: presets: {str(name)!r} is not a fact of runs")
        facts[str(preset)] = {name: str(known[name]) for name in FACTS if name in known}
    fact = lambda name, words: words if name in ("names", "settings") else f"{name}: {words}"
    return Experiment(
        id=id,
        title=content["title"],
        **{name: " ".join((content.get(name) or "").split()) for name in ("paper", "answer")},
        blocks=blocks,
        presets={preset: "; ".join(itertools.starmap(fact, words.items())) for preset, words in facts.items()},
        facts=facts,
        labels=labels,
        table=table,
        figure=figure,
        figures=figures,
    )


def text(value: Any) -> str:
    """A value as Hydra reads it back: true, null, 0.15, [0,1]; a text is taken as it is."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
