"""The configuration of a job, and the ranges of the keys of `conf/config.yaml` and of those of protocols alone."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from gpbench import plugins
from gpbench.errors import ConfigError, as_word, require, require_known
from gpbench.schema import Range, Words, is_whole, parse

_is_count = parse("count").contains


def _is_some(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(is_whole(v) and v >= 0 for v in value) and len(set(value)) == len(value)
    return value == "all" or (is_whole(value) and value >= 0)


_SOME = Range(_is_some, "a number from 0, a list of different ones such as [0,3], or all")
_SEED = Range(lambda value: is_whole(value) and 0 <= value < 2**32, "a whole number from 0 to 4294967295")
_PROCESSES = Range(lambda value: value == "cluster" or _is_count(value), "a whole number from 1, or cluster")
_TOGETHER = Range(
    lambda value: value == "auto" or isinstance(value, bool) or _is_count(value),
    "auto, true, false, or a whole number from 1",
)


class Run(TypedDict):
    """The section `run`; conf/config.yaml has the meanings and the defaults."""

    results: Annotated[str, "text or null"]
    again: Annotated[bool, "flag"]
    time_limit: Annotated[float | None, "positive or null"]
    jobs: Annotated[int, "count"]
    trace_every: Annotated[int | None, "count or null"]
    checkpoint_every: Annotated[float | None, "positive or null"]
    device: Annotated[str | None, ["cpu", "gpu", None]]
    devices: Annotated[int | None, "count or null"]
    processes: Annotated[Any, _PROCESSES]
    cores: Annotated[int | None, "count or null"]
    cpu_limit: Annotated[Any, "positive or null"]
    timing: Annotated[bool, "flag"]
    memory_fraction: Annotated[float | None, "fraction or null"]
    together: Annotated[int | str, _TOGETHER]
    stream: Annotated[bool | str, "auto or flag"]
    preset: Annotated[str | None, ["quick", "full", None]]
    keep: Annotated[bool, "flag"]
    save: Annotated[bool, "flag"]
    gap: Annotated[bool, "flag"]
    predictions: Annotated[bool | str, "auto or flag"]
    progress: Annotated[bool, "flag"]
    log: Annotated[Any, "any"]


class Data(TypedDict):
    """The section `data`."""

    mirror: Annotated[str | None, "text or null"]
    store: Annotated[str | None, "text or null"]
    offline: Annotated[bool, "flag"]


class Config(TypedDict):
    """A resolved configuration: it was checked when it was composed, but for a class of the user's."""

    split: Annotated[int | str | Sequence[int], _SOME]
    output: Annotated[int | str | Sequence[int], _SOME]
    seed: Annotated[int, _SEED]
    run: Run
    data: Data
    dataset: Mapping[str, Any]
    method: Mapping[str, Any]
    protocol: Mapping[str, Any]
    implied: Mapping[str, Any]  # keys of the method that are no part of a run's identity (`gpbench.config.compose`)
    changes: Mapping[str, Any]  # KEY: VALUE of the three groups wherever they differ from the choices of files alone
    explicit: Sequence[str]  # keys of the method that words set, to whatever value
    config_dirs: Sequence[str]  # the folders with group files of the user's


def _ranges(section: Any, prefix: str = "") -> dict[str, Range]:
    hints = section.__annotations__.items()
    return {f"{prefix}{name}": parse(hint.__metadata__[0]) for name, hint in hints if hasattr(hint, "__metadata__")}


_RANGES = _ranges(Config) | _ranges(Run, "run.") | _ranges(Data, "data.")


def check_values(cfg: Mapping[str, Any]) -> None:
    """Checks the values that belong to no group: `split`, `output`, `seed`, and the sections `run` and `data`."""
    flat = {key: cfg[key] for key in ("split", "output", "seed") if key in cfg}
    for section in ("run", "data"):
        if not isinstance(values := cfg.get(section, {}), dict):
            raise ConfigError(f"{section}={as_word(values)}: is a section; set its keys, as in {section}.KEY=VALUE")
        flat |= {f"{section}.{name}": value for name, value in values.items()}
    for key, value in flat.items():
        require_known(key, _RANGES, f"no key {key}")
        _RANGES[key].check(key, value)
    plugins.check_trackers(trackers := flat.get("run.log", []))
    fault = "run.log: a tracker takes CPU time of its own: leave it out, or run.cpu_limit"
    require(not trackers or flat.get("run.cpu_limit") is None, fault, ConfigError)


_SCALERS = ["standardise", "unit_interval", "centre_all", "none"]
TRANSFORMS = ("log", "log1p", "yeo_johnson")  # of targets, which are standardised before and after
RECALIBRATIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("scale", "conformal"), ("regression",)),
    "temperature": ("binary", "multiclass"),
}
"""The recalibrations of predictions, each with its tasks."""
_SECTION = "section or null"

PROTOCOL: Mapping[str, tuple[Words, str]] = {
    "name": ("text", "Name in records, tables and file names."),
    "inputs": (_SCALERS, "Scaling of the inputs: by the training rows, or over all rows (`centre_all`)."),
    "targets": ([*_SCALERS, *TRANSFORMS], "Scaling of targets in regression, or a transform of them."),
    "recalibrate": ([*RECALIBRATIONS, None], "Recalibration of predictions by training rows that are kept out."),
    "precision": (["float64", "float32"], "Floating-point type of all computations."),
    "paper": ("flag", "True for the protocol of a paper: methods then have the settings in `papers` of their files."),
    "split_indices": (
        ["correct", "int8"],
        "Row numbers as the index files have them, or read as 8-bit integers (paper aep_dgp).",
    ),
    "lbfgs": (_SECTION, "Section: maximum number of L-BFGS iterations (`steps`)."),
    "variational": (_SECTION, "Section: `steps`, `natural_step` and `optimiser` of svi and its variants."),
    "deep": (
        _SECTION,
        "Section: `steps`, `batch_size`, `optimiser`, `hidden_start`, `factors` and `alpha` of deep GPs.",
    ),
    "networks": (_SECTION, "Section: `steps`, `batch_size`, `optimiser` and `scaled` of neural networks."),
    "minibatch_damping": ("fraction", "Damping of the minibatch variants of sep."),
    "minibatch_optimiser": ("optimiser or null", "Optimiser of the minibatch variants of sep."),
}
"""The keys that only protocols have, each with its range and meaning.  Every other key of a protocol, there or in a
section, has the name and the range of a setting of methods."""
PROTOCOL_DEFAULTS: Mapping[str, Any] = {
    **dict.fromkeys(("inputs", "targets"), "standardise"),
    "recalibrate": None,
    "precision": "float64",
}
"""The keys that every protocol has, with the values of a file without them."""
PROTOCOL_SECTIONS = tuple(name for name, (words, _) in PROTOCOL.items() if words == _SECTION)
"""Keys whose values have keys of their own."""
