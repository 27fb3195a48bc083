"""Hydra, for all that is more than a merge of plain files: sweeps and launchers, other words, defaults and resolvers.

Its errors leave as ConfigError of one line.  Importing this module takes a third of a second.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.hydra import Hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import OverrideType
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from gpbench import paths, yamls
from gpbench.config import declared, method_names
from gpbench.config.compose import GROUPS
from gpbench.errors import ConfigError, either, nearest

_SIGNS = {OverrideType.CHANGE: "", OverrideType.ADD: "+", OverrideType.FORCE_ADD: "++", OverrideType.DEL: "~"}


@contextmanager
def hydra(folders: Sequence[Path]) -> Iterator[tuple[Hydra, list[str]]]:
    """Hydra on our configuration, and the words that add those in `folders` to its search path."""
    with _one_line(), initialize_config_dir(str(paths.conf_dir()), job_name="gpbench", version_base="1.3"):
        core = GlobalHydra.instance().hydra
        assert core is not None
        yield core, _searchpath(folders)


def parse(text: str) -> tuple[str, str, Any]:
    """Sign, key and value of a word of a single job.  A sign "@" is that of a word with a package, as in `a@b=c`."""
    with _one_line():
        (override,) = OverridesParser.create().parse_overrides([text])
        ConfigLoaderImpl.validate_sweep_overrides_legal([override], run_mode=RunMode.RUN, from_shell=False)
    sign = "@" if override.package is not None else _SIGNS.get(override.type, "@")
    return sign, override.key_or_group, override.value()


def choose(words: Sequence[str], folders: Sequence[Path]) -> dict[str, Any]:
    """The unresolved configuration that these choices of groups give."""
    with hydra(folders) as (_, searchpath):
        return _container(OmegaConf.to_container(compose("config", [*searchpath, *words])))


def change(values: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """The resolved configuration with these words' changes of its keys."""
    with _one_line():
        cfg = OmegaConf.create(dict(values))
        OmegaConf.set_struct(cfg, True)
        ConfigLoaderImpl._apply_overrides_to_config(OverridesParser.create().parse_overrides(list(words)), cfg)
        return plain(cfg)


def resolve(values: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with every interpolation resolved; "???" where a value is missing."""
    with _one_line():
        return plain(OmegaConf.create(dict(values)), throw_on_missing=False)


def plain(cfg: DictConfig, *, throw_on_missing: bool = True) -> dict[str, Any]:
    """A configuration as a dict, with every interpolation resolved.  Raises OmegaConf's errors."""
    return _container(OmegaConf.to_container(cfg, resolve=True, throw_on_missing=throw_on_missing))


def _container(container: Any) -> dict[str, Any]:
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def _searchpath(folders: Sequence[Path]) -> list[str]:
    quoted = ("'file://" + str(folder).replace("'", "\\'") + "'" for folder in folders)
    return [f"hydra.searchpath=[{','.join(quoted)}]"] if folders else []


@contextmanager
def _one_line() -> Iterator[None]:
    """The errors of Hydra, OmegaConf and YAML leave as ConfigError."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_explain(error)) from error
    except yaml.MarkedYAMLError as error:
        raise yamls.unreadable(error.problem_mark.name if error.problem_mark else "a file", error) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:  # whose text names no file
        raise yamls.unreadable("a file of the configuration", error) from error
    except ValueError as error:
        if not str(error).startswith("Config group override"):
            raise
        raise ConfigError("dataset, method and protocol each take a name, as in method=sep") from error


def _explain(error: Exception) -> str:
    """The line for an error of Hydra or OmegaConf: what is wrong and, where it is a name, the nearest ones."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = error.missing_cfg_file.rpartition("/")
        if error.options is None:
            return _first_line(error)
        if group.startswith("dataset/"):  # a path
            group, _, folder = group.partition("/")
            return f"{group}={folder}/{name}: no such table; a path names one by its ending, as in data/coffee.csv"
        hint, noun = nearest(name, error.options), group.replace("dataset", "data set")
        rest = f": `gpbench ls {group}s` lists them all" if hint.endswith(" more") else ""
        return f"{group}={name}: no such {noun}; {hint}{rest}"
    if isinstance(error, OverrideParseException):
        if choices := [f"{group}={error.override}" for group in GROUPS if error.override in paths.yaml_files(group)]:
            return f"cannot read {error.override!r}; did you mean {either(choices)}?"
        hint = "a text with other characters than letters from a to z, digits and ._-/%+ in quotes, as in key=\"'a b'\""
        return f"cannot read {error.override!r}; write key=value, as in method=sep, and {hint}"
    if "Ambiguous value" in str(error) or "requires --multirun" in str(error):
        text = str(error).split("'")[1]
        return f"{text} is a sweep: add -m, or write a list as in split=[0,3]"
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__
    if isinstance(cause, MissingMandatoryValue):
        return f"{cause.full_key}: no value is set, and it must have one"
    if isinstance(cause, OmegaConfBaseException):
        if str(cause).startswith("Key ") and isinstance(node := cause.parent_node, DictConfig):
            return _unknown_key(str(cause.full_key), str(cause.key), node)
        return f"{cause.full_key}: {_first_line(cause)}" if cause.full_key else _first_line(cause)
    return " ".join(str(error).split())


def _unknown_key(full_key: str, key: str, node: DictConfig) -> str:
    section = full_key.removesuffix(key).rstrip(".")
    # Hydra has by now put an empty section in the place of a value or of a ${...}
    hint = "it has none of its own: one value, or the protocol's section"
    if elsewhere := [f"{name!s}.{key}" for name, below in node.items() if not section and _contains(below, key)]:
        hint = f"did you mean {either(elsewhere)}?"
    elif node:
        known = [str(name) for name in node if name not in ("_target_", "implied", "name")]
        inside = [f"{full_key.removesuffix(key)}{name}.{key}" for name in known if _contains(node.get(name), key)]
        hint = f"did you mean {either(inside)}?" if inside else nearest(key, known)
    if section == "method" and not str(node.get("_target_")).startswith("gpbench."):
        hint += f"; +{full_key}=VALUE sets a field that its file lacks"
    if section == "protocol" and (others := _protocols_with(key)):
        hint = f"it is one of protocol={' and protocol='.join(others)}"
    if section == "method" and (names := method_names.with_setting(declared.classes(), key)):
        hint = f"it is one of method={names}"
    return f"no key {key!r}{' in ' * bool(section)}{section}; {hint}"


def _contains(section: Any, key: str) -> bool:
    return isinstance(section, DictConfig) and key in section


def _protocols_with(key: str) -> list[str]:
    """The names of our protocols whose files have this key."""
    files = sorted((paths.conf_dir() / "protocol").glob("*.yaml"))
    return [path.stem for path in files if f"\n{key}:" in path.read_text(encoding="utf-8")]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
