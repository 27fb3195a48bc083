"""Kernels and likelihoods by name, for code that starts without JAX: dotted paths, options with their ranges, tasks.

The classes declare their options by `setting`.  The tables repeat them for the check of a command line, and a test
holds the two equal.  A kernel or likelihood of a user is named by

- its class, as in `method.kernel={_target_: kernels.Cosine, period: 2.0}`;
- a file `kernel/NAME.yaml` or `likelihood/NAME.yaml` with such a mapping, in a folder of `--config-dir`;
- an entry point NAME of the group `gpbench.kernels` or `gpbench.likelihoods`, whose value is the class.

`expand` turns names of the last two kinds into the first.  Names in records are never imported.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from gpbench import yamls
from gpbench.errors import ConfigError, as_word, either, nearest
from gpbench.schema import Range, Words, is_number, is_whole, parse

TARGET = "_target_"


def is_list(value: Any) -> bool:
    """True for a list, a tuple, and a list of OmegaConf's."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def _are_columns(value: Any) -> bool:
    if not is_list(value) or not value or len(set(map(repr, value))) < len(value):
        return False
    return all(is_whole(index) and index >= 0 for index in value)


def _is_power_of_two(value: Any) -> bool:
    return is_whole(value) and value >= 2 and value & (value - 1) == 0


COLUMNS = Range(lambda value: value is None or _are_columns(value), "a list of different column numbers from 0")
POWER_OF_TWO = Range(_is_power_of_two, "a power of two, such as 128")
PROBABILITY = Range(lambda value: is_number(value) and 0 < value < 1, "a number between 0 and 1, such as 0.001")
FROM_EIGHT = Range(lambda value: is_whole(value) and value >= 8, "a whole number from 8")
ONE_INPUT_KERNEL = Range(
    lambda value: read("kernel", value).options.get("inputs") is None,
    "a kernel without inputs, since it is a function of one input at a time",
)


@dataclass(frozen=True)
class Entry:
    """A kernel or a likelihood of gpbench: dotted path of its class, ranges of its options, tasks of a likelihood."""

    path: str
    options: Mapping[str, Words | Range] = field(default_factory=dict)
    tasks: tuple[str, ...] = ()


_K, _L = "gpbench.core.kernels.", "gpbench.core.likelihoods."
_SCALES: Mapping[str, Words | Range] = {"isotropic": "flag"}

KERNELS: Mapping[str, Entry] = {
    "squared_exponential": Entry(_K + "SquaredExponential", _SCALES),
    "matern12": Entry(_K + "Matern12", _SCALES),
    "matern32": Entry(_K + "Matern32", _SCALES),
    "matern52": Entry(_K + "Matern52", _SCALES),
    "rational_quadratic": Entry(_K + "RationalQuadratic", {**_SCALES, "alpha": "positive"}),
    "periodic": Entry(_K + "Periodic", {**_SCALES, "period": "positive"}),
    "linear": Entry(_K + "Linear"),
    "constant": Entry(_K + "Constant"),
    "sum": Entry(_K + "Sum"),
    "product": Entry(_K + "Product"),
    "anova": Entry(_K + "ANOVA", {"order": "count", "base": ONE_INPUT_KERNEL}),
}
"""The families of kernels.  All but sums and products have the option `inputs`, the columns they are functions of."""

LIKELIHOODS: Mapping[str, Entry] = {
    "gaussian": Entry(_L + "Gaussian", {"floor": "nonnegative"}, ("regression",)),
    "laplace": Entry(_L + "Laplace", {"floor": "nonnegative"}, ("regression",)),
    "student_t": Entry(_L + "StudentT", {"df": "positive", "learn_df": "flag", "nodes": FROM_EIGHT}, ("regression",)),
    "probit": Entry(_L + "Probit", {"nodes": "count"}, ("binary",)),
    "logistic": Entry(_L + "Logistic", {"nodes": "count"}, ("binary",)),
    "softmax": Entry(_L + "Softmax", {"samples": POWER_OF_TWO}, ("multiclass",)),
    "robust_max": Entry(_L + "RobustMax", {"epsilon": PROBABILITY, "nodes": "count"}, ("multiclass",)),
}

AUTO: Mapping[str, str] = {"regression": "gaussian", "binary": "probit", "multiclass": "softmax"}
"""The likelihood of each task that "auto" stands for."""

KINDS: Mapping[str, Mapping[str, Entry]] = {"kernel": KERNELS, "likelihood": LIKELIHOODS}
"""The tables by the key of a method's section."""

COMPOSITES = ("sum", "product")
"""Kernels made of a list of kernels, as in {sum: [linear, matern52]}."""


@dataclass(frozen=True)
class Choice:
    """A kernel or a likelihood as a configuration names it: name or dotted path, and the options that it sets.

    The kernels of a sum or product are its option `parts`, values as in the configuration.
    """

    name: str
    options: Mapping[str, Any]

    @property
    def is_own(self) -> bool:
        """True for a class that is named by its path."""
        return "." in self.name


