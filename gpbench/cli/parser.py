"""The command line of a verb, made from its function: the signature says the options, and the docstring describes them.

Positional parameters are words, keyword-only ones options; `*names` are any number of words, or at least one where the
docstring has "names (NAME...)".  What stands in brackets after a parameter there is the placeholder of its values.  The
paragraphs before `Args` are the description, further ones that begin with a line "examples:" or the like the epilog.
"""

import argparse
import itertools
import re
import sys
import textwrap
import types
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args, get_origin

from gpbench.errors import ConfigError

if TYPE_CHECKING:
    import inspect  # elsewhere where a verb is used: the version and the list of verbs are printed without it

_FLAGS = {"whole": "--all", "conditions": "--where", "division": "--division", "multirun": "-m"}
"""Options whose names are not those of their parameters, or whose parameters need no keyword in Python."""

_SHIPPED = "the runs that ship with gpbench"

_TEXTS: Mapping[str, tuple[str, str]] = {
    "names": ("NAME|TABLE|all...", "data sets, or the path of a table; target=COLUMN after it writes its card"),
    "run": ("RUN", "the id of a run or its first digits (`gpbench ls runs`)"),
    "last": ("", "the latest run"),
    "config_dir": ("DIR", "a folder with files of yours"),
    "results": ("DIR", f'a results folder, a file of `gpbench collect`, or "shipped", {_SHIPPED}; may be repeated'),
    "with_shipped": ("", f"also read {_SHIPPED}; without this they are read where no own run answers"),
    "setting": ("TEXT", "only this setting, such as m=15%%, or '' for none; may be repeated"),
    "format": ("", "format of the table; default: that of --out FILE (.md, .tex, .csv, .html, .txt), or terminal"),
    "plain": ("", "the bare table, without title, notes and provenance"),
    "out": (
        "FILE",
        "write the table to this file; its picture, where it has one, if FILE ends in .png, .pdf or .svg; if it ends in"
        " .zip an archive to publish: the table, its runs, what they cite (an RO-Crate)",
    ),
    "json": ("", "print JSON"),
    "mirror": ("DIR", "a folder of data files; default: GPBENCH_MIRROR"),
    "store": ("DIR", "the local store; default: GPBENCH_STORE, or datasets/"),
}
"""Placeholders and meanings of the options of many verbs; a docstring may describe them otherwise."""
_LEVELS = {"quiet": ("error", "print only errors on stderr"), "verbose": ("debug", "print more on stderr")}
"""Options of all verbs: the level of what is said (`gpbench.log`), and their meaning."""
_OUTPUT = {"Table": ("format", "plain", "out", "json"), "Listing": ("json",), "Answer": ("json",)}
"""Options of what a function returns, which `gpbench.cli.output.write` has."""

_ARGUMENT = re.compile(r"^    ([\w*, ]+)(?: \((.+?)\))?: (.*(?:\n     .*)*)", re.M)


class _Store(argparse.Action):
    """Stores the value of an option; a repeated one is an error, but where its values are a list, as A,B."""

    _values: Any = None

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if option_string and self._values is not None:
            if self.metavar != "A,B":
                raise ConfigError(f"{option_string} is given twice: leave one out")
            values = f"{self._values},{values}"
        self._values = values
        setattr(namespace, self.dest, values)


class _Help(argparse.RawDescriptionHelpFormatter):
    """Descriptions and epilogs with their line ends, and with lines no longer than those of the options."""

    def add_argument(self, action: argparse.Action) -> None:
        """Adds the help of an option, or of all verbs: argparse ignores that these are indented twice."""
        super().add_argument(action)
        if isinstance(action.choices, dict):
            self._action_max_length = max(self._action_max_length, 4 + max(map(len, action.choices)))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from gpbench.analysis.printing import fitted

        pieces = (
            fitted(line, width) if line[:1] == " " else textwrap.wrap(line, width) or [""] for line in text.split("\n")
        )
        return "\n".join(itertools.chain(*pieces)) + "\n"


