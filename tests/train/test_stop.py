"""A wish to stop is remembered until the loop asks; progress is few plain lines in logs and a bar on terminals."""

import io
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from rich.console import Console

from gpbench.train import progress
from gpbench.train.stop import StopRequest


def _soon(condition):
    end = time.monotonic() + 2
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_time_limit_becomes_the_reason_when_it_is_over_and_alone_outside_the_main_thread():
    stop = StopRequest(0.05)
    assert stop.reason is None and 0 < stop.seconds_left() <= 0.05
    time.sleep(0.06)
    assert stop.reason == "time limit of 0.05 s" and stop.seconds_left() < 0
    assert StopRequest(None).seconds_left() is None

    def work():
        with StopRequest(0.0) as stop:
            return stop.reason, signal.getsignal(signal.SIGTERM)

    with ThreadPoolExecutor() as pool:
        assert pool.submit(work).result() == ("time limit of 0 s", signal.getsignal(signal.SIGTERM))


def test_several_signals_are_one_wish_whose_reason_is_the_first_and_the_handlers_before_come_back():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with StopRequest(None):
        assert signal.getsignal(signal.SIGTERM) != before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert signal.set_wakeup_fd(-1) == -1
    with StopRequest(None) as stop:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGINT):
            os.kill(os.getpid(), number)
            time.sleep(0.05)
        assert stop.reason == "SIGTERM"


@pytest.mark.parametrize("number", [signal.SIGCHLD, signal.SIGUSR1, signal.SIGWINCH, signal.SIGALRM, signal.SIGRTMIN])
def test_other_signals_reach_the_handlers_of_the_user_and_stop_nothing(number):
    called, (read_end, write_end) = [], os.pipe()
    os.set_blocking(write_end, False)
    before = signal.signal(number, lambda *_: called.append(number)), signal.set_wakeup_fd(write_end)
    try:
        with StopRequest() as stop:
            os.kill(os.getpid(), number)
            assert os.read(read_end, 1) == bytes([number])  # as asyncio does
            assert called == [number] and stop.reason is None
            os.kill(os.getpid(), signal.SIGTERM)
            _soon(lambda: stop.reason == "SIGTERM")
    finally:
        signal.signal(number, before[0])
        signal.set_wakeup_fd(before[1])


def test_under_nohup_a_terminal_may_close_and_a_second_ctrl_c_ends_the_process_at_once():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopRequest() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.1)
            assert stop.reason is None and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", BUSY], text=True, **pipes)
    process.stdout.readline()
    for _ in range(2):
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=1) == 130
    assert process.stderr.read() == "stopping at the next checkpoint; Ctrl-C again to end at once\n"


# One call of LAPACK, of about a minute, keeps Python's handlers waiting just as a long compiled program does
BUSY = """
import numpy as np
from gpbench.train.stop import StopRequest
matrix = np.random.default_rng(0).normal(size=(4000, 4000))
with StopRequest(None):
    print("started", flush=True)
    np.linalg.svd(matrix)
"""


class Log(io.TextIOWrapper):
    """A text stream that remembers."""

    def __init__(self):
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def getvalue(self):
        return self.buffer.getvalue().decode()


class Screen(Log):
    """The same, saying it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Sets the time that `progress` reads, in seconds."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_plain_lines_come_every_few_seconds_and_tell_the_seconds_left(clock):
    shown = progress.make(stream=(stream := Log()))
    shown.begin("pima  sep", 200, "splits 0-2")
    for step in range(10, 201, 10):  # a step takes 0.1 s after a compilation of 4 s
        clock[0] = 104 + step / 10
        shown.update(step, -123.4567, {"nll": 0.47123})
    shown.end()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[0] == "pima  sep  step 10/200  splits 0-2  objective -123.457  nll 0.4712"
    assert lines[1] == "pima  sep  step 60/200  splits 0-2  objective -123.457  nll 0.4712  14 s left"
    quick = progress.make(stream=(stream := Log()))
    quick.begin("wdbc", 10, "split 0")
    quick.update(10, None, {})
    quick.end()
    assert stream.getvalue() == ""


def test_a_log_has_notes_the_part_that_takes_long_and_seconds_left_that_do_not_jump(clock):
    stream = Screen()
    shown = progress.make(visible=False, stream=stream)
    shown.begin("wdbc", 10, "split 0")
    clock[0] += 1000
    shown.update(5, 1.0, {})
    shown.note("goes on from step 3")
    shown.end()
    assert stream.getvalue() == "goes on from step 3\n"
    shown = progress.make(stream=(stream := Log()))
    shown.begin("pima  sep", 200, "split 0")
    shown.stage("init")
    clock[0] += 20
    shown.stage("compile")
    shown.stage("train")
    assert stream.getvalue() == "pima  sep  split 0  compilation\n"
    shown = progress.make(stream=(stream := Log()))
    for split in range(4):  # 100 steps of 0.1 s each
        shown.begin("pima  sep", 100, f"split {split}", later=3 - split)
        for step in range(10, 101, 10):
            clock[0] += 1.0
            shown.update(step, None, {})
    left = [int(line.rsplit("  ", 1)[1].removesuffix(" s left")) for line in stream.getvalue().splitlines()]
    assert left == [35, 30, 25, 20, 15, 10, 5, 0]


def test_a_terminal_gets_a_bar_that_goes_away_and_notes_that_stay():
    stream = Screen()
    shown = progress.make(stream=stream)
    assert isinstance(shown, progress._Bar)
    for members in ("split 0", "split 1"):
        shown.begin("wdbc", 10, members)
        shown.update(5, 1.0, {"nll": 0.5})
        shown.note("[halved] the step")
        shown.end()
    assert stream.getvalue().count("[halved] the step") == 2


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_narrow_terminal_shows_steps_time_left_and_one_metric_and_what_takes_long(monkeypatch, width):
    shown, screen = progress._Bar(Screen()), Console(file=Log(), width=width)
    shown.begin("protein  sep  m=100%, schedule=parallel  clean", 1000, "splits 0-4 (5/20 done)")
    lines = []
    for now in (lambda: shown.stage("compile"), lambda: (shown.stage("train"), shown.update(120, -1.0, {"rmse": 0.5}))):
        now()
        with screen.capture() as capture:
            screen.print(shown.bar.get_renderable())
        lines.append(capture.get().strip("\n"))
    shown.end()
    assert "compilation" in lines[0] and "splits 0-4" in lines[0]
    assert all(word in lines[1] for word in ("120/1000", "--:--", "rmse 0.5", "splits 0-4")) and len(lines[1]) <= width
