"""`gpbench doctor`: checks devices, versions, folders and data sets, and says how to repair what is broken."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from gpbench import paths
from gpbench.analysis import printing
from gpbench.cli.output import Answer
from gpbench.errors import GpbenchError
from gpbench.records import environment
from gpbench.version import other_program

_HEADER = ("what", "state", "value", "mend")  # names of the fields of a finding


class Finding(NamedTuple):
    """The result of one check."""

    subject: str  # what was checked
    state: Literal["ok", "note", "broken"]  # `broken` keeps gpbench from working, `note` may be unexpected
    value: str  # what is there, such as a version or a folder
    mend: str = ""  # how to repair it, "" where nothing is to be done


def doctor(
    *,
    config_dir: Sequence[Path] = (),
    mirror: Path | None = None,
    store: Path | None = None,
    results: Path | None = None,
) -> Answer:
    """Check devices, versions and folders.  Exit code 1 if anything that gpbench needs is broken.

    Args:
        config_dir: a folder with your own dataset/ cards
    """
    mirror, store = mirror or paths.mirror_dir(), store or paths.store_dir()
    cache = Path(os.environ.get("JAX_COMPILATION_CACHE_DIR") or paths.cache_dir() / "xla")
    findings = [
        *_installation(),
        *_devices(),
        _folder("results", results or paths.results_dir(), "--results or GPBENCH_RESULTS"),
        _folder("data store", store, "--store or GPBENCH_STORE"),
        _folder("compile cache", cache, "GPBENCH_CACHE", needed=False),
        _mirror(mirror),
        _data(config_dir, mirror, store),
    ]
    lines = printing.aligned(_HEADER, findings, printing.width())
    is_broken = any(finding.state == "broken" for finding in findings)
    return Answer([dict(zip(_HEADER, finding)) for finding in findings], "\n".join(lines), int(is_broken))


def _installation() -> Iterator[Finding]:
    versions, facts = environment.versions(), environment.commit()
    yield Finding("versions", "ok", ", ".join(f"{name} {version}" for name, version in versions.items() if version))
    if missing := [name for name, version in versions.items() if version is None]:
        yield Finding("packages", "broken", f"{', '.join(missing)} not installed", "install scalable-gp-bench again")
    if fault := other_program():
        yield Finding("name", "broken", *fault.split(": "))
    if facts["dirty"]:
        yield Finding("commit", "note", f"{facts['commit']}, with changes", "commit them, or records are marked dirty")
    else:
        yield Finding("commit", "ok", str(facts["commit"] or "none: not a checkout, or one without commits"))


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
    except Exception as error:  # any failure to start JAX is a finding
        fault = " ".join(str(error).split()) or type(error).__name__
        mend = "install jax for this machine, or hide the device: JAX_PLATFORMS=cpu"
        if isinstance(error, GpbenchError):
            fault, _, mend = fault.rpartition("; ")
        yield Finding("devices", "broken", fault or mend, mend)
        return
    kinds = ", ".join(f"{d.platform} {d.device_kind}" for d in devices)
    yield Finding("devices", "ok", f"{len(devices)}: {kinds}; default {devices[0].platform}")
    if factor.dtype == jnp.float64 and float(factor[0, 0]) == 2.0:
        yield Finding("precision", "ok", "float64 by default, float32 where a protocol sets it")
    else:
        yield Finding("precision", "broken", f"float64 arrays become {factor.dtype}", "unset JAX_ENABLE_X64")
    yield Finding("XLA_FLAGS", "ok", os.environ.get("XLA_FLAGS") or "none")


def _folder(subject: str, folder: Path, name: str, *, needed: bool = True) -> Finding:
    """Checks that the folder is writable or, if it does not exist, the nearest one above it."""
    existing = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(b"0" * 4096)
    except OSError as error:
        mend = f"make it writable, or name another folder with {name}"
        return Finding(subject, "broken" if needed else "note", f"{folder}: {error.strerror}", mend)
    if not folder.is_dir():
        return Finding(subject, "ok", f"{folder}, does not exist yet")
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Finding(subject, "ok", f"{folder}, {size / 1e6:.1f} MB")


def _mirror(mirror: Path | None) -> Finding:
    if mirror is None:
        return Finding("mirror", "ok", "none: data sets are downloaded from their official addresses")
    if mirror.is_dir():
        return Finding("mirror", "ok", str(mirror))
    return Finding("mirror", "broken", f"{mirror} is not a folder", "name a folder with --mirror or GPBENCH_MIRROR")


def _data(config_dirs: Sequence[Path], mirror: Path | None, store: Path) -> Finding:
    """Data sets that are available offline: in the store, in the mirror, or built in."""
    from gpbench.data import cards, sources
    from gpbench.data import store as local

    folders = sources.folders(config_dirs, store)
    tests = {
        "sklearn": lambda source: True,
        "generated": lambda source: True,
        "file": lambda source: any((folder / source["path"]).is_file() for folder in folders),
        "mirror": lambda source: bool(mirror) and all((mirror / name).is_file() for name in source["files"]),
    }

    def is_available(card: dict) -> bool:
        is_stored = (path := local.path(card, store)) is not None and path.is_file()
        return is_stored or any(tests[source["kind"]](source) for source in card["sources"] if source["kind"] in tests)

    try:
        names = cards.names(config_dirs)
        missing = [name for name in names if not is_available(cards.read(name, config_dirs))]
    except GpbenchError as error:
        return Finding("data sets", "broken", str(error), "correct the card")
    if missing:
        line = f"{len(names) - len(missing)} of {len(names)} available offline; missing {', '.join(missing)}"
        return Finding("data sets", "note", line, "gpbench data fetch NAME; a run downloads what it needs")
    return Finding("data sets", "ok", f"all {len(names)} available offline")
