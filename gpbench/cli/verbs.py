"""The command line of a verb, made from its function: the signature says the options, and the docstring describes them.

Positional parameters are words, keyword-only ones options; `*names` are any number of words, or at least one where the
docstring has "names (NAME...)".  What stands in brackets after a parameter there is the placeholder of its values.  The
paragraphs before `Args` are the description, further ones that begin with a line "examples:" or the like the epilog.
"""

import argparse
import importlib
import itertools
import re
import sys
import textwrap
import types
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args, get_origin

from gpbench.errors import ConfigError, exit_error, require_known

if TYPE_CHECKING:
    import inspect  # elsewhere where a verb is used: the version and the list of verbs are printed without it

VERBS = {
    "run": "train and score methods on data sets; sweeps with -m",
    "reproduce": "run the missing jobs of a paper's table or figure, and make it",
    "table": "tables of recorded results beside the published values",
    "plot": "figures of papers from recorded runs",
    "rank": "average ranks of methods over data sets, as table and diagram",
    "leaderboard": "scores of methods within a budget of seconds; the place of your own",
    "best": "which methods win at data of some task and size, and how sure that is",
    "compare": "two methods, protocols, presets or commits, split by split",
    "power": "which difference recorded splits can show, and how many they need",
    "verify": "whether recorded runs support what the papers assert",
    "report": "a static site of all recorded runs",
    "import": "score and record predictions of other programs",
    "collect": "merge the records of several folders into one Parquet file",
    "ls": "methods, data sets, protocols, experiments, runs",
    "show": "one recorded run",
    "rm": "delete recorded runs",
    "predict": "predict new rows with a recorded run",
    "data": "fetch and verify data sets",
    "check": "whether a method, a kernel, a likelihood or a metric does what is required of it",
    "cite": "BibTeX of methods, data sets, protocols, runs",
    "doctor": "devices, versions, folders, and missing data sets",
}
_ACTIONS = {"data": ("ls", "info", "check", "fetch", "verify", "rows", "probe"), "leaderboard": ("show", "add")}
"""The actions of verbs that have several; the first one of `leaderboard` needs no word."""
_OF_PYTHON = {"best", "compare", "leaderboard show", "ls", "power", "rank", "table", "verify"}
"""Functions of the Python interface that are verbs; the others are in `gpbench.cli.VERB`."""
_ELSEWHERE = {
    "import": "import_:import_files",
    "predict": "recorded:predict",
    "rm": "recorded:rm",
    "show": "recorded:show",
}
_FLAGS = {"whole": "--all", "details": "--why", "conditions": "--where", "division": "--division", "multirun": "-m"}
"""Options whose names are not those of their parameters, or whose parameters need no keyword in Python."""

