"""From the words of a command line to a plain, resolved configuration; every mistake in them is one line."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml
from hydra import initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from gpbench import paths, plugins, ranges, registry
from gpbench.config import cards
from gpbench.config.choices import Choices
from gpbench.config.values import check_values
from gpbench.errors import ConfigError, either, nearest

GROUPS = ("dataset", "method", "protocol")


def compose(overrides: Sequence[str], config_dirs: Sequence[Path] = ()) -> dict:
    """The configuration that the words of a command line stand for, as a plain resolved dict.

    Besides the sections of conf/config.yaml it has `config_dirs` (the further folders with group files), `changes`
    (KEY: VALUE of method, protocol and dataset wherever they differ from the group choices alone) and `implied` (a
    reserved section of a method's file, see `_section`).  Raises ConfigError for an unknown choice or key, an override
    that cannot be read, a missing value, a broken interpolation, a value out of its range, and what is wrong in a card.
    """
    with hydra(config_dirs) as composer:
        return composer.compose(overrides)


class Composer:
    """Composes any number of configurations, inside `hydra`."""

    def __init__(self, config_dirs: Sequence[Path], folders: Sequence[Path]):
        self.config_dirs, self.folders = config_dirs, folders
        quoted = ("'file://" + str(folder).replace("'", "\\'") + "'" for folder in folders)
        self.searchpath = [f"hydra.searchpath=[{','.join(quoted)}]"] if folders else []
        loader = GlobalHydra.instance().config_loader()
        assert isinstance(loader, ConfigLoaderImpl)
        self._loader = loader
        self._groups = set(self._loader.list_groups(""))
        self._choices = _choices(self.searchpath) if folders else _our_choices()
        self._parsed: dict[str, Override] = {}
        self._defaults: dict[tuple[str, ...], dict[str, Any]] = {}

    def compose(self, overrides: Sequence[str]) -> dict:
        """The configuration, as a plain resolved dict.  Raises as `gpbench.config.compose.compose` does."""
        with _one_line(self.folders):
            return self._composed(overrides)

    def _composed(self, overrides: Sequence[str]) -> dict:
        parsed = self._parse(overrides)
        self._loader.validate_sweep_overrides_legal(parsed, run_mode=RunMode.RUN, from_shell=False)
        choices = tuple(str(override.input_line) for override in parsed if self._is_choice(override))
        chosen, others = self._choices.compose(choices), [o for o in parsed if not self._is_choice(o)]
        if choices not in self._defaults:
            self._defaults[choices] = dict(_leaves(chosen.resolved or plain(chosen.cfg, throw_on_missing=False)))
        if (cfg := chosen.with_values(others)) is None:
            set_by_hydra = copy.deepcopy(chosen.cfg)
            ConfigLoaderImpl._apply_overrides_to_config(others, set_by_hydra)
            cfg = plain(set_by_hydra)
        check_values(cfg)
        files = {group: self._users_file(group, parsed) for group in GROUPS}
        for group in GROUPS:
            if not isinstance(cfg.get(group), dict):
                if files[group]:
                    raise ConfigError(f"{files[group]}: must be a mapping, with lines of KEY: VALUE")
                hint = f"choose one, as in {group}=NAME (`gpbench ls {group}s` lists them)"
                raise ConfigError(f"{group} is not set; {hint}")
        cfg["implied"], own = (_section(cfg["method"], name) for name in ("implied", "ranges"))
        cfg["method"] = registry.check(cfg["method"], self.folders, own, cfg["dataset"].get("task"))
        ranges.check_node("method", cfg["method"], ranges.METHOD, own, cfg["dataset"].get("task"))
        ranges.check_node("protocol", cfg["protocol"], ranges.PROTOCOL)
        for section in ("method", "protocol"):
            cfg[section] = {key: ranges.canonical(key, value) for key, value in cfg[section].items()}
        cards.check(cfg["dataset"], f"dataset ({files['dataset']})" if files["dataset"] else "dataset")
        if cfg["protocol"].get("split_indices") == "int8":
            cards.read_indices_as_int8(cfg["dataset"])
        defaults = self._defaults[choices]
        # by text: 1 and 1.0 are equal to Python, and may be two settings of a method
        is_default = lambda key, value: key in defaults and repr(defaults[key]) == repr(value)
        cfg["changes"] = {key: value for key, value in _leaves(cfg) if not is_default(key, value)}
        cards.check_changes(cfg["dataset"], cfg["changes"])
        cfg["config_dirs"] = [str(folder) for folder in self.config_dirs]
        cfg["run"]["results"] = cfg["run"]["results"] or str(paths.results_dir())
        return cfg

    def _users_file(self, group: str, parsed: Sequence[Override]) -> Path | None:
        """The file of the chosen member of a group; None where it is one of ours."""
        names = [str(override.value()) for override in parsed if override.key_or_group == group]
        files = (folder / group / f"{names[-1]}.yaml" for folder in self.folders) if names else ()
        return next((file for file in files if file.is_file()), None)

    def _parse(self, words: Sequence[str]) -> list[Override]:
        """The words as Hydra reads them, each read once: its grammar takes some milliseconds a word."""
        if new := [word for word in words if word not in self._parsed]:
            self._parsed |= zip(new, OverridesParser.create().parse_overrides(new), strict=True)
        return [self._parsed[word] for word in words]

    def _is_choice(self, override: Override) -> bool:
        return override.key_or_group.partition("/")[0] in self._groups or override.is_hydra_override()


def _choices(searchpath: Sequence[str]) -> Choices:
    return Choices(searchpath, partial(plain, throw_on_missing=False))


@cache
def _our_choices() -> Choices:
    """Those of our own files alone, which every composer of the process shares: the files do not change meanwhile."""
    return _choices(())


@contextmanager
def hydra(config_dirs: Sequence[Path]) -> Iterator[Composer]:
    """Hydra on our configuration, that in `config_dirs` and installed packages'.  Its errors leave as ConfigError."""
    for folder in config_dirs:
        if not folder.is_dir():
            raise ConfigError(f"--config-dir {folder}: no such folder")
    folders = [*config_dirs, *plugins.folders()]
    for folder in folders:
        for path in sorted(folder.glob("*/*.yaml")):
            if (paths.conf_dir() / path.relative_to(folder)).exists():  # Hydra would take ours and say nothing
                raise ConfigError(f"{path}: the name {path.stem} is taken by one of ours; rename the file")
    with _one_line(folders), initialize_config_dir(str(paths.conf_dir()), job_name="gpbench", version_base="1.3"):
        yield Composer(config_dirs, folders)


@contextmanager
def _one_line(folders: Sequence[Path]) -> Iterator[None]:
    """The errors of Hydra, OmegaConf and YAML leave as ConfigError; `folders` are those of files that are not ours."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_explain(error)) from error
    except yaml.MarkedYAMLError as error:
        raise cards.unreadable(error.problem_mark.name if error.problem_mark else "a file", error) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:  # whose text names no file
        raise cards.unreadable(_undecodable(folders), error) from error
    except ValueError as error:
        if not str(error).startswith("Config group override"):
            raise
        raise ConfigError(f"{error}: dataset, method and protocol each take a name, as in method=sep") from error


def _undecodable(folders: Sequence[Path]) -> Path | str:
    """The first file in these folders that is no text in UTF-8."""
    for path in sorted(path for folder in folders for path in folder.glob("*/*.yaml")):
        try:
            path.read_text(encoding="utf-8")
        except ValueError:
            return path
    return "a file of the configuration"


def plain(cfg: DictConfig, *, throw_on_missing: bool = True) -> dict[str, Any]:
    """A configuration as a dict, with every interpolation resolved.  Raises OmegaConf's errors."""
    container = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=throw_on_missing)
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def _section(method: dict[str, Any], name: str) -> dict[str, Any]:
    """Takes the reserved section `name` out of a method's node.  Raises ConfigError where it is not one.

    `implied` has the keys that the method got after runs of it were recorded, each with the value that does what was
    done before: with that value a key is no part of the identity.  `ranges` has keys with their ranges in words.
    """
    section = method.pop(name, None) or {}
    if not isinstance(section, dict):
        raise ConfigError(f"method.{name}: must be a mapping of keys of the method, such as {_EXAMPLES[name]}")
    if unknown := sorted(section.keys() - method.keys()):
        raise ConfigError(f"method.{name}: {unknown[0]!r} is not a key of the method; {nearest(unknown[0], method)}")
    return section


