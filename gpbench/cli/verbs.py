"""The verbs of the command line: what they are, where their functions are, and how they are called."""

import importlib
from collections.abc import Mapping, Sequence

from gpbench.cli.parser import Parser, Verb
from gpbench.errors import exit_error, require_known
from gpbench.log import set_level
from gpbench.version import __version__

VERBS = {
    "run": "train and score methods on data sets; sweeps with -m",
    "reproduce": "run the missing jobs of a paper's table or figure, and make it",
    "table": "tables of recorded results beside the published values",
    "plot": "figures of papers from recorded runs",
    "rank": "average ranks of methods over data sets, as table and diagram",
    "leaderboard": "which methods beat which on data that chose no default; your own beside them",
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
ACTIONS = {
    "data": ("ls", "info", "check", "fetch", "verify", "rows", "probe"),
    "leaderboard": ("show", "add", "verify"),
}
"""The actions of verbs that have several; the first one of `leaderboard` needs no word."""
_DESCRIPTION = "Scalable Gaussian-process methods beside the numbers their papers published."
_EPILOG = """gpbench VERB --help describes a verb, for example gpbench run --help
eval "$(register-python-argcomplete gpbench)" lets bash and zsh complete words"""
_OF_PYTHON = ("best", "compare", "leaderboard show", "ls", "power", "rank", "table", "verify")
_MODULES = dict.fromkeys(_OF_PYTHON, "") | dict.fromkeys(("cite", "import", "predict", "rm", "show"), ".cli.recorded")
"""The modules of functions of the Python interface that are verbs, and others; the rest are in `gpbench.cli.VERB`."""
_FUNCTIONS = {"leaderboard show": "leaderboard", "import": "import_"}


def call(argv: Sequence[str]) -> int:
    """Calls the function that these words ask for, writes the table that it returns, and returns the exit code."""
    argv = [*argv[1:], "--help"] if argv[:1] == ["help"] else list(argv)  # git and others have it, so people type it
    verb = next((word for word in argv if not word.startswith("-")), None)
    if verb is None or argv[0] in ("-h", "--help"):
        return _overview(argv)
    require_known(verb, VERBS, f"no verb {verb!r}")
    if argv[0] != verb:
        _overview(argv[: argv.index(verb)])
    name, words = split_words([verb, *argv[argv.index(verb) + 1 :]])
    if not name:
        return _overview(words, verb, {action: verb_of(f"{verb} {action}").description for action in ACTIONS[verb]})
    entry = verb_of(name)
    arguments, options = entry.parse(words)
    set_level(options.pop("level"))
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
    """The name of a verb, with that of its action, and the words after it; "" where the action is missing."""
    verb, *words = argv
    if (actions := ACTIONS.get(verb)) is None:
        return verb, words
    is_named = bool(words) and not words[0].startswith("-")
    if not is_named and verb != "leaderboard":
        return "", words
    action = words.pop(0) if is_named else "show"
    require_known(action, actions, f"no action {action!r} of {verb}")
    return f"{verb} {action}", words


def _overview(words: Sequence[str], verb: str = "", texts: Mapping[str, str] = VERBS) -> int:
    """Prints the help that lists all verbs, or the actions of one, or the version."""
    if verb:
        parser = Parser(f"gpbench {verb}", description="", epilog=f"gpbench {verb} ACTION --help describes an action")
        title, names = "actions", "|".join(texts)
    else:
        parser = Parser("gpbench", description=_DESCRIPTION, epilog=_EPILOG)
        parser.add_argument("--version", action="version", version=f"gpbench {__version__}")
        title, names = "verbs", "VERB"
    subparsers = parser.add_subparsers(title=title, metavar=names, required=bool(verb), dest="_")
    for name, text in texts.items():
        subparsers.add_parser(name, help=text)
    _, rest = parser.parse_known_args(words)
    if rest:
        parser.error(f"unrecognized: {' '.join(rest)}")
    parser.print_help()
    return 0


def verb_of(name: str) -> Verb:
    """A verb, or a verb and its action, with its function imported."""
    verb, *_, last = name.split() * 2
    module = importlib.import_module(f"gpbench{_MODULES.get(name, f'.cli.{verb}')}")
    return Verb(name, getattr(module, _FUNCTIONS.get(name, last)))
