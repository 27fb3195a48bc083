"""`gpbench run` of one job in this process, and the command itself: help, version, a line for every user error."""

import errno
import json
import os
import pty
import re
import subprocess
import sys
import types

import pytest
import yaml
from commands import RUN, environment, first_line, gpbench, start, wait_for

from gpbench import __version__, cli, runtime
from gpbench.errors import DataError
from gpbench.records.store import Store
from gpbench.train.stop import SIGNALS


def test_help_names_the_main_keys_and_gives_examples(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["run", "--help"])
    out = capsys.readouterr().out
    assert all(word in out for word in ("dataset=", "method=", "split=all", "run.time_limit", "-m", "examples:"))


def test_nothing_but_records_is_written_and_the_table_shows_mean_and_standard_error_over_the_splits(tmp_path):
    code, _, err = gpbench(tmp_path, *RUN)
    assert (code, err) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["results"]
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["runs"]
    out = gpbench(tmp_path, *RUN, "split=all")[1]
    # nll 0.25, 0.5, 0.75: standard deviation 0.25, over the root of 3
    assert re.search(r"nll +0\.5000 ± 0\.1443", out)
    assert "train s     6.00" in out and "splits      3" in out and "results/runs" in out


def test_where_all_is_recorded_no_jax_is_imported(tmp_path):
    for already in (False, True):
        code, _, err = gpbench(tmp_path, *RUN, PYTHONPROFILEIMPORTTIME="1")
        imported = {line.rpartition("|")[2].strip() for line in err.splitlines()}
        assert code == 0 and ("jax" in imported) is not already


def test_what_a_method_prints_stands_beside_the_line_of_json_and_disturbs_no_sweep(tmp_path):
    _, out, err = gpbench(tmp_path, *RUN, "--json", "split=[0,1]", FAKE_PRINT="mine")
    result = json.loads(out)
    assert [record["split"] for record in result["records"]] == [0, 1] and result["already"] == 0 and err == "minemine"
    words = [*RUN, "-m", "split=0,1", "seed=1", "run.progress=false"]
    assert "2 jobs: 2 done" in gpbench(tmp_path, *words, FAKE_PRINT="mine")[1]
    out = gpbench(tmp_path, *words, "method.fate=diverged", FAKE_PRINT="mine")[1]
    assert "diverged: split 0 diverged (NaN at step 3)" in out


def test_divergence_is_recorded_and_has_its_exit_code_and_the_time_limit_stops_at_a_checkpoint(tmp_path):
    code, out, err = gpbench(tmp_path, *RUN, "method.fate=diverged", "split=[0,2]")
    assert code == 4
    assert err.startswith("gpbench: splits 0, 2 diverged (NaN at step 3)") and err.count("\n") == 1
    assert "nll" not in out and "0 of 2" in out
    assert [record.status for record in Store(tmp_path / "results").all()] == ["diverged"] * 2
    code, _, err = gpbench(tmp_path, *RUN, "method.seconds=60", "run.time_limit=0.5")
    assert (code, err) == (75, "gpbench: time limit of 0.5 s: stopped at a checkpoint\n")


def test_cfg_prints_the_resolved_configuration_and_runs_nothing(tmp_path):
    code, out, _ = gpbench(tmp_path, *RUN, "--cfg", "method.points=${seed}", "seed=7")
    cfg = yaml.safe_load(out)
    assert code == 0 and cfg["method"]["points"] == 7 and cfg["dataset"]["name"] == "toy"
    assert cfg["run"]["results"] == str(tmp_path / "results")
    assert list(tmp_path.iterdir()) == []
    for words in (["--cfg", "job"], ["job", "--cfg"], ["seed=7", "--cfg", "job"]):  # as Hydra spells it
        assert yaml.safe_load(gpbench(tmp_path, *RUN, *words)[1])["dataset"]["name"] == "toy"


def test_a_users_module_beside_the_yaml_file_is_found(tmp_path, new_file):
    for group, name, text in (
        ("dataset", "mine", "{name: mine, task: binary, checksum: none, sources: [{kind: sklearn, loader: wine}]}"),
        ("method", "own", "{_target_: my_own.Own, fate: done, seconds: 0}"),
        ("protocol", "bare", "{name: bare}"),
    ):
        new_file(tmp_path / "folder with space's" / group / f"{name}.yaml", text)
    (tmp_path / "folder with space's" / "my_own.py").write_text("def Own(fate, seconds): ...")
    choices = ("dataset=mine", "method=own", "protocol=bare")
    code, out, err = gpbench(tmp_path, "run", "--config-dir", "folder with space's", *choices)
    assert (code, err) == (0, "") and "mine" in out


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_at_a_checkpoint(tmp_path, number):
    log = tmp_path / "log"
    process = start(tmp_path, *RUN, "method.seconds=60", FAKE_LOG=str(log))
    wait_for(log.exists)  # it trains
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    said = f"{first_line(number)}gpbench: {number.name}: stopped at a checkpoint\n"
    assert (process.returncode, out, err) == (75, "", said)


