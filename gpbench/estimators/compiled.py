"""Configurations and compiled programs of methods, which estimators share: searches fit often."""

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpbench import paths, runtime, targets, yamls
from gpbench.errors import ConfigError


def folder_of(config_dir: str | Path | None) -> Path | None:
    """The folder, absolute, and on Python's path, so that the modules of its methods are found."""
    if config_dir is None:
        return None
    return targets.add_folders([config_dir])[0]


@lru_cache(maxsize=64)
def configuration(*overrides: str, folder: Path | None = None) -> dict:
    """The configuration of a command line, composed once: it takes a tenth of a second, and searches fit often."""
    from gpbench.config.compose import compose

    return compose(overrides, [folder] if folder else [])


def programs_of(config: dict) -> Any:
    """The compiled programs of a method, shared by estimators with the same configuration.  Raises ConfigError."""
    runtime.refuse_fork()
    return _build(json.dumps(config["method"], sort_keys=True))


@lru_cache(maxsize=16)
def _build(method: str) -> Any:
    """The programs of a method, of its configuration in JSON.  Raises ConfigError."""
    runtime.require_float64()
    from gpbench.config.build import build_method
    from gpbench.train.programs import Programs

    return Programs(build_method(json.loads(method)))


def class_of(method: str, config_dir: str | Path | None = None) -> type:
    """The class of a method.  Raises ConfigError for an unknown one."""
    runtime.require_float64()
    from gpbench.methods.base import Method

    cfg = configuration(f"method={method}", folder=folder_of(config_dir))
    return targets.load(cfg["method"]["_target_"], "method", Method)


def tasks_of(method: str, config_dir: str | Path | None = None) -> frozenset[str]:
    """The tasks of a method; none for an unknown one, for which `fit` raises an error."""
    try:
        return class_of(method, config_dir).tasks  # type: ignore[attr-defined]
    except ConfigError:
        return frozenset()


def methods_with(has_property: Callable[[type], bool]) -> str:
    """The names of gpbench's methods whose class has a property, for messages."""
    files = paths.yaml_files("method")

    def class_of_file(name: str) -> type:
        cfg = yamls.read(files[name])
        return targets.load(cfg["_target_"], "method") if "_target_" in cfg else class_of_file(cfg["defaults"][0])

    return ", ".join(name for name in sorted(files) if has_property(class_of_file(name)))
