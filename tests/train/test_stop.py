"""A wish to stop is remembered until the loop asks; a second Ctrl-C does not wait for it."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gpbench.train.stop import SIGNALS, StopRequest


def _soon(condition):
    end = time.monotonic() + 2
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_becomes_the_reason(number):
    with StopRequest(None) as stop:
        assert stop.reason is None
        os.kill(os.getpid(), number)
        _soon(lambda: stop.reason == number.name)


def test_the_time_limit_becomes_the_reason_when_it_is_over():
    stop = StopRequest(0.05)
    assert stop.reason is None and 0 < stop.seconds_left() <= 0.05
    time.sleep(0.06)
    assert stop.reason == "time limit of 0.05 s" and stop.seconds_left() < 0
    assert StopRequest(None).seconds_left() is None


def test_the_handlers_before_come_back():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with StopRequest(None):
        assert signal.getsignal(signal.SIGTERM) != before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert signal.set_wakeup_fd(-1) == -1


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


def test_under_nohup_a_terminal_may_close():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopRequest() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.1)
            assert stop.reason is None and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_outside_the_main_thread_there_is_the_time_limit_alone():
    def work():
        with StopRequest(0.0) as stop:
            return stop.reason, signal.getsignal(signal.SIGTERM)

    with ThreadPoolExecutor() as pool:
        assert pool.submit(work).result() == ("time limit of 0 s", signal.getsignal(signal.SIGTERM))


def test_several_signals_are_one_wish_whose_reason_is_the_first():
    with StopRequest(None) as stop:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGINT):
            os.kill(os.getpid(), number)
            time.sleep(0.05)
        assert stop.reason == "SIGTERM"


# One call of LAPACK, of about a minute, keeps Python's handlers waiting just as a long compiled program does
BUSY = """
import numpy as np
from gpbench.train.stop import StopRequest
matrix = np.random.default_rng(0).normal(size=(4000, 4000))
with StopRequest(None):
    print("started", flush=True)
    np.linalg.svd(matrix)
"""


def test_a_second_ctrl_c_ends_the_process_at_once():
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", BUSY], text=True, **pipes)
    process.stdout.readline()
    for _ in range(2):
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=1) == 130
    assert process.stderr.read() == "stopping at the next checkpoint; Ctrl-C again to end at once\n"
