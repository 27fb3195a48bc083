"""The papers' tables and figures as data: which runs each is made of, and how it is laid out.  No JAX.

`experiment/PAPER/NAME.yaml` has a `title`, the `runs`, and a `table`, a `figure`, or both.  `runs` are blocks of
configuration keys; a key has one value, a list of values (one job for each), or a value or list for each preset.
docs/experiments.md says the rest.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpbench import paths
from gpbench.errors import ConfigError, nearest
from gpbench.experiments import layout

PRESETS = ("quick", "full")
_KEYS = {"title", "paper", "presets", "all", "runs", "labels", "table", "figure", "same"}


@dataclass(frozen=True)
class Experiment:
    """One table or figure.  `blocks` are the runs as the file has them, `presets` says in words what each preset is."""

    id: str
    title: str
    paper: str
    blocks: Sequence[Mapping[str, Any]]
    presets: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    table: Mapping[str, Any] | None = None
    figure: Mapping[str, Any] | None = None

    def jobs(self, preset: str) -> list[dict[str, str]]:
        """Every job of a preset: its configuration keys, with their values as on a command line."""
        return [job for block in self.blocks for job in _jobs(block, preset)]

    def label(self, key: str, value: str) -> str:
        """What a value of a key is called in tables and figures."""
        return self.labels.get(key, {}).get(value, value)


def overrides(job: Mapping[str, str]) -> list[str]:
    """A job as words of `gpbench run`."""
    return [f"{key}={value}" for key, value in job.items()]


def names(config_dirs: Sequence[Path] = ()) -> list[str]:
    """Every experiment's id, sorted."""
    return sorted(_files(config_dirs))


def read(id: str, config_dirs: Sequence[Path] = ()) -> Experiment:
    """The experiment of this id, ours or one in the folder `experiment` of `config_dirs`.

    Raises ConfigError for an unknown id, and for a file that is none.
    """
    import yaml

    files = _files(config_dirs)
    if id not in files:
        raise ConfigError(f"no experiment {id!r}; {nearest(id, files)}")
    try:
        content = yaml.safe_load(files[id].read_bytes())
    except yaml.YAMLError as error:
        raise ConfigError(f"{files[id]}: {' '.join(str(error).split())}") from error
    if isinstance(content, dict) and "same" in content:
        return read(content["same"], config_dirs)
    return _experiment(id, content, files[id])


def _files(config_dirs: Sequence[Path]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for folder in (paths.conf_dir() / "experiment", *(Path(d) / "experiment" for d in config_dirs)):
        for path in folder.rglob("*.yaml"):
            files.setdefault(path.relative_to(folder).with_suffix("").as_posix(), path)
    return files


def _experiment(id: str, content: Any, path: Path) -> Experiment:
    if not isinstance(content, dict) or not content.get("title") or not _are_mappings(content.get("runs")):
        raise ConfigError(f"{path}: an experiment is a mapping with a title and a list of runs")
    if unknown := sorted(content.keys() - _KEYS):
        raise ConfigError(f"{path}: no key {unknown[0]!r}; {nearest(unknown[0], _KEYS)}")
    if not content["runs"] or not _are_mappings([content.get("all", {})]):
        raise ConfigError(f"{path}: `runs` needs a block of keys at least, and `all` is a mapping of keys")
    if not (content.get("table") or content.get("figure")):
        raise ConfigError(f"{path}: say what is made of the runs, a table or a figure")
    blocks = [{**content.get("all", {}), **block} for block in content["runs"]]
    for key, value in ((key, value) for block in blocks for key, value in block.items()):
        if isinstance(value, dict) and set(value) != set(PRESETS):
            raise ConfigError(f"{path}: {key} needs a value for each of {' and '.join(PRESETS)}, and no other")
    layout.check(path, content.get("table"), content.get("figure"), blocks)
    labels = {key: {_text(v): str(label) for v, label in of.items()} for key, of in content.get("labels", {}).items()}
    return Experiment(
        id=id, title=content["title"], paper=content.get("paper", ""), blocks=blocks,
        presets=content.get("presets", {}), labels=labels, table=content.get("table"), figure=content.get("figure"),
    )  # fmt: skip


def _are_mappings(blocks: Any) -> bool:
    return isinstance(blocks, list) and all(isinstance(block, dict) for block in blocks)


def _jobs(block: Mapping[str, Any], preset: str) -> Iterator[dict[str, str]]:
    values_of = {key: value[preset] if isinstance(value, dict) else value for key, value in block.items()}
    lists = [value if isinstance(value, list) else [value] for value in values_of.values()]
    for values in itertools.product(*lists):
        yield dict(zip(values_of, map(_text, values)))


def _text(value: Any) -> str:
    """A value as Hydra reads it back: true, null, 0.15, [0,1]; a text is taken as it is."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