def read(kind: str, value: Any, task: str | None = None) -> Choice:
    """The choice that a value of the configuration makes.

    Args:
        kind: "kernel" or "likelihood".
        value: A name; {name: {option: value}}; {"sum": [values]} or {"product": [values]}; or a mapping with the
            `_target_` of a class and its options.
        task: Task of the data, to name only likelihoods for it in the message about an unknown one.

    Returns:
        The choice, whose options are in their ranges.  Those of a user's class are checked where it is imported.

    Raises:
        ConfigError: An unknown name or option, or a value that an option cannot have.
    """
    name, options = _split(kind, value)
    if "." in name or (kind, name) == ("likelihood", "auto"):
        if options and name == "auto":
            raise ConfigError(f"likelihood auto has no option {next(iter(options))!r}: name the likelihood")
        return Choice(name, options)
    table = KINDS[kind]
    if name not in table:
        raise ConfigError(f"unknown {kind} {name!r}: {nearest(name, _names(kind, task))}")
    if name in COMPOSITES and kind == "kernel":
        kernels = options["parts"]
        if not is_list(kernels) or len(kernels) < 2:
            raise ConfigError(f"kernel {name} must be a list of two or more kernels, not {as_word(kernels)}")
        for kernel in kernels:
            read(kind, kernel)
        return Choice(name, options)
    check_options(kind, name, options, table[name].options)
    return Choice(name, options)


def check_options(kind: str, name: str, options: Mapping[str, Any], ranges: Mapping[str, Words | Range]) -> None:
    """Raises ConfigError for an option that has no range, or a value outside its range."""
    known = {**ranges, "inputs": COLUMNS} if kind == "kernel" else ranges
    for option, value in options.items():
        if option not in known:
            raise ConfigError(f"{kind} {name} has no option {option!r}: {nearest(option, known)}")
        parse(known[option]).check(f"{kind} {name}: {option}", value)


def check(section: Mapping[str, Any], folders: Sequence[Path], task: Any = None) -> dict:
    """The section `method` with the names of users' kernels and likelihoods expanded, and all of them checked.

    The keys `kernel` and `likelihood` of a user's method can mean something else: its class checks them.

    Args:
        section: The section.
        folders: Folders of `--config-dir` and of installed packages.
        task: Task of the data.

    Raises:
        ConfigError: As `read` does, with the key in front.
    """
    expanded = dict(section)
    for kind in KINDS.keys() & section.keys():
        expanded[kind] = expand(kind, section[kind], folders)
        if str(section.get(TARGET, "gpbench.")).startswith("gpbench."):
            check_value(kind, expanded[kind], task)
    return expanded


def check_value(kind: str, value: Any, task: Any = None) -> None:
    """Raises ConfigError, with the key in front, as `read` does."""
    try:
        read(kind, value, task)
    except ConfigError as error:
        raise ConfigError(f"method.{kind}: {error}") from None


def check_family(kind: str, value: Any, accepted: Sequence[str] | None, subject: str) -> None:
    """Check the family of a kernel or a likelihood against those that a method declares.

    A family that is not one of gpbench's passes: the method itself decides when training begins.

    Args:
        kind: "kernel" or "likelihood".
        value: A name, {name: options}, or a specification with a `family`.
        accepted: Names of families; None accepts all.
        subject: Name of the method, for the message.

    Raises:
        ConfigError: for another family of gpbench's, and for a kernel of some inputs where families are restricted.
    """
    if accepted is None:
        return
    options: Any = None
    if isinstance(value, Mapping) and len(value) == 1:
        ((value, options),) = value.items()
    family = getattr(value, "family", getattr(value, "name", value))
    inputs = options.get("inputs") if isinstance(options, Mapping) else getattr(value, "inputs", None)
    if family in ("auto", *accepted) and inputs is None:
        return
    if isinstance(family, str) and family in KINDS[kind]:
        needed = either(name.replace("_", " ") for name in accepted)
        description = f"{family} of the inputs {list(inputs)}" if inputs is not None else family
        raise ConfigError(
            f"{subject} needs a {needed} {kind}, not {description}: choose method.{kind}={either(accepted)}"
        )


def expand(kind: str, value: Any, folders: Sequence[Path] = ()) -> Any:
    """A value in which every name from a file or an entry point is replaced by its `_target_` and options."""
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, options),) = value.items()
        if name in COMPOSITES and isinstance(options, list):
            return {name: [expand(kind, entry, folders) for entry in options]}
        if isinstance(options, Mapping | None) and (target := own(kind, name, folders, KINDS[kind])):
            return {**target, **(options or {})}
    elif isinstance(value, str) and (target := own(kind, value, folders, KINDS[kind])):
        return target
    return value