_TEXTS: Mapping[str, tuple[str, str]] = {
    "names": ("NAME|TABLE|all...", "data sets, or the path of a table; target=COLUMN after it writes its card"),
    "run": ("RUN", "the id of a run or its first digits (`gpbench ls runs`)"),
    "last": ("", "the latest run"),
    "config_dir": ("DIR", "a folder with files of yours"),
    "results": (
        "DIR",
        'a results folder, a file of `gpbench collect`, or "shipped", the runs that ship with gpbench; may be repeated',
    ),
    "with_shipped": (
        "",
        "also read the runs that ship with gpbench; without this they are read where no own run answers",
    ),
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
_OUTPUT = {"Table": ("format", "plain", "out", "json"), "Listing": ("json",), "Answer": ("json",)}
"""Options of what a function returns, which `gpbench.cli.output.write` has."""

_ARGUMENT = re.compile(r"^    ([\w*, ]+)(?: \((.+?)\))?: (.*(?:\n     .*)*)", re.M)


class _Store(argparse.Action):
    """Stores the value of an option; of a repeated one all values where these are a list, as A,B.  Raises ConfigError:
    another option is repeated.
    """

    _values: Any = None

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if option_string and self._values is not None:
            if self.metavar != "A,B":
                raise ConfigError(f"{option_string} is given twice: leave one out")
            values = f"{self._values},{values}"
        self._values = values
        setattr(namespace, self.dest, values)


class _Help(argparse.RawDescriptionHelpFormatter):
    """Descriptions and epilogs with their line ends, and with lines no longer than those of the options.

    The longest verb stands on one line with its text: argparse ignores that verbs are indented twice.
    """

    def __init__(self, prog: str):
        super().__init__(prog)
        if prog == "gpbench":
            self._action_max_length = 4 + max(map(len, VERBS))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from gpbench.analysis.printing import fitted

        pieces = (
            fitted(line, width) if line[:1] == " " else textwrap.wrap(line, width) or [""] for line in text.split("\n")
        )
        return "\n".join(itertools.chain(*pieces)) + "\n"


class _Parser(argparse.ArgumentParser):
    """An argument parser that knows no abbreviations, and whose errors are one line, without argparse's usage text."""

    def __init__(self, prog: str = "", **options: Any) -> None:
        super().__init__(prog=prog, allow_abbrev=False, formatter_class=_Help, **options)
        for name in (None, "store"):
            self.register("action", name, _Store)

    def error(self, message: str) -> NoReturn:
        """Raises ConfigError with argparse's message and a reference to --help."""
        raise ConfigError(f"{message}; see {self.prog} --help")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Ends the program, as after --help; raises BrokenPipeError here rather than at exit."""
        sys.stdout.flush()
        super().exit(status, message)


def call(argv: Sequence[str]) -> int:
    """Calls the function that these words after `gpbench` ask for, writes the table that it returns, and returns the
    exit code.  Raises ConfigError."""
    argv = [*argv[1:], "--help"] if argv[:1] == ["help"] else list(argv)  # git and others have it, so people type it
    verb = next((word for word in argv if not word.startswith("-")), None)
    if verb is None or argv[0] in ("-h", "--help"):
        return _overview(argv)
    require_known(verb, VERBS, f"no verb {verb!r}")
    if argv[0] != verb:
        _overview(argv[: argv.index(verb)])
    name, words = split_words([verb, *argv[argv.index(verb) + 1 :]])
    if not name:
        return _overview(words, verb, {action: Verb(f"{verb} {action}").description for action in _ACTIONS[verb]})
    entry = Verb(name)
    arguments, options = entry.parse(words)
    if options.get("config_dir"):
        from gpbench import targets

        options["config_dir"] = targets.add_folders(options["config_dir"])
    output = {key: options.pop(key) for key in entry.output}
    if "out" in output and "dry_run" in options:
        from gpbench.cli.output import check_output

        check_output(output["out"], output["format"])  # before the hours of training
    try:
        result = entry.function(*arguments, **options)
    except SystemExit as error:  # of a module of the user's: ours return their codes
        raise exit_error(error) from error
    if not output or isinstance(result, int):
        return result or 0
    from gpbench.cli.output import write

    write(result, **output, config_dir=options.get("config_dir", ()))
    return result.exit_code


def split_words(argv: Sequence[str]) -> tuple[str, list[str]]:
    """The name of a verb, with that of its action, and the words after it; "" where the action is missing.  Raises
    ConfigError."""
    verb, *words = argv
    if (actions := _ACTIONS.get(verb)) is None:
        return verb, words
    if words and not words[0].startswith("-"):
        action, *words = words
    else:
        action = "show" if verb == "leaderboard" else ""
    if action:
        require_known(action, actions, f"no action {action!r} of {verb}")
    return f"{verb} {action}" if action else "", words


def _overview(words: Sequence[str], verb: str = "", texts: Mapping[str, str] = VERBS) -> int:
    """Prints the help that lists all verbs, or the actions of one, or the version.  Raises ConfigError for other words
    than the options of those."""
    from gpbench.version import __version__

    parser = _Parser(
        f"gpbench {verb}".rstrip(),
        description="" if verb else "Scalable Gaussian-process methods beside the numbers their papers published.",
        epilog=f"gpbench {verb} ACTION --help describes an action"
        if verb
        else "gpbench VERB --help describes a verb, for example gpbench run --help",
    )
    if not verb:
        parser.add_argument("--version", action="version", version=f"gpbench {__version__}")
    names = "|".join(texts) if verb else "VERB"
    subparsers = parser.add_subparsers(
        title="actions" if verb else "verbs", metavar=names, required=bool(verb), dest="_"
    )
    for name, text in texts.items():
        subparsers.add_parser(name, help=text)
    _, rest = parser.parse_known_args(words)
    if rest:
        raise ConfigError(f"unrecognized: {' '.join(rest)}; see {parser.prog} --help")
    parser.print_help()
    return 0


def _function_of(name: str) -> Callable[..., Any]:
    """The function of a verb, or of a verb and its action, imported."""
    verb, *_, last = name.split() * 2
    if name in _OF_PYTHON:
        return getattr(importlib.import_module("gpbench"), verb)
    module, _, function = _ELSEWHERE.get(verb, f"{verb}:{last}").partition(":")
    return getattr(importlib.import_module(f"gpbench.cli.{module}"), function)


class Verb:
    """A verb with its function and parser."""

    def __init__(self, name: str):
        import inspect

        from gpbench.arguments import parameters_of

        self.function = _function_of(name)
        returned = inspect.signature(self.function).return_annotation
        returned = next(iter(get_args(returned)), returned)
        self.output = _OUTPUT.get(getattr(returned, "__name__", ""), ())
        self.description, texts, epilog = _described(inspect.getdoc(self.function) or "")
        self.parser = _Parser(f"gpbench {name}", description=self.description, epilog=epilog)
        self._words: list[str] = []
        self.rest = ""  # name of the parameter that takes any number of words
        parameters = parameters_of(self.function)
        if self.output:
            from gpbench.cli.output import write

            parameters += [parameter for parameter in parameters_of(write) if parameter.name in self.output]
        for parameter in parameters:
            self._add(parameter, *texts.get(parameter.name, ("", "")))

    def parse(self, words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
        """The positional and the keyword arguments of the function that these words stand for, and with a table those
        of its output.  Raises ConfigError."""
        args, rest = self.parser.parse_known_args(words)
        values = vars(args)
        # argparse parses only the first of several groups of words, as in `run a=1 -m b=2`
        if unknown := [word for word in rest if word.startswith("-") or not self.rest]:
            hint = "settings are words, as in dataset=heart run.jobs=2; " if self.rest == "overrides" else ""
            if "method" in values and not unknown[0].startswith("-"):
                hint = "names of methods and data sets are --method A,B and --dataset A,B; "
            raise ConfigError(f"unrecognized: {' '.join(unknown)}; {hint}see {self.parser.prog} --help")
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

        return {"choices": FORMATS}
    if get_origin(first) is Literal:
        return {"choices": get_args(first)}
    if several and (several is first or any(get_origin(kind) is PathLike for kind in hints)):
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
