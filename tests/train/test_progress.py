"""Progress: few plain lines in logs, a bar on terminals, and notes always."""

import io

import pytest

from gpbench.train import progress


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


def test_without_progress_only_notes_are_shown(clock):
    stream = Screen()
    shown = progress.make(visible=False, stream=stream)
    shown.begin("wdbc", 10, "split 0")
    clock[0] += 1000
    shown.update(5, 1.0, {})
    shown.note("goes on from step 3")
    shown.end()
    assert stream.getvalue() == "goes on from step 3\n"


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
    from rich.console import Console

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


def test_a_log_names_the_part_that_takes_long(clock):
    shown = progress.make(stream=(stream := Log()))
    shown.begin("pima  sep", 200, "split 0")
    shown.stage("init")
    clock[0] += 20
    shown.stage("compile")
    shown.stage("train")
    assert stream.getvalue() == "pima  sep  split 0  compilation\n"


def test_the_seconds_left_cover_the_splits_that_follow_and_do_not_jump(clock):
    shown = progress.make(stream=(stream := Log()))
    for split in range(4):  # 100 steps of 0.1 s each
        shown.begin("pima  sep", 100, f"split {split}", later=3 - split)
        for step in range(10, 101, 10):
            clock[0] += 1.0
            shown.update(step, None, {})
    left = [int(line.rsplit("  ", 1)[1].removesuffix(" s left")) for line in stream.getvalue().splitlines()]
    assert left == [35, 30, 25, 20, 15, 10, 5, 0]