def without_target(kind: str, value: Any) -> Any:
    """A value in which {_target_: PATH, **options} of a kernel's or likelihood's class is {PATH: options}.

    Hydra would otherwise construct the class as it builds the method.  Raises ConfigError as `load` does.
    """
    if kind not in KINDS or not isinstance(value, Mapping):
        return value
    if isinstance(path := value.get(TARGET), str):
        is_class = callable(getattr(load(kind, path), "initial", None))
        return {path: {key: option for key, option in value.items() if key != TARGET}} if is_class else value
    return {
        key: [without_target(kind, entry) for entry in v] if key in COMPOSITES and is_list(v) else v
        for key, v in value.items()
    }


def options_of(cls: type) -> dict[str, Words | Range]:
    """The ranges of the options that a class declares by `setting`, by name."""
    from gpbench.schema import RANGE, settings

    return {name: field.metadata[RANGE] for name, field in settings(cls).items()}


def load(kind: str, name: str) -> Any:
    """The class of a name of gpbench, or of a dotted path.  Raises ConfigError where it cannot be imported."""
    table = KINDS.get(kind, {})
    path = table[name].path if name in table else name
    module, _, attribute = path.rpartition(".")
    if not module:
        raise ConfigError(f"{kind}: {TARGET} {path!r}: write MODULE.NAME")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever the code of a module of one's own raises
        raise ConfigError(f"{kind}: cannot import {path!r}: {type(error).__name__}: {error}") from error


def load_class(kind: str, name: str, base: type) -> Any:
    """The class of a name of gpbench, or of a dotted path.

    Args:
        kind: "kernel" or "likelihood".
        name: The name or path.
        base: Class that it must be a subclass of, with nothing left abstract.

    Raises:
        ConfigError: It cannot be imported, is no such class, or is abstract.
    """
    cls = load(kind, name)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise ConfigError(f"{kind} {name}: must be a subclass of gpbench.core.{kind}s.{base.__name__}")
    if absent := sorted(getattr(cls, "__abstractmethods__", ())):
        raise ConfigError(f"{kind} {name} lacks {', '.join(absent)}; see docs/add_a_{kind}.md")
    return cls


def check_target(kind: str, path: Any) -> None:
    """Raises ConfigError for anything but a dotted path."""
    if not (isinstance(path, str) and "." in path and all(word.isidentifier() for word in path.split("."))):
        raise ConfigError(f"{kind}: {TARGET}={as_word(path)}: write MODULE.NAME")


def _split(kind: str, value: Any) -> tuple[str, dict[str, Any]]:
    """The name and the options of a value."""
    name, options = value, None
    if isinstance(value, Mapping) and TARGET in value:
        name = value[TARGET]
        options = {key: option for key, option in value.items() if key != TARGET}
        check_target(kind, name)
    elif isinstance(value, Mapping) and len(value) == 1:
        ((name, options),) = value.items()
    if not isinstance(name, str):
        raise ConfigError(f"a {kind} is a name or a name with its options, not {as_word(value)}: {_some(kind)}")
    if kind == "kernel" and name in COMPOSITES:
        return name, {"parts": options}
    if not isinstance(options, Mapping | None):
        example = f"{{{name}: {{OPTION: VALUE}}}}"
        raise ConfigError(f"the options of {kind} {name} must be a mapping such as {example}, not {as_word(options)}")
    return name, {str(option): setting for option, setting in (options or {}).items()}


def _names(kind: str, task: str | None = None) -> list[str]:
    if kind == "kernel":
        return list(KERNELS)
    return ["auto", *(name for name, entry in LIKELIHOODS.items() if task not in AUTO or task in entry.tasks)]


def _some(kind: str) -> str:
    return f"choose {either(_names(kind))}"


@cache
def installed(group: str, find: Callable[..., Iterable[EntryPoint]]) -> tuple[EntryPoint, ...]:
    """The entry points of a group, read once in a process: reading them opens a file of every installed package.

    Args:
        group: Name of the group, such as "gpbench.kernels".
        find: Function that finds them, `importlib.metadata.entry_points`.
    """
    return tuple(find(group=group))


def own(kind: str, name: Any, folders: Sequence[Path], reserved: Mapping[str, Any]) -> dict[str, Any] | None:
    """The mapping with a `_target_` behind a user's name; None for any other name.

    Args:
        kind: Name of the folder of files; the group of entry points is `gpbench.` with it and an s.
        name: The name.
        folders: Folders of `--config-dir` and of installed packages.
        reserved: Names of gpbench's own.

    Raises:
        ConfigError: A file without a `_target_`, or with a name in `reserved`.
    """
    for folder in folders:
        path = folder / kind / f"{name}.yaml"
        if not isinstance(name, str) or not path.is_file():
            continue
        if name in reserved:
            raise ConfigError(f"{path}: the name {name} is taken by one of ours; rename the file")
        content = yamls.read(path)
        if not yamls.is_section(content) or TARGET not in content:
            raise ConfigError(f"{path}: must be a mapping with a line `{TARGET}: MODULE.NAME`")
        return content
    if name in reserved or not isinstance(name, str):
        return None
    for point in installed(f"gpbench.{kind}s", entry_points):
        if point.name == name:
            return {TARGET: point.value.replace(":", ".")}
    return None
