"""Names of kernels and likelihoods in configurations, for code that starts without JAX: gpbench's, with dotted paths,
options, ranges and tasks, which a test holds equal to the classes; and those of users."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gpbench import plugins, targets, yamls
from gpbench.errors import ConfigError, as_word, either, nearest, refuse, require, require_known
from gpbench.schema import RANGE, Range, Words, is_number, is_whole, parse, settings

TARGET = "_target_"
_E = TypeVar("_E")


def is_list(value: Any) -> bool:
    """True for a list, a tuple, and a list of OmegaConf's."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def _are_columns(value: Any) -> bool:
    are_different = is_list(value) and 0 < len(value) == len({*map(repr, value)})
    return value is None or (are_different and all(is_whole(index) and index >= 0 for index in value))


_COLUMNS = Range(_are_columns, "a list of different column numbers from 0")
POWER_OF_TWO = Range(
    lambda value: is_whole(value) and value >= 2 and value & (value - 1) == 0, "a power of two, such as 128"
)
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


class Registry(dict[str, _E]):
    """The entries of gpbench of one kind, by name, beside those of users: a file KIND/NAME.yaml in a folder that the
    user gives, or an entry point NAME of the group gpbench.KINDs, stands for a `_target_` and options."""

    def __init__(self, kind: str, **entries: _E):
        super().__init__(entries)
        self.kind = kind

    def content(self, path: Path) -> dict[str, Any]:
        """The content of a user's file, checked: its name is none of gpbench's, and it has a `_target_`."""
        content = yamls.read(path)
        target = content.get(TARGET) if yamls.is_section(content) else None
        has_target = isinstance(target, str) and "." in target
        clash = path.stem in self, f"the name {path.stem} is built in; rename the file"
        refuse(f"{path}: ", clash, (not has_target, f"must be a mapping with a line `{TARGET}: MODULE.NAME`"))
        return content

    def own(self, name: str, folders: Sequence[Path]) -> dict[str, Any] | None:
        """The mapping with a `_target_` behind a user's name; None for any other name."""
        for path in (path for folder in folders if (path := folder / self.kind / f"{name}.yaml").is_file()):
            return self.content(path)
        points = () if name in self else plugins.points(f"gpbench.{self.kind}s")
        return next(({TARGET: point.value.replace(":", ".")} for point in points if point.name == name), None)


_K, _L = "gpbench.core.kernels.", "gpbench.core.likelihoods."
_SCALES: Mapping[str, Words | Range] = {"isotropic": "flag"}

KERNELS = Registry(
    "kernel",
    squared_exponential=Entry(_K + "SquaredExponential", _SCALES),
    matern12=Entry(_K + "Matern12", _SCALES),
    matern32=Entry(_K + "Matern32", _SCALES),
    matern52=Entry(_K + "Matern52", _SCALES),
    rational_quadratic=Entry(_K + "RationalQuadratic", {**_SCALES, "alpha": "positive"}),
    periodic=Entry(_K + "Periodic", {**_SCALES, "period": "positive or null"}),
    linear=Entry(_K + "Linear"),
    constant=Entry(_K + "Constant"),
    orthogonal=Entry(_K + "Orthogonal"),
    deep=Entry(_K + "Deep", {"hidden": "list of count", "outputs": "count", "seed": "whole"}),
    sum=Entry(_K + "Sum"),
    product=Entry(_K + "Product"),
    anova=Entry(_K + "ANOVA", {"order": "count", "base": ONE_INPUT_KERNEL}),
)
"""The families of kernels.  All but sums and products have the option `inputs`, the columns they are functions of."""

LIKELIHOODS = Registry(
    "likelihood",
    gaussian=Entry(_L + "Gaussian", {"floor": "nonnegative"}, ("regression",)),
    laplace=Entry(_L + "Laplace", {"floor": "nonnegative"}, ("regression",)),
    student_t=Entry(_L + "StudentT", {"df": "positive", "learn_df": "flag", "nodes": FROM_EIGHT}, ("regression",)),
    heteroscedastic=Entry(_L + "Heteroscedastic", {"nodes": "count"}, ("regression",)),
    poisson=Entry(_L + "Poisson", {"nodes": "count"}, ("count",)),
    negative_binomial=Entry(_L + "NegativeBinomial", {"nodes": "count", "start": "positive"}, ("count",)),
    probit=Entry(_L + "Probit", {"nodes": "count"}, ("binary",)),
    logistic=Entry(_L + "Logistic", {"nodes": "count"}, ("binary",)),
    softmax=Entry(_L + "Softmax", {"samples": POWER_OF_TWO}, ("multiclass",)),
    robust_max=Entry(_L + "RobustMax", {"epsilon": PROBABILITY, "nodes": "count"}, ("multiclass",)),
)

AUTO: Mapping[str, str] = {"regression": "gaussian", "count": "poisson", "binary": "probit", "multiclass": "softmax"}
"""The likelihood of each task that "auto" stands for."""

KINDS = {table.kind: table for table in (KERNELS, LIKELIHOODS)}  # by the key of a method's section

COMPOSITES = ("sum", "product")  # kernels made of a list of kernels, as in {sum: [linear, matern52]}


@dataclass(frozen=True)
class _Choice:
    """A kernel or a likelihood as a configuration names it, with its options; of a sum or product its `parts`."""

    name: str
    options: Mapping[str, Any]

    @property
    def is_own(self) -> bool:
        """True for a class that is named by its path."""
        return "." in self.name


def name_and_options(value: Any) -> tuple[Any, Any]:
    """The name and the options of {NAME: OPTIONS}; of any other value itself, and None."""
    is_pair = isinstance(value, Mapping) and len(value) == 1 and TARGET not in value
    return next(iter(value.items())) if is_pair else (value, None)


