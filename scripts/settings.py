"""Write gpbench/config/settings.json and the reference pages that are made from declarations, cards and experiments.

python scripts/settings.py            # write all
python scripts/settings.py --check    # exit code 1 where one of them is not current
"""

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import catalogue
import optax
import yaml
from schemas import schemas

from gpbench import data_registry, paths, registry, schema
from gpbench.config import cards, declared
from gpbench.config.build import declaration_of
from gpbench.config.compose import Composer
from gpbench.config.values import PROTOCOL as KEYS
from gpbench.core import optimisers
from gpbench.errors import as_word
from gpbench.methods.base import Method

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"


def members(group: str) -> list[str]:
    """The names of the files of a group."""
    return sorted(path.stem for path in (paths.conf_dir() / group).glob("*.yaml"))


def class_at(path: str) -> type[Method]:
    """The class of a dotted path."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _written(entry: dict[str, Any]) -> dict[str, Any]:
    """The declarations of a class with defaults as JSON has them."""
    written = {
        name: {key: _plain(value) if key == "default" else value for key, value in setting.items()}
        for name, setting in entry["settings"].items()
    }
    return {**entry, "settings": written}


def _plain(value: Any) -> Any:
    """A default as JSON has it; a kernel, a likelihood or an optimiser as its text."""
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def declarations() -> dict[str, Any]:
    """The declarations of the classes of all our methods and the ranges of our optimisers, by dotted path."""
    composer = Composer()
    targets = {composer.compose([f"method={name}"])["method"]["_target_"] for name in members("method")}
    return {
        "methods": {path: _written(declaration_of(class_at(path))) for path in sorted(targets)},
        "optimisers": {f"{optimisers.__name__}.{name}": _arguments(function) for name, function in _optimisers()},
    }


def _optimisers() -> list[tuple[str, Any]]:
    """The functions of gpbench.core.optimisers that return an optimiser, by name."""
    functions = inspect.getmembers(optimisers, inspect.isfunction)
    is_optimiser = lambda f: inspect.signature(f).return_annotation is optax.GradientTransformation
    return [(name, f) for name, f in functions if f.__module__ == optimisers.__name__ and is_optimiser(f)]


def _arguments(function: Any) -> dict[str, str]:
    """The ranges of a function's arguments, from their annotations."""
    parameters = inspect.signature(function).parameters
    return {name: parameter.annotation.__metadata__[0] for name, parameter in parameters.items()}


def page() -> str:
    """The reference of settings in Markdown."""
    lines = [
        "# Settings",
        "",
        "Settings of every method and protocol: admissible values, the value in the file, and the meaning.",
        "`scripts/settings.py` makes this page from the declarations at the classes.  A command line changes a",
        "setting with `method.NAME=VALUE` or `protocol.NAME=VALUE`.  The [keys of cards](#cards) follow.",
        "",
        "## Methods",
    ]
    composer, classes = Composer(), declarations()["methods"]
    meanings = {name: s["meaning"] for entry in classes.values() for name, s in entry["settings"].items()}
    for name in members("method"):
        node = composer.compose([f"method={name}"])["method"]
        entry, path = classes[node["_target_"]], paths.conf_dir() / "method" / f"{name}.yaml"
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        likelihood = registry.LIKELIHOODS.get(str(node.get("likelihood")))  # None: that of the task
        tasks = [task for task in entry["tasks"] if likelihood is None or task in likelihood.tasks]
        facts = [f"Tasks: {', '.join(tasks)}."]
        facts += [f"Kernels: {', '.join(entry['kernels'])}."] if entry["kernels"] else []
        facts += [f"Likelihoods: {', '.join(entry['likelihoods'])}."] if entry["likelihoods"] else []
        words = ", ".join(f"{key}={as_word(value)}" for key, value in raw.get("regression", {}).items())
        facts += [f"In regression: `{words}`."] if words else []
        lines += ["", f"### {name}", "", f"`{node['_target_']}`.  {'  '.join(facts)}", "", *_HEAD]
        for key, setting in entry["settings"].items():
            value = raw.get(key, node.get(key, setting.get("default")))
            lines.append(_row(key, setting["range"], value, setting["meaning"]))
    lines += ["", "## Protocols", "", "The values are those of `protocol=clean`.", "", *_HEAD]
    for key, value in composer.compose([])["protocol"].items():
        words, meaning = KEYS[key] if key in KEYS else (declared.ranges()[key], meanings[key])
        lines.append(_row(key, words, value, meaning))
    return "\n".join(lines + keys_of_cards()) + "\n"


_HEAD = ["| setting | values | default | meaning |", "|---|---|---|---|"]


def _row(key: str, words: Any, value: Any, meaning: str) -> str:
    text = schema.parse(words).text if words != "any" else ""
    cells = (f"`{key}`", text, f"`{as_word(value)}`", meaning)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def keys_of_cards() -> list[str]:
    """The lines about the keys of cards, of their sources with readers, and of their split sets."""
    tables = {"A card": cards.CARD, "Every source": cards.SOURCE, "`splits`": cards.SPLITS}
    tables |= {f"A source of kind `{name}`": keys for name, keys in cards.KINDS.items()}
    tables |= {f"A source with the reader `{name}`": entry.options for name, entry in data_registry.READERS.items()}
    tables |= {f"`splits` with the set `{name}`": entry.options for name, entry in data_registry.SPLIT_SETS.items()}
    lines = ["", "## Cards", "", "The keys of cards of data sets; [Data](data.md) explains them."]
    for title, keys in tables.items():
        if not keys.keys:
            continue
        lines += ["", f"{title} has these keys:", "", "| key | values | default | meaning |", "|---|---|---|---|"]
        for name, key in keys.keys.items():
            default = "required" if key.required else "" if key.default is None else f"`{as_word(key.default)}`"
            text = schema.parse(key.range).text if key.range != "any" else ""
            lines.append(f"| `{name}` | {text} | {default} | {key.meaning} |")
    return lines


def main() -> int:
    """Write or check the files; the exit code."""
    texts = {
        declared.FILE: json.dumps(declarations(), indent=1, ensure_ascii=False) + "\n",
        REFERENCE / "settings.md": page(),
        REFERENCE / "datasets.md": catalogue.data_sets(),
        REFERENCE / "experiment_list.md": catalogue.experiments(),
    }
    for name, content in schemas().items():
        texts[REFERENCE / "schemas" / f"{name}.json"] = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path} is not current: run scripts/settings.py")
        return bool(stale)
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(texts[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
