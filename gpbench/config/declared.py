"""The declarations of gpbench's methods, protocols and optimisers, known without JAX, and the checks against them;
`scripts/settings.py` makes `settings.json`."""

import importlib.util
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gpbench import paths, registry, yamls
from gpbench.config.values import PROTOCOL, PROTOCOL_SECTIONS
from gpbench.errors import ConfigError, as_word, either, listed, refuse, require_known
from gpbench.schema import Range, Words, check_finite, is_real, is_whole, parse

FILE = Path(__file__).with_name("settings.json")
"""Declarations of methods (tasks, kernels, likelihoods, settings) and ranges of arguments of optimisers, by path."""
_OPTIMISERS = "gpbench.core.optimisers."
_WIDER = {"fraction": "share", "several": "count", "several rows": "rows"}


@cache
def _declarations() -> Mapping[str, Mapping[str, Any]]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def classes() -> Mapping[str, Mapping[str, Any]]:
    """The declarations of each class of a method by its dotted path."""
    return _declarations()["methods"]


def optimisers() -> Mapping[str, Mapping[str, Words]]:
    """The ranges of the arguments of each optimiser of gpbench by its dotted path."""
    return _declarations()["optimisers"]


@cache
def ranges() -> Mapping[str, Words]:
    """The ranges of all settings by name, each the union of those that classes declare."""
    unions: dict[str, dict[Any, None]] = {}
    texts = set()
    for entry in classes().values():
        for name, setting in entry["settings"].items():
            words = setting["range"]
            if isinstance(words, str):
                texts.add(name)
            unions.setdefault(name, {}).update(dict.fromkeys(words.split(" or ") if isinstance(words, str) else words))
    return {
        name: " or ".join(word for word in words if _WIDER.get(word) not in words) if name in texts else list(words)
        for name, words in unions.items()
    }


def canonical(node: Mapping[str, Any]) -> dict[str, Any]:
    """A section as it is recorded: 1 is 1.0 in a setting of real numbers, but for those of a user's class."""
    as_float = lambda value: float(value) if is_whole(value) else value
    form = dict(node)
    if str(node.get("_target_", "gpbench.")).startswith("gpbench."):
        form |= {key: as_float(value) for key, value in node.items() if is_real(ranges().get(key, ""))}
        if isinstance(prior := node.get("lengthscale_prior"), Mapping):
            form["lengthscale_prior"] = {name: as_float(value) for name, value in prior.items()}
    return form


def check_inducing(method: Mapping[str, Any], rows: int) -> None:
    """Checks that a method, whose defaults are within the rows, has no more inducing points than rows that train."""
    if "inducing" in beyond(method, rows):
        m = method["inducing"]
        raise ConfigError(f"method.inducing={m}: there are {rows} training rows; choose a number from 1 to {rows}")


def beyond(method: Mapping[str, Any], rows: int) -> list[str]:
    """The settings of one of gpbench's methods that are numbers of rows, and larger than this one."""
    known = classes().get(str(method.get("_target_")), {}).get("settings", {})
    words = {key: {*str(setting["range"]).split(" or ")} for key, setting in known.items()}
    counts = [key for key, several in words.items() if several & {"rows", "several rows"}]
    return [key for key in counts if is_whole(method.get(key)) and method[key] > rows]


def check_method(node: Mapping[str, Any]) -> None:
    """Checks the `method` section of a configuration; of a user's class, only what needs no import."""
    if not isinstance(target := node.get("_target_"), str | None):
        raise ConfigError(f"method._target_={as_word(target)}: write MODULE.NAME, the class of the method")
    if (declared := classes().get(str(target))) is None:
        _check_values("method", node, {})
        return
    name, known = str(target).rpartition(".")[2], declared["settings"]
    values = {key: value for key, value in node.items() if not (key.startswith("_") and key.endswith("_"))}
    check_declared(values, declared, name)
    for key in values:
        require_known(key, known, f"method.{key}: {name} has no such field")
    for key in (key for key, setting in known.items() if "default" not in setting and key not in values):
        raise ConfigError(f"method.{key}: {name} needs a value for it")


