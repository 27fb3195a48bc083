"""Custom kernels, likelihoods and readers by name, for code that starts without JAX: a file KIND/NAME.yaml in a folder
of `--config-dir`, or an entry point NAME of the group gpbench.KINDs, stands for a `_target_` and options.  The folders
are those that the user gives, never those that a record mentions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from gpbench import yamls
from gpbench.errors import located, refuse
from gpbench.registry import COMPOSITES, KINDS, TARGET, is_list, load, read


def check(section: Mapping[str, Any], folders: Sequence[Path], task: Any = None) -> dict:
    """The section `method` with the names of users' kernels and likelihoods expanded, and all of them checked.  The
    keys `kernel` and `likelihood` of a user's method can mean something else: its class checks them."""
    expanded = dict(section)
    for kind in KINDS.keys() & section.keys():
        expanded[kind] = expand(kind, section[kind], folders)
        if str(section.get(TARGET, "gpbench.")).startswith("gpbench."):
            with located(f"method.{kind}"):
                read(kind, expanded[kind], task)
    return expanded


def expand(kind: str, value: Any, folders: Sequence[Path] = ()) -> Any:
    """A value in which every name from a file or an entry point is replaced by its `_target_` and options."""
    name, options = value, None
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, options),) = value.items()
        if name in COMPOSITES and isinstance(options, list):
            return {name: [expand(kind, entry, folders) for entry in options]}
    target = own(kind, name, folders, KINDS[kind]) if isinstance(options, Mapping | None) else None
    return {**target, **(options or {})} if target else value


def custom_paths(kind: str, value: Any) -> list[str]:
    """The dotted paths of the custom classes in an expanded value."""
    choice = read(kind, value)
    if kind == "kernel" and choice.name in COMPOSITES:
        return [path for entry in choice.options["parts"] for path in custom_paths(kind, entry)]
    return [choice.name] * choice.is_own


def without_target(kind: str, value: Any) -> Any:
    """A value in which {_target_: PATH, **options} of a kernel's or likelihood's class is {PATH: options}, since
    `build_method` would otherwise construct the class with the method."""
    if kind not in KINDS or not isinstance(value, Mapping):
        return value
    if isinstance(path := value.get(TARGET), str):
        is_class = callable(getattr(load(kind, path, object), "initial", None))
        return {path: {key: option for key, option in value.items() if key != TARGET}} if is_class else value
    return {
        key: [without_target(kind, entry) for entry in v] if key in COMPOSITES and is_list(v) else v
        for key, v in value.items()
    }


@cache
def installed(group: str, find: Callable[..., Iterable[EntryPoint]]) -> tuple[EntryPoint, ...]:
    """The entry points of a group, read once in a process: reading them opens a file of every installed package."""
    return tuple(find(group=group))


def own(kind: str, name: Any, folders: Sequence[Path], reserved: Mapping[str, Any]) -> dict[str, Any] | None:
    """The mapping with a `_target_` behind a user's name; None for any other name."""
    if not isinstance(name, str):
        return None
    for path in (path for folder in folders if (path := folder / kind / f"{name}.yaml").is_file()):
        content = yamls.read(path)
        refuse(
            f"{path}: ",
            (name in reserved, f"the name {name} is built in; rename the file"),
            (
                not yamls.is_section(content) or TARGET not in content,
                f"must be a mapping with a line `{TARGET}: MODULE.NAME`",
            ),
        )
        return content
    points = () if name in reserved else installed(f"gpbench.{kind}s", entry_points)
    return next(({TARGET: point.value.replace(":", ".")} for point in points if point.name == name), None)