class Parser(argparse.ArgumentParser):
    """An argument parser that knows no abbreviations, and whose errors are one line, without argparse's usage text."""

    def __init__(self, prog: str = "", **options: Any) -> None:
        super().__init__(prog=prog, allow_abbrev=False, formatter_class=_Help, **options)
        self._negative_number_matcher = re.compile(r"-\d")  # `--rows -5k` has a value, and no option has a digit
        for name in (None, "store"):
            self.register("action", name, _Store)

    def error(self, message: str) -> NoReturn:
        """Raises ConfigError with argparse's message and a reference to --help."""
        raise ConfigError(f"{message}; see {self.prog} --help")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Ends the program, as after --help; raises BrokenPipeError here rather than at exit."""
        sys.stdout.flush()
        super().exit(status, message)


class Verb:
    """A verb with its function and parser."""

    def __init__(self, name: str, function: Callable[..., Any]):
        import inspect

        from gpbench.arguments import parameters_of

        self.function = function
        returned = inspect.signature(function).return_annotation
        self.output = _OUTPUT.get(getattr(next(iter(get_args(returned)), returned), "__name__", ""), ())
        self.description, texts, epilog = _described(inspect.getdoc(function) or "")
        self.parser = Parser(f"gpbench {name}", description=self.description, epilog=epilog)
        self._words: list[str] = []
        self.rest = ""  # name of the parameter that takes any number of words
        parameters = parameters_of(function)
        if self.output:
            from gpbench.cli.output import write

            parameters += [parameter for parameter in parameters_of(write) if parameter.name in self.output]
        for parameter in parameters:
            self._add(parameter, *texts.get(parameter.name, ("", "")))
        levels = self.parser.add_mutually_exclusive_group()
        for name, (level, text) in _LEVELS.items():
            flags = f"-{name[0]}", f"--{name}"
            levels.add_argument(*flags, action="store_const", const=level, dest="level", help=text)

    def parse(self, words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
        """The positional and the keyword arguments of the function, and with a table those of its output."""
        args, rest = self.parser.parse_known_args(words)
        values = vars(args)
        # argparse parses only the first of several groups of words, as in `run a=1 -m b=2`
        if unknown := [word for word in rest if word.startswith("-") or not self.rest]:
            hint = "; settings are words, as in dataset=heart run.jobs=2" if self.rest == "overrides" else ""
            if "method" in values and not unknown[0].startswith("-"):
                hint = "; names of methods and data sets are --method A,B and --dataset A,B"
            self.parser.error(f"unrecognized: {' '.join(unknown)}{hint}")
        if values.pop("with_shipped", False):
            from gpbench import paths

            own = paths.results_dir()
            values["results"] = [*(values["results"] or ([own] if own.exists() else [])), "shipped"]
        positional = [values.pop(name) for name in self._words]
        return [*positional, *(values.pop(self.rest) if self.rest else ()), *rest], values

    def _add(self, parameter: "inspect.Parameter", placeholder: str, text: str) -> None:
        """Adds the words or the option of a parameter; one without a description is hidden."""
        name, options = parameter.name, _reading(parameter)
        default = ("", f"only runs with these values of {name}") if "metavar" in options else ("", "")
        if name == "results" and "action" not in options:
            default = "DIR", "the results folder"
        default = default if any(default) else _TEXTS.get(name, default)
        placeholder = placeholder or default[0]
        options["help"] = (text if not text.startswith("as for") else "") or default[1] or argparse.SUPPRESS
        options |= {"metavar": placeholder.removesuffix("...")} if placeholder else {}
        is_required = parameter.default is parameter.empty
        if parameter.kind is parameter.KEYWORD_ONLY or name in _FLAGS:
            flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
            options |= {"required": True} if is_required else {"default": options.get("default", parameter.default)}
            self.parser.add_argument(*([flag] if "--" in flag else [flag, f"--{name}"]), dest=name, **options)
            if name == "results" and "action" in options:
                self._add(parameter.replace(name="with_shipped", default=False, annotation=bool), "", "")
            return
        if parameter.kind is parameter.VAR_POSITIONAL:
            self.rest = name
            options |= {"nargs": "+"} if placeholder.endswith("...") else {"nargs": "*", "default": []}
        else:
            self._words.append(name)
            options |= {} if is_required else {"nargs": "?", "default": parameter.default}
        self.parser.add_argument(name, **options if "choices" in options else {"metavar": name.upper(), **options})


def _reading(parameter: "inspect.Parameter") -> dict[str, Any]:
    """How argparse reads the values of a parameter."""
    from gpbench.arguments import kinds

    hints = kinds(parameter.annotation)
    first, several = hints[0], next((kind for kind in hints if get_origin(kind) is Sequence), None)
    if first is bool:
        return {"action": "store_true"}
    if parameter.name == "format":
        from gpbench.analysis.formats import FORMATS

        return {"choices": [*FORMATS]}  # a dict is of verbs
    if get_origin(first) is Literal:
        return {"choices": get_args(first)}
    is_one = parameter.name == "conditions"  # a condition may have commas
    if several and (several is first or is_one or any(get_origin(kind) is PathLike for kind in hints)):
        default: list[str] | None = None if types.NoneType in hints else []
        return {"action": "append", "default": default} | ({"type": Path} if Path in get_args(several) else {})
    if several:
        return {"metavar": "A,B"}
    return {"type": first} if first in (int, float, Path) else {}


def _described(doc: str) -> tuple[str, dict[str, tuple[str, str]], str]:
    """The description, the placeholder and text of each parameter, and the epilog in a docstring."""
    description, epilog = [], []
    texts: dict[str, tuple[str, str]] = {}
    for paragraph in re.split(r"\n\n(?=\S)", doc):
        head, _, below = paragraph.partition("\n")
        if head == "Args:":
            for names, placeholder, text in _ARGUMENT.findall(below):
                line = " ".join(text.split()).replace("%", "%%").removesuffix(".")
                texts |= {name.strip(" *"): (placeholder, line) for name in names.split(",")}
        elif head.endswith(":") and below.startswith("  "):
            epilog += [paragraph] if head not in ("Returns:", "Raises:") else []
        else:
            description.append(" ".join(paragraph.partition("\n\n")[0].split()))
    return "\n\n".join(description), texts, "\n\n".join(epilog)
