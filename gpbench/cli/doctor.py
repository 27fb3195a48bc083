"""`gpbench doctor`: devices, versions, folders, and what is missing, each with how to mend it."""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from gpbench import paths
from gpbench.errors import GpbenchError
from gpbench.records import environment
from gpbench.report import text


@dataclass(frozen=True)
class Finding:
    """One line of the report.  `broken` keeps gpbench from working; `note` may surprise; `mend` says what to do."""

    what: str
    state: Literal["ok", "note", "broken"]
    found: str
    mend: str = ""


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "doctor",
        help="devices, versions, folders, and what is missing",
        description="Check devices, versions and folders.  Exit code 1 if something is broken that gpbench needs.",
    )
    parser.add_argument("--config-dir", action="append", default=[], type=Path, metavar="DIR",
                        help="a folder with your own dataset/ cards")  # fmt: skip
    parser.add_argument("--mirror", type=Path, default=None, metavar="DIR", help="the mirror of data files")
    parser.add_argument("--store", type=Path, default=None, metavar="DIR", help="the local store of data")
    parser.add_argument("--results", type=Path, default=None, metavar="DIR", help="the results folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run the verb; 0 if gpbench can work here, else 1."""
    mirror, store = args.mirror or paths.mirror_dir(), args.store or paths.store_dir()
    checks: list[Callable[[], Iterator[Finding]]] = [
        _versions,
        _commit,
        _devices,
        lambda: _folder("results", args.results or paths.results_dir(), "--results or GPBENCH_RESULTS"),
        lambda: _folder("data store", store, "--store or GPBENCH_STORE"),
        lambda: _folder("compile cache", _compile_cache(), "GPBENCH_CACHE", needed=False),
        lambda: _mirror(mirror),
        lambda: _data(args.config_dir, mirror, store),
    ]
    findings = [finding for check in checks for finding in check()]
    if args.json:
        text.as_json([asdict(finding) for finding in findings])
    else:
        text.table(("what", "state", "found", "mend"), [tuple(asdict(finding).values()) for finding in findings])
    return int(any(finding.state == "broken" for finding in findings))


def _versions() -> Iterator[Finding]:
    found = environment.versions()
    yield Finding("versions", "ok", ", ".join(f"{name} {version}" for name, version in found.items() if version))
    if missing := [name for name, version in found.items() if version is None]:
        yield Finding("packages", "broken", f"{', '.join(missing)} not installed", "install gpbench again")


def _commit() -> Iterator[Finding]:
    found = environment.commit()
    if found["commit"] is None:
        yield Finding("commit", "ok", "none: not a checkout, or one without commits")
    elif found["dirty"]:
        yield Finding("commit", "note", f"{found['commit']}, with changes", "commit them: records will say dirty")
    else:
        yield Finding("commit", "ok", str(found["commit"]))


def _devices() -> Iterator[Finding]:
    """Starts JAX as a run would, and asks it for one float64 Cholesky factor."""
    try:
        from gpbench import runtime

        runtime.configure()
        import jax
        import jax.numpy as jnp

        devices = jax.devices()
        factor = jnp.linalg.cholesky(jnp.eye(2, dtype=jnp.float64) * 4)
    except Exception as error:  # whatever keeps JAX from starting is the finding
        line = " ".join(str(error).split()) or type(error).__name__
        yield Finding("devices", "broken", line, "install jax for this machine, or hide the device: JAX_PLATFORMS=cpu")
        return
    kinds = ", ".join(f"{d.platform} {d.device_kind}" for d in devices)
    yield Finding("devices", "ok", f"{len(devices)}: {kinds}; default {devices[0].platform}")
    if factor.dtype == jnp.float64 and float(factor[0, 0]) == 2.0:
        yield Finding("precision", "ok", "float64 by default, float32 where a protocol asks for it")
    else:
        yield Finding("precision", "broken", f"float64 arrays become {factor.dtype}", "unset JAX_ENABLE_X64")
    yield Finding("XLA_FLAGS", "ok", os.environ.get("XLA_FLAGS") or "none")


def _folder(what: str, folder: Path, name: str, *, needed: bool = True) -> Iterator[Finding]:
    """Whether files can be made in the folder or, where it is not there yet, in the nearest one above it."""
    there = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    try:
        with tempfile.TemporaryFile(dir=there) as probe:
            probe.write(b"0" * 4096)
    except OSError as error:
        mend = f"make it writable, or name another folder with {name}"
        yield Finding(what, "broken" if needed else "note", f"{folder}: {error.strerror}", mend)
        return
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else 0
    yield Finding(what, "ok", f"{folder}, {size / 1e6:.1f} MB" if folder.is_dir() else f"{folder}, not made yet")


def _compile_cache() -> Path:
    return Path(os.environ.get("JAX_COMPILATION_CACHE_DIR") or paths.cache_dir() / "xla")


def _mirror(mirror: Path | None) -> Iterator[Finding]:
    if mirror is None:
        yield Finding("mirror", "ok", "none: data come from their official addresses")
    elif mirror.is_dir():
        yield Finding("mirror", "ok", str(mirror))
    else:
        yield Finding("mirror", "broken", f"{mirror} is not a folder", "name one with --mirror or GPBENCH_MIRROR")


def _data(config_dirs: list[Path], mirror: Path | None, store: Path) -> Iterator[Finding]:
    """Which data sets are here: in the store, in the mirror, or made by gpbench itself."""
    from gpbench.data import cards, sources

    try:
        names = cards.names(config_dirs)
        folders = sources.folders(config_dirs, store)
        missing = [name for name in names if not _is_here(cards.read(name, config_dirs), mirror, store, folders)]
    except GpbenchError as error:
        yield Finding("data sets", "broken", str(error), "correct the card")
        return
    if missing:
        found = f"{len(names) - len(missing)} of {len(names)} here; missing {', '.join(missing)}"
        yield Finding("data sets", "note", found, "gpbench data fetch NAME, or a run fetches what it needs")
    else:
        yield Finding("data sets", "ok", f"all {len(names)} here")


def _is_here(card: dict, mirror: Path | None, store: Path, folders: list[Path]) -> bool:
    from gpbench.data import store as local

    kept = local.path(card, store)
    if kept is not None and kept.is_file():
        return True
    for source in card["sources"]:
        if source["kind"] in ("sklearn", "generated"):
            return True
        if source["kind"] == "file" and any((folder / source["path"]).is_file() for folder in folders):
            return True
        if source["kind"] == "mirror" and mirror and all((mirror / name).is_file() for name in source["files"]):
            return True
    return False