def check_declared(values: Mapping[str, Any], declared: Mapping[str, Any], name: str) -> None:
    """Checks settings against the declarations of a class called `name`, as `settings.json` has them."""
    known = {key: setting["range"] for key, setting in declared["settings"].items()}
    _check_values("method", values, known)
    name = str(values.get("name") or name)
    for kind, accepted in (("kernel", declared["kernels"]), ("likelihood", declared["likelihoods"])):
        if kind in values:
            registry.check_family(kind, values[kind], accepted, name, _hint)
    search, searchable = dict(values.get("search") or {}), declared["searchable"]
    other = next((key for key in search if searchable and key not in searchable), None)
    rates = values.get("rates") and not declared["rates"]
    refuse(
        "method.",
        (rates, f"rates: {name} has no initial step size to choose: leave it empty"),
        (search and not declared["search"], f"search: {name} has no settings to choose"),
        (other, f"search: {name} can choose {' and '.join(searchable)}, not {other}"),
    )
    for key, entries in search.items():
        for entry in entries or ():
            parse(known.get(key, "number")).check(f"method.search.{key}", entry)


def check_protocol(node: Mapping[str, Any]) -> None:
    """Checks the `protocol` section of a configuration; a key that no method of gpbench has may have any value."""
    if not node.get("name"):
        raise ConfigError("protocol has no name, by which records and tables know it: add `name: NAME` to its file")
    own = {name: words for name, (words, _) in PROTOCOL.items()}
    _check_values("protocol", node, {**ranges(), **own})
    for name in PROTOCOL_SECTIONS:
        _check_values(f"protocol.{name}", node.get(name) or {}, ranges())


def check_task(method: Mapping[str, Any], card: Mapping[str, Any], tasks: object = None) -> None:
    """Checks that the method and its likelihood are for the data set's task."""
    task, tasks = card["task"], tasks or classes().get(str(method.get("_target_")), {}).get("tasks")
    if isinstance(tasks, list | frozenset) and task not in tasks:
        others = listed(methods(lambda declared: task in declared["tasks"]), 20)
        fault = f"method {method.get('name')} is for {either(sorted(tasks))} data, and {card['name']} is {task}"
        raise ConfigError(f"{fault}; methods for {task} are {others}")
    family, _ = registry.name_and_options(method.get("likelihood", "auto"))
    entry = registry.LIKELIHOODS.get(family) if isinstance(family, str) else None
    if entry and task not in entry.tasks:
        fit = either(("auto", *(name for name, other in registry.LIKELIHOODS.items() if task in other.tasks)))
        raise ConfigError(f"method.likelihood={family}: {card['name']} is {task}: choose {fit}")


def _hint(kind: str, family: str) -> str:
    """The end of the refusal of a kernel or a likelihood: the methods that take the likelihood."""
    if kind != "likelihood":
        return ""
    tasks = {*registry.LIKELIHOODS[family].tasks}

    def takes(declared: Mapping[str, Any]) -> bool:
        is_set = "likelihood" in declared["settings"] and not tasks.isdisjoint(declared["tasks"])
        return is_set and family in (declared["likelihoods"] or [family])

    return f"; methods with {family} are {listed(methods(takes), 20)}"


def _check_values(section: str, node: Mapping[Any, Any], known: Mapping[str, Words | Range]) -> None:
    """Check the values that have a range, the arguments of gpbench's optimisers, and that every number is finite."""
    for key, value in node.items():
        name = f"{section}.{key}"
        if key in known:
            parse(known[key]).check(name, value)
        target = str(value.get("_target_")) if isinstance(value, Mapping) else ""
        if target.startswith(_OPTIMISERS):
            require_known(target, optimisers(), f"{name}: no optimiser {target!r}")
            arguments = optimisers()[target]
            for argument in (str(argument) for argument in value if not str(argument).startswith("_")):
                require_known(argument, arguments, f"{name}: {target} has no argument {argument!r}")
            _check_values(name, value, arguments)
        function = target.removeprefix("optax.")
        if function != target and "." not in function and _optax_names():
            require_known(function, _optax_names(), f"{name}: optax has no {function!r}")
        check_finite(name, value)


@cache
def _optax_names() -> frozenset[str]:
    """The names in the text of optax's module, whose import takes a second; none where it cannot be read."""
    spec = importlib.util.find_spec("optax")
    try:
        return frozenset(re.findall(r"[A-Za-z]\w+", Path(spec.origin).read_text(encoding="utf-8")))  # type: ignore
    except (AttributeError, TypeError, OSError, ValueError):
        return frozenset()


def methods(fits: Callable[[Mapping[str, Any]], bool]) -> list[str]:
    """The names of gpbench's methods whose declarations fit."""
    nodes = {name: yamls.read(path) for name, path in paths.yaml_files("method").items()}

    def target(name: str) -> str:
        bases = [base for base in nodes[name].get("defaults", ()) if base in nodes and base != name]
        return str(nodes[name].get("_target_") or (target(bases[0]) if bases else ""))

    return sorted(name for name in nodes if (entry := classes().get(target(name))) and fits(entry))
