"""Commands where a shell, a service or a full disk is unkind: a result or one line, and never half a file."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attackers import contents
from samples import grid, write

from gpbench.records.store import Store

ROOT = Path(__file__).resolve().parents[2]
RUN = ["run", "dataset=sinc", "method=linear"]
DRY = [*RUN, "--dry-run"]
LISTED = ["ls", "methods"]
TABLE = ["table", "--results", "records"]
SHOW = ["show", "--last", "--results", "records"]
COLLECT = ["collect", "records", "--out", "all.parquet"]


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with a space and letters in its name, and the records of two splits in it."""
    folder = tmp_path / "a b, ünï=日本"
    write(folder / "records", grid(["pima"], ["sep"], 2, metrics={"nll": 0.5}, seconds={"train": 1.0}))
    return folder


def command(
    folder: Path,
    words: Sequence[str],
    *,
    changes: dict[str, str | None] | None = None,
    options: Sequence[str] = (),
    before: Callable[[], Any] | None = None,
    stdout: Any = subprocess.PIPE,
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command in a process of its own; a change to None removes a variable."""
    own = {"PYTHONPATH": str(ROOT), "GPBENCH_CACHE": str(folder / "cache"), "GPBENCH_RESULTS": str(folder / "results")}
    # A full disk cuts the bytecode that Python 3.11 writes, and the next process that reads it fails.
    python = {"PYTHONUNBUFFERED": None, "PYTHONDONTWRITEBYTECODE": "1"}
    changed: dict[str, str | None] = {**os.environ, **own, **python, **(changes or {})}
    environment = {name: value for name, value in changed.items() if value is not None}
    streams = {"stdin": subprocess.DEVNULL, "stdout": stdout, "stderr": subprocess.PIPE}
    command = [sys.executable, *options, "-m", "gpbench", *words]
    done = subprocess.run(command, cwd=folder, env=environment, **streams, preexec_fn=before, timeout=600)
    return done.returncode, (done.stdout or b"").decode(errors="replace"), done.stderr.decode(errors="replace")


def limit(name: str, value: int) -> Callable[[], None]:
    """Sets a limit of the process that is about to start."""
    return lambda: resource.setrlimit(getattr(resource, name), (value, value))


def refused(answer: tuple[int, str, str]) -> str:
    """The line of an answer that is a refusal; warnings may stand above it."""
    code, _, err = answer
    *warnings, line = err.splitlines() or [""]
    assert code not in (0, 1) and all(text.startswith("gpbench: warning: ") for text in warnings), answer
    assert line.startswith("gpbench: ") and "warning" not in line, answer
    return line


UNKIND: dict[str, tuple[list[str], dict[str, str | None], list[str]]] = {
    "no HOME": (DRY, {"HOME": None, "GPBENCH_CACHE": None}, []),
    "HOME nowhere": (DRY, {"HOME": "/nonexistent", "GPBENCH_CACHE": None}, []),
    "no PATH": (DRY, {"PATH": None}, []),
    "letters that the locale lacks": (LISTED, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, []),
    "a locale that is not there": (LISTED, {"LC_ALL": "xx_YY.zz"}, []),
    "an ASCII terminal": (TABLE, {"PYTHONIOENCODING": "ascii:strict"}, []),
    "a terminal of no kind": (TABLE, {"TERM": "\x01none", "COLUMNS": "0", "LINES": "-1"}, []),
    "columns that are a word": (["ls", "runs", "--results", "records"], {"COLUMNS": "wide"}, []),
    "no docstrings": (["data", "--help"], {"PYTHONOPTIMIZE": "2"}, []),
    "no assertions": (DRY, {"PYTHONOPTIMIZE": "2"}, []),
    "warnings are errors": (TABLE, {}, ["-bb", "-W", "error"]),
    "odd results": (DRY, {"GPBENCH_RESULTS": "ö , x={y} 'q' \"d\" $HOME ${a}"}, []),
}


@pytest.mark.parametrize("words, changes, options", UNKIND.values(), ids=UNKIND)
def test_an_unkind_environment_is_as_good_as_another(folder, words, changes, options):
    code, out, err = command(folder, words, changes=changes, options=options)
    assert (code, err) == (0, "") and out


FULL_DISK = {"ls": LISTED, "show": SHOW, "help": ["run", "--help"], "version": ["--version"]}


@pytest.mark.parametrize("words", FULL_DISK.values(), ids=FULL_DISK)
def test_a_stdout_that_is_full_is_one_line(folder, words):
    with open("/dev/full", "w") as full:
        assert "No space left" in refused(command(folder, words, stdout=full))


@pytest.mark.parametrize("closed", [(1,), (0, 1), (0, 1, 2)])
def test_closed_streams_are_no_fault(folder, closed):
    assert command(folder, TABLE, before=lambda: [os.close(number) for number in closed])[0] == 0


WRITERS = {
    "table": [*TABLE, "--out", "out.txt"],
    "collect": COLLECT,
    "rows": ["data", "rows", "sinc", "--split", "0", "--out", "out.npz"],
    "site": ["report", "--results", "records", "--out", "site"],
    "picture": ["compare", "sep", "sep", "--results", "records", "--out", "out.png"],
    "run": RUN,
}


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_a_file_that_finds_no_room_is_one_line_and_no_record_is_lost(folder, words):
    before = contents(folder / "records")
    refused(command(folder, words, before=limit("RLIMIT_FSIZE", 16)))
    assert contents(folder / "records") == before
    assert not (folder / "out.npz").exists() and not (folder / "all.parquet").exists()
    runs = folder / "results" / "runs"
    assert not runs.exists() or not [run for run in runs.iterdir() if not run.name.startswith(".")]


def test_the_command_after_a_full_disk_does_all_of_it(folder):
    refused(command(folder, [*RUN, "--json"], before=limit("RLIMIT_FSIZE", 16)))
    code, out, _ = command(folder, [*RUN, "--json"], before=lambda: os.umask(0o077))
    assert code == 0 and json.loads(out)["already"] == 0
    assert Store(folder / "results").all(whole=True)


def test_few_open_files_are_one_line_and_a_folder_that_is_gone_hides_no_list(folder):
    code, out, err = command(folder, TABLE, before=limit("RLIMIT_NOFILE", 16))
    assert (code == 0 and out) or refused((code, out, err))
    gone = folder / "gone"

    def leave():
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()

    assert command(folder, LISTED, before=leave)[0] == 0
