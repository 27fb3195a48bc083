"""From the words of a command line to a plain, resolved configuration; every mistake in them is one line."""

import copy
import importlib
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from gpbench import paths, plugins
from gpbench.config.values import check_field, check_values
from gpbench.errors import ConfigError, nearest

GROUPS = ("dataset", "method", "protocol")
_HYDRA_KEYS = ("_target_", "_args_", "_convert_", "_partial_", "_recursive_")


def compose(overrides: Sequence[str], config_dirs: Sequence[Path] = ()) -> tuple[dict, dict]:
    """The configuration, and the same composed from the group choices alone; both are plain resolved dicts.

    `config_dirs` are further folders with group files, kept as `cfg["config_dirs"]`.  Raises ConfigError for an unknown
    choice or key, an override that cannot be read, a missing value, a broken interpolation and a wrong type.
    """
    with hydra(config_dirs) as composer:
        return composer.compose(overrides), composer.compose(composer.choices(overrides))


class Composer:
    """Composes any number of configurations, inside `hydra`.

    Hydra takes a tenth of a second for each choice of groups; it is asked once for each, and what the other words of a
    command line say is then set in a copy, as Hydra does it.
    """

    def __init__(self, config_dirs: Sequence[Path], searchpath: Sequence[str]):
        self.config_dirs, self.searchpath = config_dirs, searchpath
        loader = GlobalHydra.instance().config_loader()
        assert isinstance(loader, ConfigLoaderImpl)
        self._loader = loader
        self._groups = set(self._loader.list_groups(""))
        self._chosen: dict[tuple[str, ...], DictConfig] = {}

    def compose(self, overrides: Sequence[str]) -> dict:
        """The configuration, as a plain resolved dict.  Raises as `gpbench.config.compose.compose` does."""
        parsed = OverridesParser.create().parse_overrides(list(overrides))
        self._loader.validate_sweep_overrides_legal(parsed, run_mode=RunMode.RUN, from_shell=False)
        choices = tuple(str(override.input_line) for override in parsed if self._is_choice(override))
        if choices not in self._chosen:
            self._chosen[choices] = hydra_compose("config", [*self.searchpath, *choices])
        chosen = copy.deepcopy(self._chosen[choices])
        ConfigLoaderImpl._apply_overrides_to_config([o for o in parsed if not self._is_choice(o)], chosen)
        cfg = plain(chosen)
        check_values(cfg)
        for group in GROUPS:
            if not isinstance(cfg.get(group), dict):
                hint = f"choose one, as in {group}=NAME (`gpbench ls {group}s` lists them)"
                raise ConfigError(f"{group} is not set; {hint}")
        cfg["config_dirs"] = [str(folder) for folder in self.config_dirs]
        cfg["run"]["results"] = cfg["run"]["results"] or str(paths.results_dir())
        return cfg

    def choices(self, overrides: Sequence[str]) -> list[str]:
        """The words that choose a member of a group."""
        parsed = OverridesParser.create().parse_overrides(list(overrides))
        return [text for text, override in zip(overrides, parsed) if self._is_choice(override)]

    def _is_choice(self, override: Override) -> bool:
        return override.key_or_group.partition("/")[0] in self._groups or override.is_hydra_override()


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
    quoted = ("'file://" + str(folder).replace("'", "\\'") + "'" for folder in folders)
    try:
        with initialize_config_dir(str(paths.conf_dir()), job_name="gpbench", version_base="1.3"):
            yield Composer(config_dirs, [f"hydra.searchpath=[{','.join(quoted)}]"] if folders else [])
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_explain(error)) from error
    except ValueError as error:
        if not str(error).startswith("Config group override"):
            raise
        raise ConfigError(f"{error}: dataset, method and protocol each take a name, as in method=sep") from error


def plain(cfg: DictConfig) -> dict[str, Any]:
    """A configuration as a dict, with every interpolation resolved.  Raises OmegaConf's errors."""
    container = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def check_fields(node: dict, where: str = "method") -> None:
    """Compare a node, and those below it, with the signature of its `_target_`: unknown, missing and ill-typed fields.

    Imports the target, and JAX with it.  Raises ConfigError.
    """
    target = str(node.get("_target_"))
    module, _, name = target.rpartition(".")
    try:
        constructor = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{where}: cannot import {target!r}: {error}") from error
    fields = inspect.signature(constructor).parameters
    named = {key: f for key, f in fields.items() if f.kind in (f.KEYWORD_ONLY, f.POSITIONAL_OR_KEYWORD)}
    open_ended = any(field.kind is field.VAR_KEYWORD for field in fields.values())
    given = {key: value for key, value in node.items() if key not in _HYDRA_KEYS}
    for key, value in given.items():
        if key in named:
            check_field(f"{where}.{key}", value, named[key].annotation)
        elif not open_ended:
            raise ConfigError(f"{where}.{key}: {name} has no such field; {nearest(key, named)}")
        if isinstance(value, dict) and "_target_" in value:
            check_fields(value, f"{where}.{key}")
    if missing := [key for key, field in named.items() if field.default is field.empty and key not in given]:
        raise ConfigError(f"{where}.{missing[0]}: {name} needs a value for it")


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
            hint = (
                nearest(key, map(str, node)) if node else "it has none of its own: one value, or the protocol's section"
            )
            return f"no key {key!r}{' in ' * bool(section)}{section}; {hint}"
        return f"{cause.full_key}: {_first_line(cause)}" if cause.full_key else _first_line(cause)
    return " ".join(str(error).split())


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
