"""The version of gpbench, and whether another program has files in its folder."""

from pathlib import Path

from gpbench.log import log

__version__ = "0.1.0"


def other_program(packages: Path = Path(__file__).parents[1]) -> str:
    """What to do where the genomic program that the package index has as gpbench is among these packages, else "".
    Its folder is `gpbench` too, and the one that was installed first has lost files."""
    files = [path / "METADATA" for path in packages.glob("gpbench-*.dist-info")]
    names = [path.parent.stem for path in files if path.exists() and "genomic" in path.read_text(errors="replace")]
    mend = "pip uninstall gpbench, then install scalable-gp-bench again"
    return f"{names[0]}, another program, is installed in the same folder: {mend}" if names else ""


if _fault := other_program():
    log.warning(_fault)