def read(kind: str, value: Any, task: str | None = None) -> _Choice:
    """The choice that a value of the configuration makes, with options in their ranges, but of a user's class."""
    name, options = _split(kind, value)
    table = KINDS[kind]
    name = next((known for known, entry in table.items() if entry.path == name), name)
    if (kind, name) == ("likelihood", "auto"):
        option = next(iter(options), "")
        require(not options, f"likelihood auto has no option {option!r}: name the likelihood", ConfigError)
    elif name not in table and "." not in name:
        raise ConfigError(f"unknown {kind} {name!r}: {nearest(name, _names(kind, task))}")
    elif kind == "kernel" and name in COMPOSITES:
        kernels = options["parts"]
        fact = f"kernel {name} must be a list of two or more kernels, not {as_word(kernels)}"
        require(is_list(kernels) and len(kernels) > 1, fact, ConfigError)
        for kernel in kernels:
            read(kind, kernel)
    elif name in table:
        check_options(kind, name, options, table[name].options)
    return _Choice(name, options)


def expand(kind: str, value: Any, folders: Sequence[Path] = ()) -> Any:
    """A value in which every name from a file or an entry point is replaced by its `_target_` and options."""
    name, options = name_and_options(value)
    if isinstance(options, list) and name in COMPOSITES:
        return {name: [expand(kind, entry, folders) for entry in options]}
    is_name = isinstance(name, str) and isinstance(options, Mapping | None)
    target = KINDS[kind].own(name, folders) if is_name else None
    return {**target, **(options or {})} if target else value


def custom_paths(kind: str, value: Any) -> list[str]:
    """The dotted paths of the custom classes in an expanded value."""
    choice = read(kind, value)
    if kind == "kernel" and choice.name in COMPOSITES:
        return [path for entry in choice.options["parts"] for path in custom_paths(kind, entry)]
    return [choice.name] if choice.is_own else []


def check_options(kind: str, name: str, options: Mapping[str, Any], ranges: Mapping[str, Words | Range]) -> None:
    """Raises ConfigError for an option that has no range, or a value outside its range."""
    known = {**ranges, "inputs": _COLUMNS} if kind == "kernel" else ranges
    for option, value in options.items():
        require_known(option, known, f"{kind} {name} has no option {option!r}:")
        parse(known[option]).check(f"{kind} {name}: {option}", value)


def check_family(
    kind: str, value: Any, accepted: Sequence[str] | None, owner: str, hint: Callable[[str, str], str] = lambda *_: ""
) -> None:
    """Raises ConfigError for a kernel or a likelihood, or one of some inputs, that the method does not declare."""
    if accepted is None:
        return
    value, options = name_and_options(value)
    family = getattr(value, "family", getattr(value, "name", value))
    inputs = options.get("inputs") if isinstance(options, Mapping) else getattr(value, "inputs", None)
    if family in ("auto", *accepted) and inputs is None:
        return
    if isinstance(family, str) and family in KINDS[kind]:
        needed = either(name.replace("_", " ") for name in accepted)
        description = f"{family} of the inputs {list(inputs)}" if inputs is not None else family
        mend = f"choose method.{kind}={either(accepted)}{hint(kind, family)}"
        raise ConfigError(f"{owner} needs a {needed} {kind}, not {description}: {mend}")


def options_of(cls: type) -> dict[str, Words | Range]:
    """The ranges of the options that a class declares by `setting`, by name."""
    return {name: field.metadata[RANGE] for name, field in settings(cls).items()}


def load(kind: str, name: str, base: type | None = None) -> Any:
    """The class of a name of gpbench, or of a dotted path.  Raises ConfigError as `gpbench.targets.load` does."""
    table: Mapping[str, Entry] = KINDS.get(kind, {})
    return targets.resolve(table[name].path) if name in table else targets.load(name, kind, base)


def load_class(kind: str, name: str, base: type) -> Any:
    """The class of a name of gpbench, or of a dotted path."""
    cls = load(kind, name, base)
    absent = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
    is_subclass = isinstance(cls, type) and issubclass(cls, base)
    refuse(
        f"{kind} {name}",
        (not is_subclass, f": must be a subclass of {base.__module__.rpartition('.')[0]}.{base.__name__}"),
        (absent, f" lacks {absent}; see docs/how-to/own_{kind}.md"),
    )
    return cls


def _split(kind: str, value: Any) -> tuple[str, dict[str, Any]]:
    """The name and the options of a value."""
    name, options = name_and_options(value)
    if isinstance(value, Mapping) and TARGET in value:
        name, options = value[TARGET], {key: option for key, option in value.items() if key != TARGET}
        targets.check_path(name, kind)
    if not isinstance(name, str):
        form = f"a {kind} is a name or a name with its options, not {as_word(value)}"
        raise ConfigError(f"{form}: choose {either(_names(kind))}")
    if kind == "kernel" and name in COMPOSITES:
        return name, {"parts": options}
    if not isinstance(options, Mapping | None):
        form = f"the options of {kind} {name} must be a mapping such as {{{name}: {{OPTION: VALUE}}}}"
        raise ConfigError(f"{form}, not {as_word(options)}")
    return name, {str(option): [*item] if is_list(item) else item for option, item in (options or {}).items()}


def _names(kind: str, task: str | None = None) -> list[str]:
    if kind == "kernel":
        return list(KERNELS)
    return ["auto", *(name for name, entry in LIKELIHOODS.items() if task not in AUTO or task in entry.tasks)]
