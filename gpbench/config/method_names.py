"""Names of gpbench's methods by what they take, for messages that refuse one."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from gpbench import paths, registry, yamls
from gpbench.errors import listed

_Declarations: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The declarations of each class by its dotted path (`gpbench.config.declared.classes`)."""


def with_setting(classes: _Declarations, key: str) -> str:
    """The methods that have a setting; "" for none."""
    return _listed(classes, lambda declared: key in declared["settings"])


def with_task(classes: _Declarations, task: str) -> str:
    """The methods for a task."""
    return _listed(classes, lambda declared: task in declared["tasks"])


def with_likelihood(classes: _Declarations, family: str) -> str:
    """The methods that take a family of likelihoods."""
    tasks = {*registry.LIKELIHOODS[family].tasks}

    def takes(declared: Mapping[str, Any]) -> bool:
        is_set = "likelihood" in declared["settings"] and not tasks.isdisjoint(declared["tasks"])
        return is_set and family in (declared["likelihoods"] or [family])

    return _listed(classes, takes)


def _listed(classes: _Declarations, fits: Callable[[Mapping[str, Any]], bool]) -> str:
    nodes = {name: yamls.read(path) for name, path in paths.yaml_files("method").items()}

    def target(name: str) -> str:
        bases = [base for base in nodes[name].get("defaults", ()) if base in nodes and base != name]
        return str(nodes[name].get("_target_") or (target(bases[0]) if bases else ""))

    return listed(sorted(name for name in nodes if target(name) in classes and fits(classes[target(name)])), 20)