@pytest.mark.skipif(sys.platform != "linux", reason="the bar needs a pseudo-terminal")
def test_a_terminal_gets_a_table(tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "gpbench", *RUN, "method.seconds=0.5"]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment(tmp_path, TERM="xterm"))
    os.close(theirs)
    output = b""
    try:
        while piece := os.read(ours, 4096):
            output += piece
    except OSError:  # Linux says end of file on a terminal so
        pass
    assert process.wait() == 0
    text = output.decode()
    assert "\n  nll" in text.replace("\r", "") and "split 0" in text
    assert text.startswith("Fake on toy, protocol plain: split=0 method.seconds=0.5\r\n")
    assert text.rstrip().endswith("next: gpbench show --last")


def test_the_real_thing_from_data_to_record(tmp_path):
    words = ["run", "dataset=wdbc", "method=constant", "split=[0,1]"]
    code, out, err = gpbench(tmp_path, *words, fake=False)
    assert (code, err) == (0, "") and "nll" in out and "±" in out
    first = Store(tmp_path / "results").all()
    assert {record.split for record in first} == {0, 1} and first[0].device
    code, out, _ = gpbench(tmp_path, *words, fake=False)
    assert code == 0 and "2 of 2 were there already" in out
    assert Store(tmp_path / "results").all() == first


@pytest.mark.parametrize("name", ["record.json", "config.yaml"])
def test_a_damaged_record_is_made_again_and_the_others_are_not(tmp_path, name):
    log, words = tmp_path / "log", [*RUN, "split=[0,1]"]
    gpbench(tmp_path, *words)
    first = Store(tmp_path / "results").all()
    path = tmp_path / "results" / "runs" / first[1].id / name
    content = path.read_bytes()
    path.write_bytes(content[:-9] + bytes([content[-9] ^ 4]) + content[-8:])
    code, out, err = gpbench(tmp_path, *words, FAKE_LOG=str(log))
    assert (code, "1 of 2 were there already" in out, err.count("\n")) == (0, True, 1)
    assert f"{path.parent} counts as missing: " in err
    assert log.read_text().split() == ["train", first[1].id, "record", first[1].id]
    assert Store(tmp_path / "results").all() == first and path.read_bytes() == content


@pytest.mark.skipif(not runtime.available_cores(), reason="the system does not tell which cores a process may use")
def test_more_cores_than_there_are_are_refused(tmp_path):
    n = len(runtime.available_cores())
    for words in ([], ["run.processes=2"], ["-m", "seed=0,1"]):
        code, _, err = gpbench(tmp_path, *RUN, *words, "run.cores=9999")
        assert (code, err) == (2, f"gpbench: run.cores=9999: this process may use {n} cores: write run.cores={n}\n")


def test_version_and_help_are_said_and_verbs_are_imported_only_when_used(tmp_path, printed):
    assert gpbench(tmp_path, "--version")[:2] == (0, f"gpbench {__version__}\n")
    code, out, _ = gpbench(tmp_path, "--help", fake=False)
    assert code == 0 and all(f"\n    {verb} " in out for verb in cli.VERBS)
    assert "usage: gpbench" in printed()
    code, out, _ = gpbench(tmp_path, "--help", PYTHONPROFILEIMPORTTIME="1")
    assert code == 0 and "gpbench.cli.run" not in out


def test_an_error_is_one_line_with_its_exit_code_ctrl_c_a_stop_and_only_a_bug_keeps_its_traceback(monkeypatch, refused):
    def fail(error):
        def doctor():
            raise error

        monkeypatch.setitem(sys.modules, "gpbench.cli.doctor", types.SimpleNamespace(doctor=doctor))

    for error, code, line in (
        (DataError("two\n  lines"), DataError.exit_code, "two lines"),
        (OSError(errno.ENOSPC, "why", "/some/file"), 5, "/some/file: why; free some space"),
        (OSError(errno.EACCES, "why", "/some/file"), 5, "/some/file: why"),
        (OSError(errno.EROFS, "why", "/some/file"), 5, "/some/file: why"),
        (KeyboardInterrupt(), 75, "stopped"),
    ):
        fail(error)
        assert refused("doctor", code=code) == f"gpbench: {line}\n"
    fail(KeyError("a bug"))
    with pytest.raises(KeyError, match="a bug"):
        cli.main(["doctor"])
    fail(FileNotFoundError(errno.ENOENT, "no such file", "x"))
    with pytest.raises(FileNotFoundError):
        cli.main(["doctor"])


def test_a_closed_pipe_is_quiet(tmp_path):
    process = start(tmp_path, "run", "--cfg")
    process.stdout.close()
    assert process.wait(timeout=30) in (0, 141, 2)
    assert "Traceback" not in process.stderr.read() and "Broken" not in process.stderr.read()
