"""The papers' tables and figures as data: which runs each is made of, and how it is laid out.  No JAX.
`experiment/PAPER/NAME.yaml` has a `title`, the `runs`, and a `table`, a `figure` or `figures`, or both.  `runs` are
blocks of configuration keys; a key has one value, a list of values (one job for each), or a value or list for each
preset.  `runs_of` names another experiment whose runs it has, those that `where` selects.  See
docs/reference/experiments.md."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from gpbench import paths, yamls
from gpbench.errors import ConfigError, as_word, nearest, require, require_known
from gpbench.experiments import layout
from gpbench.keys import MAPPING, MAPPING_OF_MAPPINGS, MAPPINGS, TEXT, Keys, mapping, optional, required

PRESETS = ("quick", "full")

FACTS = ("names", "data", "splits", "kernel", "settings", "budget", "cores", "marks", "paper")
"""What a file may say of its runs: names of columns, data, splits, kernel, settings, steps, how far another number of
cores moves them, which runs the marks leave out, and what the paper has."""

_KEYS = Keys(
    {
        "title": required("text"),
        "runs": required(MAPPINGS),
        "paper": optional(TEXT),
        **dict.fromkeys(("runs_of", "table", "figure", "figures"), optional()),
        **dict.fromkeys(("presets", "facts", "all", "where"), optional(MAPPING)),
        "labels": optional(MAPPING_OF_MAPPINGS),
    }
)


@dataclass(frozen=True)
class Experiment:
    """A table, figures, or both, of the same runs.  `blocks` are the runs as the file has them.  `facts` says what each
    preset is, by those of the names FACTS that the file has, and `presets` the same in one line.  `figures` has the
    options of each figure by its name; `figure` has those of the only one, or of the one that `pictures` selects."""

    id: str
    title: str
    paper: str
    blocks: Sequence[Mapping[str, Any]]
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
        return [job for block in self.blocks for job in _jobs(block, preset)]

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
    """The experiment of this id, ours or one in the folder `experiment` of `config_dirs`.  `readers` are those
    experiments whose `same` or `runs_of` led here.  Raises ConfigError for an unknown id, for a file that is none, and
    for experiments that name each other."""
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
    if "runs" in content:
        _refuse(path, "give `runs` or `runs_of`, not both")
    condition = mapping(content.get("where"), f"{path}: `where`")
    known = dict.fromkeys(key for block in other.blocks for key in block)
    if unknown := [str(key) for key in condition if key not in known]:
        hint = nearest(unknown[0], known)
        _refuse(path, f"where: no run of {other.id} has the key {unknown[0]!r}; {hint}")
    runs = [block for block in (_selected(block, condition) for block in other.blocks) if block]
    if not runs:
        _refuse(path, f"no run of {other.id} has {', '.join(f'{k}={v}' for k, v in condition.items())}")
    own = content.get("labels") or {}
    MAPPING_OF_MAPPINGS.check(f"{path}: labels", own)
    labels = {key: {**other.labels.get(key, {}), **(own.get(key) or {})} for key in {**other.labels, **own}}
    return {"paper": other.paper, "presets": other.facts, **content, "runs": runs, "labels": labels}


def _selected(block: Mapping[str, Any], condition: Mapping[str, Any]) -> dict[str, Any]:
    """The block with those values of the condition's keys that it names; {} where none is left."""
    selected = dict(block)
    for key, values_of_key in condition.items():
        accepted = values_of_key if isinstance(values_of_key, list) else [values_of_key]
        by_preset = block[key] if isinstance(block.get(key), dict) else dict.fromkeys(PRESETS, block.get(key))
        lists = {
            preset: [v for v in (values if isinstance(values, list) else [values]) if v in accepted]
            for preset, values in by_preset.items()
        }
        if not any(lists.values()):
            return {}
        selected[key] = lists
    return selected


def _experiment(id: str, content: Any, path: Path) -> Experiment:
    content = _KEYS.check(content, f"{path}: the experiment")
    if not (content.get("table") or content.get("figure") or content.get("figures")):
        _refuse(path, "say what is made of the runs, a table or a figure")
    if content.get("figure") and content.get("figures"):
        _refuse(path, "put `figure` among `figures`, under a name")
    blocks = [{**(content.get("all") or {}), **block} for block in content["runs"]]
    for key, value in ((key, value) for block in blocks for key, value in block.items()):
        if not isinstance(key, str):
            _refuse(path, f"runs: {as_word(key)} is no key of a run: write a text such as `dataset`")
        if isinstance(value, dict) and set(value) != set(PRESETS):
            _refuse(path, f"{key} needs a value for each of {' and '.join(PRESETS)}, and no other")
    layout.check(path, content, blocks)
    labels = {
        key: {text(value): str(label) for value, label in (names or {}).items()}
        for key, names in (content.get("labels") or {}).items()
    }
    facts = _facts(content, path)
    fact = lambda name, words: words if name in ("names", "settings") else f"{name}: {words}"
    return Experiment(
        id=id,
        title=content["title"],
        paper=content.get("paper") or "",
        blocks=blocks,
        presets={preset: "; ".join(itertools.starmap(fact, words.items())) for preset, words in facts.items()},
        facts=facts,
        labels=labels,
        table=content.get("table") or {},
        figure=content.get("figure") or {},
        figures=content.get("figures") or {},
    )


def _refuse(path: Path, fault: str) -> NoReturn:
    raise ConfigError(f"{path}: {fault}")


def _facts(content: Mapping[str, Any], path: Path) -> dict[str, dict[str, str]]:
    """What the file says of each preset: `facts` for all presets, and those of the preset; a text is its settings."""
    shared = content.get("facts") or {}
    facts = {}
    for preset, words in (content.get("presets") or {}).items():
        own = words if isinstance(words, dict) else {"settings": words}
        if unknown := [str(name) for name in {**shared, **own} if name not in FACTS]:
            _refuse(path, f"presets: {unknown[0]!r} is not a fact of runs; {nearest(unknown[0], FACTS)}")
        facts[str(preset)] = {name: str({**shared, **own}[name]) for name in FACTS if name in {**shared, **own}}
    return facts


def _jobs(block: Mapping[str, Any], preset: str) -> Iterator[dict[str, str]]:
    values_of = {key: value[preset] if isinstance(value, dict) else value for key, value in block.items()}
    lists = [value if isinstance(value, list) else [value] for value in values_of.values()]
    for values in itertools.product(*lists):
        yield dict(zip(values_of, map(text, values)))


def text(value: Any) -> str:
    """A value as Hydra reads it back: true, null, 0.15, [0,1]; a text is taken as it is."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
