"""`gpbench plot printed`: targets at their numbers, deviations in the right direction, names where ours are worse."""

import pytest

from gpbench.analysis.cells import CellRuns, Entry
from gpbench.analysis.reproduction import Comparison
from gpbench.errors import ConfigError
from gpbench.papers.published import Published
from gpbench.report.figures.printed import deviation, draw_printed


def comparison(mean, printed, delta, metric, held_out=True):
    published = Published("sep", "1", "sep", "", printed, 0.01, 0.01, 20, held_out, "")
    cell = CellRuns("pima", "", "sep", "", "", "full", True, ())
    entry = Entry(cell, metric, {0: mean, 1: mean}, mean, 0.1, 0, published, delta)
    return Comparison("sep/table1", "full", "", "pima", f"sep {mean}", entry, published)


COMPARED = [
    comparison(0.5, 0.4, 4.0, "nll"),
    comparison(0.3, 0.4, -5.0, "nll"),
    comparison(-1.0, -1.1, 1.0, "test_ll"),
    comparison(9.0, 1.0, 80.0, "nll", held_out=False),
]


def test_targets_are_drawn_at_printed_and_ours_and_their_deviations_in_favour_of_ours_point_up():
    left, middle, right = draw_printed(COMPARED).axes
    points = {tuple(line.get_xydata()[0]) for line in left.lines if len(line.get_xydata()) == 1}
    assert points == {(0.4, 0.5), (0.4, 0.3)}
    assert [tuple(line.get_xydata()[0]) for line in middle.lines if len(line.get_xydata()) == 1] == [(-1.1, -1.0)]
    assert [deviation(c) for c in COMPARED[:3]] == [-4.0, 5.0, 1.0]
    assert [line.get_ydata()[0] for line in right.lines if len(line.get_xydata()) == 1] == [-4.0, 1.0, 5.0]
    assert [text.get_text() for text in right.texts] == ["sep 0.5, pima: nll"]


def test_the_legend_counts_outcomes_and_the_notes_what_is_no_target():
    figure = draw_printed(COMPARED)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["sep", "equal: 1", "better: 1", "worse: 1"]
    assert any(note.startswith("1 further printed numbers are no targets") for note in figure.notes)
    with pytest.raises(ConfigError, match="no recorded number is beside a printed one"):
        draw_printed(COMPARED[3:])
