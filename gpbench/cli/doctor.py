"""`gpbench doctor`: checks devices, versions, folders and data sets, and says how to repair what is broken."""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gpbench import paths
from gpbench.analysis import printing
from gpbench.cli import options
from gpbench.errors import GpbenchError
from gpbench.records import environment


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    subject: what was checked.
    state: `broken` keeps gpbench from working, `note` may be unexpected.
    value: what is there, such as a version or a folder.
    mend: how to repair it, "" where nothing is to be done.
    """

    subject: str
    state: Literal["ok", "note", "broken"]
    value: str
    mend: str = ""


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "doctor",
        description="Check devices, versions and folders.  Exit code 1 if anything that gpbench needs is broken.",
    )
    options.add_config_dir(parser, "dataset/ cards")
    parser.add_argument("--mirror", type=Path, default=None, metavar="DIR", help="the mirror of data files")
    parser.add_argument("--store", type=Path, default=None, metavar="DIR", help="the local store of data")
    options.add_results_folder(parser)
    options.add_json(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code: 0 if gpbench can work here, otherwise 1."""
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
        printing.print_json([_as_dict(finding) for finding in findings])
    else:
        printing.print_table(
            ("what", "state", "value", "mend"), [tuple(_as_dict(finding).values()) for finding in findings]
        )
    return int(any(finding.state == "broken" for finding in findings))


def _as_dict(finding: Finding) -> dict[str, str]:
    return {"what": finding.subject, "state": finding.state, "value": finding.value, "mend": finding.mend}


def _versions() -> Iterator[Finding]:
    versions = environment.versions()
    yield Finding("versions", "ok", ", ".join(f"{name} {version}" for name, version in versions.items() if version))
    if missing := [name for name, version in versions.items() if version is None]:
        yield Finding("packages", "broken", f"{', '.join(missing)} not installed", "install gpbench again")


def _commit() -> Iterator[Finding]:
    facts = environment.commit()
    if facts["commit"] is None:
        yield Finding("commit", "ok", "none: not a checkout, or one without commits")
    elif facts["dirty"]:
        yield Finding("commit", "note", f"{facts['commit']}, with changes", "commit them, or records are marked dirty")
    else:
        yield Finding("commit", "ok", str(facts["commit"]))


def _devices() -> Iterator[Finding]:
    """Starts JAX as a run does, and computes a Cholesky factor in float64."""
    try:
        from gpbench import runtime

        runtime.configure()
        runtime.start()
        import jax
        import jax.numpy as jnp

        devices = jax.devices()
        factor = jnp.linalg.cholesky(jnp.eye(2, dtype=jnp.float64) * 4)
    except GpbenchError as error:
        fault, _, mend = str(error).rpartition("; ")
        yield Finding("devices", "broken", fault or mend, mend)
        return
    except Exception as error:  # any other failure to start JAX is a finding
        line = " ".join(str(error).split()) or type(error).__name__
        yield Finding("devices", "broken", line, "install jax for this machine, or hide the device: JAX_PLATFORMS=cpu")
        return
    kinds = ", ".join(f"{d.platform} {d.device_kind}" for d in devices)
    yield Finding("devices", "ok", f"{len(devices)}: {kinds}; default {devices[0].platform}")
    if factor.dtype == jnp.float64 and float(factor[0, 0]) == 2.0:
        yield Finding("precision", "ok", "float64 by default, float32 where a protocol sets it")
    else:
        yield Finding("precision", "broken", f"float64 arrays become {factor.dtype}", "unset JAX_ENABLE_X64")
    yield Finding("XLA_FLAGS", "ok", os.environ.get("XLA_FLAGS") or "none")


def _folder(subject: str, folder: Path, name: str, *, needed: bool = True) -> Iterator[Finding]:
    """Checks that the folder is writable or, if it does not exist, the nearest one above it."""
    existing = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(b"0" * 4096)
    except OSError as error:
        mend = f"make it writable, or name another folder with {name}"
        yield Finding(subject, "broken" if needed else "note", f"{folder}: {error.strerror}", mend)
        return
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else 0
    yield Finding(
        subject, "ok", f"{folder}, {size / 1e6:.1f} MB" if folder.is_dir() else f"{folder}, does not exist yet"
    )


def _compile_cache() -> Path:
    return Path(os.environ.get("JAX_COMPILATION_CACHE_DIR") or paths.cache_dir() / "xla")


def _mirror(mirror: Path | None) -> Iterator[Finding]:
    if mirror is None:
        yield Finding("mirror", "ok", "none: data sets are downloaded from their official addresses")
    elif mirror.is_dir():
        yield Finding("mirror", "ok", str(mirror))
    else:
        yield Finding("mirror", "broken", f"{mirror} is not a folder", "name a folder with --mirror or GPBENCH_MIRROR")


def _data(config_dirs: list[Path], mirror: Path | None, store: Path) -> Iterator[Finding]:
    """Data sets that are available offline: in the store, in the mirror, or built in."""
    from gpbench.data import cards, sources

    try:
        names = cards.names(config_dirs)
        folders = sources.folders(config_dirs, store)
        missing = [name for name in names if not _is_available(cards.read(name, config_dirs), mirror, store, folders)]
    except GpbenchError as error:
        yield Finding("data sets", "broken", str(error), "correct the card")
        return
    if missing:
        line = f"{len(names) - len(missing)} of {len(names)} available offline; missing {', '.join(missing)}"
        yield Finding("data sets", "note", line, "gpbench data fetch NAME; a run downloads what it needs")
    else:
        yield Finding("data sets", "ok", f"all {len(names)} available offline")


def _is_available(card: dict, mirror: Path | None, store: Path, folders: list[Path]) -> bool:
    from gpbench.data import store as local

    path = local.path(card, store)
    if path is not None and path.is_file():
        return True
    for source in card["sources"]:
        if source["kind"] in ("sklearn", "generated"):
            return True
        if source["kind"] == "file" and any((folder / source["path"]).is_file() for folder in folders):
            return True
        if source["kind"] == "mirror" and mirror and all((mirror / name).is_file() for name in source["files"]):
            return True
    return False
