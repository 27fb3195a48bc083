"""From the words of a command line to a plain, resolved configuration; every mistake in them is one line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from gpbench import own_metrics, paths, plugins, registry, yamls
from gpbench.config import cards, declared, merge, words
from gpbench.config.values import PROTOCOL_DEFAULTS, Config, check_values
from gpbench.config.words import GROUPS, Word
from gpbench.errors import ConfigError, either, located, nearest, refuse, require, require_known
from gpbench.registry import TARGET


def compose(overrides: Sequence[str], config_dirs: Sequence[Path] = ()) -> Config:
    """The configuration that the words of a command line stand for, as `Composer.compose` makes it."""
    return Composer(config_dirs).compose(overrides)


class Composer:
    """Composes any number of configurations with the files of the same folders."""

    def __init__(self, config_dirs: Sequence[Path] = ()):
        self.config_dirs, self.folders = config_dirs, plugins.folders(config_dirs)
        own_metrics.declarations(self.folders)  # an error in one stops every job before it starts
        self._groups = {folder.name for folder in paths.conf_dir().glob("*/")}
        self._bases: dict[tuple[str, ...], tuple[dict, dict]] = {}
        self._protocols: dict[str, dict[str, Any]] = {}
        self._sources: dict[str, list[dict[str, Any]]] = {}

    def compose(self, overrides: Sequence[str]) -> Config:
        """The configuration that the words of a command line stand for; a user's class is not imported."""
        ((settled,), _) = self.applicable([overrides])
        parsed = words.read(settled)
        for word in parsed:
            self._check(word)
        choices = [word for word in parsed if self._is_choice(word)]
        base, defaults = self._choose(choices)
        changes = [_with_sign(word, base.get("method")) for word in parsed if word not in choices]
        cfg = base
        for word in sorted(changes, key=lambda word: word.key.startswith("method.")):  # which refers to the protocol
            if word.sign:
                require_known(word.key.partition(".")[0], base, f"{word.text}: no such section")
            cfg = merge.changed(cfg, word)
        cfg = merge.resolved(cfg)
        check_values(cfg)
        run = cfg["run"]
        run["results"] = run["results"] or str(paths.results_dir())
        fault = f"run.results={run['results']}: a folder of this ending would be read as a file: name another one"
        require(not run["results"].endswith(".parquet"), fault, ConfigError)
        files = {group: self._users_file(group, choices, defaults) for group in GROUPS}
        for group, file in files.items():
            if not isinstance(cfg.get(group), dict):
                hint = f"choose one, as in {group}=NAME (`gpbench ls {group}s` lists them)"
                whole = f"{file}: must be a mapping, with lines of KEY: VALUE"
                raise ConfigError(whole if file else f"{group} is not set; {hint}")
            if (name := cfg[group].get("name")) != defaults.get(f"{group}.name"):
                raise ConfigError(f"{group}.name={name}: a name is that of its file; choose one by {group}=NAME")
        cfg["method"], cfg["implied"] = _reserved(cfg["method"], "implied")
        sources = self._check_sections(cfg, f"dataset ({files['dataset']})" if files["dataset"] else "dataset")
        if cfg["protocol"].get("split_indices") == "int8":
            cards.read_indices_as_int8(cfg["dataset"])
        # by text: 1 and 1.0 are equal to Python, and may be two settings of a method
        same = lambda value, default: value is default or repr(value) == repr(default)
        leaves = merge.leaves({group: cfg[group] for group in GROUPS})
        cfg["changes"] = {k: value for k, value in leaves if not (k in defaults and same(value, defaults[k]))}
        cfg["explicit"] = sorted({word.key for word in parsed if word not in choices and word.key.startswith("method")})
        cards.check_changes(cfg["dataset"], cfg["changes"])
        cfg["dataset"]["sources"] = sources
        cfg["config_dirs"] = [str(folder) for folder in self.config_dirs]
        return cast(Config, cfg)

    def applicable(self, jobs: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[str]]:
        """The jobs with their optional words that have a key to set, each once; a line for each key that some lack."""
        if not (keys := dict.fromkeys(_key(text) for job in jobs for text in job if _is_optional(text))):
            return [list(job) for job in jobs], []
        lines = []
        for key in keys:
            having, lacking = self._methods(key, jobs)
            section, _, name = key.partition(".")
            if not having and (section != "method" or name.partition(".")[0] not in declared.ranges()):
                hint = nearest(name.partition(".")[0], declared.ranges())
                raise ConfigError(f"{words.OPTIONAL}{key}: no job has the key {key}; {hint}")
            if lacking:
                lines.append(f"{key} is not set for {either(lacking, 'and')}: no such key")
        settled = [
            [text.removeprefix(words.OPTIONAL) for text in job if not _is_optional(text) or self._lookup(job, text)[1]]
            for job in jobs
        ]
        return [list(job) for job in dict.fromkeys(map(tuple, settled))], lines

    def advice(self, jobs: Sequence[Sequence[str]]) -> str | None:
        """The line about a key that some methods of a sweep lack; None where there is none."""
        for key in dict.fromkeys(_key(word) for job in jobs for word in job if word.startswith("method.")):
            having, lacking = self._methods(key, jobs)
            if having and lacking:
                verbs = "have" if len(having) > 1 else "has", "do" if len(lacking) > 1 else "does"
                methods = f"{either(having, 'and')} {verbs[0]} it, {either(lacking, 'and')} {verbs[1]} not"
                return f"{key}: {methods}; {words.OPTIONAL}{key}=VALUE sets it only where it exists"
        return None

    def _methods(self, key: str, jobs: Sequence[Sequence[str]]) -> tuple[list[str], list[str]]:
        """The methods that have a key, and those that lack it, of the jobs with a word for it."""
        methods = dict.fromkeys(self._lookup(job, key) for job in jobs if key in map(_key, job))
        return [name for name, exists in methods if exists], [name for name, exists in methods if not exists]

    def _lookup(self, job: Sequence[str], text: str) -> tuple[str, bool]:
        """The name of the method that a job chooses; True if its method, protocol or data set has the word's key."""
        key, parsed = _key(text), words.read([word for word in job if not _is_optional(word)])
        base, defaults = self._choose([word for word in parsed if self._is_choice(word)])
        section, _, name = key.partition(".")
        is_declared = section == "method" and name in _declared_settings(base.get("method"), {})
        in_file = any(other == key or other.startswith(f"{key}.") for other in defaults)
        return str(defaults.get("method.name") or defaults.get("method._target_")), in_file or is_declared

    def restore(self, stored: Mapping[str, Any]) -> Config:
        """The configuration of a recorded run, as far as a record can say it, checked as a command line is.  Folders,
        stores, mirrors and the sources of the data are the user's own: a record may come from somebody else."""
        if not all(isinstance(stored.get(group), dict) and stored[group] for group in GROUPS):
            mend = "put its config.yaml back, or train it again with run.again=true"
            raise ConfigError(f"the record has no whole configuration: {mend}")
        name = str(stored["dataset"].get("name"))
        if not cards.NAME.fullmatch(name):
            raise ConfigError(f"{name!a} is no name of a data set")
        base = self.compose([f"dataset={name}"])
        keys = (*GROUPS, "split", "output", "seed", "changes", "implied")
        cfg: dict[str, Any] = {**base, **{key: stored[key] for key in keys if key in stored}}
        cfg["dataset"] = {**stored["dataset"], "sources": base["dataset"]["sources"]}
        cfg["run"] = {**base["run"], "device": (stored.get("run") or {}).get("device")}
        check_values(cfg)
        self._check_sections(cfg, "dataset")
        return cast(Config, cfg)

    def _check_sections(self, cfg: dict, subject: str) -> list[dict[str, Any]]:
        """Checks and normalises the sections of the groups; returns the sources of the card, with readers expanded."""
        method = dict(cfg["method"])
        for kind in registry.KINDS.keys() & method.keys():
            method[kind] = registry.expand(kind, method[kind], self.folders)
            if str(method.get(TARGET, "gpbench.")).startswith("gpbench."):  # of a user's class it may be something else
                with located(f"method.{kind}"):
                    registry.read(kind, method[kind], cfg["dataset"].get("task"))
        declared.check_method(method)
        cfg["method"] = declared.canonical(method)
        # many jobs have the same protocol and card
        protocol_, card = repr(cfg["protocol"]), repr((subject, cfg["dataset"]))
        if protocol_ not in self._protocols:
            declared.check_protocol(cfg["protocol"])
            self._protocols[protocol_] = declared.canonical(cfg["protocol"])
        cfg["protocol"] = dict(self._protocols[protocol_])
        if card not in self._sources:
            self._sources[card] = cards.check(cfg["dataset"], subject, self.folders)
        return list(self._sources[card])

    def _choose(self, choices: Sequence[Word]) -> tuple[dict, dict]:
        """The unresolved configuration that the choices of groups give, and its resolved values by dotted key."""
        fault = "dataset, method and protocol each take a name, as in method=sep"
        for word in choices:
            require(word.sign == "~" or isinstance(word.value, str), f"{word.text}: {fault}", ConfigError)
        key = tuple(word.text for word in choices)
        if key not in self._bases:
            base = merge.choose({word.key: word.value for word in choices}, self.folders)
            if isinstance(node := base.get("protocol"), dict):
                base = {**base, "protocol": {**node, **{k: v for k, v in PROTOCOL_DEFAULTS.items() if k not in node}}}
            if isinstance(method := base.get("method"), dict):
                is_regression = (base.get("dataset") or {}).get("task") == "regression"
                is_paper = isinstance(node, dict) and node.get("paper") is True
                for name, applies in (("regression", is_regression), ("papers", is_paper)):
                    method, own = _reserved(method, name)
                    method |= own if applies else {}
                base = {**base, "method": method}
            values = merge.resolved(base, allow_missing=True)
            self._bases[key] = base, dict(merge.leaves({group: values[group] for group in GROUPS if group in values}))
        return self._bases[key]

    def _users_file(self, group: str, choices: Sequence[Word], values: Mapping[str, Any]) -> Path | None:
        """The file of the chosen member of a group, checked; None where it is built in."""
        name = values.get(f"{group}.name")
        names = [str(word.value) for word in choices if word.key == group] or [str(name)]
        files = (folder / group / f"{names[-1]}.yaml" for folder in self.folders)
        if file := next((file for file in files if file.is_file()), None):
            if group == "method":  # one that extends another's file has its name
                content = yamls.read(file)
                name = content.get("name") if isinstance(content, dict) else None
            cards.check_file(file, name)
        return file

    def _check(self, word: Word) -> None:
        """Raises ConfigError for a word that Hydra takes and is none of ours."""
        is_choice, is_group = self._is_choice(word), word.key in GROUPS
        is_other = is_choice and not is_group
        if is_hydra := word.key.startswith("hydra"):
            words.require_launcher(word.text)
        mend = "; `gpbench reproduce ID` runs an experiment" if word.key == "experiment" else ""
        is_removal = word.sign == "~" and not word.key.startswith(("method", "dataset"))
        refuse(
            f"{word.text}: ",
            (is_hydra, "only sweeps have a launcher: add -m, or leave it out"),
            (is_choice and is_group and word.sign.startswith("+"), f"write {word.text.lstrip('+')}, without +"),
            (word.sign == "@" or is_other, f"only dataset, method and protocol choose a file{mend}"),
            (is_removal, f"{word.key} cannot be removed; set another value, or leave the word out"),
        )

    def _is_choice(self, word: Word) -> bool:
        """True if a word chooses a file."""
        return word.key.partition("/")[0] in self._groups and not isinstance(word.value, dict)