_EXAMPLES = {"implied": "{new_key: value}", "ranges": "{key: positive}"}


def _leaves(node: Mapping, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of the groups' sections, or below a section, with its dotted key."""
    for key in node if prefix else (group for group in GROUPS if group in node):
        value = node[key]
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _explain(error: Exception) -> str:
    """The line for an error of Hydra or OmegaConf: what is wrong and, where it is a name, the nearest ones."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = error.missing_cfg_file.rpartition("/")
        if error.options is None:
            return _first_line(error)
        return f"{group}={name}: no such {group}; {nearest(name, error.options)}"
    if isinstance(error, OverrideParseException):
        return f"cannot read {error.override!r} ({_first_line(error).rstrip('.')}); write key=value, as in method=sep"
    if "Ambiguous value" in str(error) or "requires --multirun" in str(error):
        text = str(error).split("'")[1]
        return f"{text} is a sweep: add -m, or write a list as in split=[0,3]"
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__
    if isinstance(cause, MissingMandatoryValue):
        return f"{cause.full_key}: no value is set, and it must have one"
    if isinstance(cause, OmegaConfBaseException):
        if str(cause).startswith("Key ") and isinstance(node := cause.parent_node, DictConfig):
            section, key = str(cause.full_key).removesuffix(str(cause.key)).rstrip("."), str(cause.key)
            # Hydra has by now put an empty section in the place of a value or of a ${...}
            hint = "it has none of its own: one value, or the protocol's section"
            if elsewhere := [f"{group}.{key}" for group in GROUPS if not section and key in (node.get(group) or {})]:
                hint = f"did you mean {either(elsewhere)}?"
            elif node:
                hint = nearest(key, map(str, node))
            if section == "protocol" and (others := _protocols_with(key)):
                hint = f"it is one of protocol={' and protocol='.join(others)}"
            return f"no key {key!r}{' in ' * bool(section)}{section}; {hint}"
        return f"{cause.full_key}: {_first_line(cause)}" if cause.full_key else _first_line(cause)
    return " ".join(str(error).split())


def _protocols_with(key: str) -> list[str]:
    """The names of our protocols whose files have this key."""
    files = sorted((paths.conf_dir() / "protocol").glob("*.yaml"))
    return [path.stem for path in files if f"\n{key}:" in path.read_text(encoding="utf-8")]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
