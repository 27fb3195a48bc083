"""The declarations of gpbench's methods, known without JAX, and the check of a configuration against them.

`settings.json` is made from the classes by `scripts/settings.py`; a test holds it equal to them.  A class of a user's
own is checked when it is constructed, by the same declarations (`gpbench.methods.base.Method`).
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gpbench import schema
from gpbench.errors import ConfigError, either, nearest
from gpbench.schema import check_family

FILE = Path(__file__).with_name("settings.json")
"""For each class of a method: tasks, kernels, likelihoods and its settings, each with range, default and meaning."""


@cache
def classes() -> Mapping[str, Mapping[str, Any]]:
    """The declarations of each class by its dotted path."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def check_method(node: Mapping[str, Any]) -> None:
    """Check the `method` section of a configuration against the declarations of its class, one of gpbench's.

    Raises:
        ConfigError: An unknown setting, one without a value, a value out of the range that this class declares, a
            kernel or a likelihood that it does not take, `rates` or a `search` that it has no use for.
    """
    if (declared := classes().get(str(node.get("_target_")))) is None:
        return
    name, settings = str(node["_target_"]).rpartition(".")[2], declared["settings"]
    values = {key: value for key, value in node.items() if not (key.startswith("_") and key.endswith("_"))}
    for key, value in values.items():
        if key not in settings:
            raise ConfigError(f"method.{key}: {name} has no such field; {nearest(key, settings)}")
        if not (key in ("search", "optimiser") and value is None):
            schema.parse(settings[key]["range"]).check(f"method.{key}", value)
    if absent := [key for key, setting in settings.items() if "default" not in setting and key not in values]:
        raise ConfigError(f"method.{absent[0]}: {name} needs a value for it")
    for kind, accepted in (("kernel", declared["kernels"]), ("likelihood", declared["likelihoods"])):
        if kind in values:
            check_family(kind, values[kind], accepted, str(values.get("name") or name))
    _check_trials(values, declared)


def check_task(cfg: Mapping[str, Any]) -> None:
    """Check that the method and its likelihood are for the data set's task.

    Raises:
        ConfigError: for a method or a likelihood that is not.
    """
    method, card = cfg["method"], cfg["dataset"]
    task, tasks = card["task"], classes().get(str(method.get("_target_")), {}).get("tasks")
    if tasks and task not in tasks:
        raise ConfigError(
            f"method {method.get('name')} is for {either(tasks)} data, and {card['name']} is {task}:"
            " `gpbench ls datasets` and `gpbench ls methods` show what fits together"
        )
    likelihood = method.get("likelihood", "auto")
    family = next(iter(likelihood)) if isinstance(likelihood, Mapping) and likelihood else likelihood
    others = [family for other, families in schema.LIKELIHOODS.items() if other != task for family in families]
    if family in others and family not in schema.LIKELIHOODS[task]:
        fit = either(("auto", *schema.LIKELIHOODS[task]))
        raise ConfigError(f"method.likelihood={family}: {card['name']} is {task}: choose {fit}")


def _check_trials(values: Mapping[str, Any], declared: Mapping[str, Any]) -> None:
    name = values.get("name")
    if values.get("rates") and not declared["rates"]:
        raise ConfigError(f"method.rates: {name} has no initial step size to choose: leave it empty")
    search = values.get("search") or {}
    if search and not declared["search"]:
        raise ConfigError(f"method.search: {name} has no settings to choose")
    for key, entries in dict(search).items():
        if declared["searchable"] and key not in declared["searchable"]:
            raise ConfigError(f"method.search: {name} can choose {' and '.join(declared['searchable'])}, not {key}")
        for entry in entries or ():
            schema.parse(declared["settings"].get(key, {"range": "number"})["range"]).check(
                f"method.search.{key}", entry
            )