def _is_optional(text: str) -> bool:
    return text.startswith(words.OPTIONAL)


def _key(text: str) -> str:
    return text.partition("=")[0].removeprefix(words.OPTIONAL)


def _declared_settings(method: Any, others: Mapping[str, Any]) -> Mapping[str, Any]:
    """The declared settings of the class of a method's section; `others` of one that is not gpbench's."""
    entry = declared.classes().get(str(method.get("_target_"))) if isinstance(method, dict) else None
    return entry["settings"] if entry else others


def _with_sign(word: Word, method: Any) -> Word:
    """The word with a + where it sets a declared field of the method that its file lacks."""
    section, _, name = word.key.partition(".")
    if section != "method" or word.sign or not isinstance(method, dict) or name in method:
        return word
    known = _declared_settings(method, declared.ranges())  # a user's class is checked where it is imported
    return Word(f"+{word.text}", "+", word.key, word.value) if name in known else word


def _reserved(method: dict[str, Any], name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A method without a reserved section of its file, and the section: `regression` or `papers`, its settings there;
    or `implied`, keys that are younger than recorded runs, with the values that are no part of the identity."""
    if "ranges" in method:
        declaration = 'at the fields of the class, as in `df: float = setting(4.0, "positive")`'
        page = "docs/how-to/own_method.md"
        raise ConfigError(f"method.ranges: declare ranges {declaration} ({page}), and leave the section out")
    rest = {key: value for key, value in method.items() if key != name}
    section = {} if method.get(name) is None else method[name]
    if not isinstance(section, dict):
        raise ConfigError(f"method.{name}: must be a mapping of keys of the method, such as {{key: value}}")
    settings = rest.keys() - {TARGET, "name", "papers", "regression", "implied"}
    for key in map(str, section):
        require_known(key, settings, f"method.{name}: {key!r} is not a key of the method")
    return rest, section
