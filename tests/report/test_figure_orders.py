"""Figures of orders: slopes of seconds, operations and memory in logarithms."""

import re
from dataclasses import replace

import numpy as np
import pytest
from drawings import cell, drawn, experiment, record, small_print

from gpbench.errors import ConfigError
from gpbench.experiments import layout


def test_orders_are_slopes_of_lines_in_logarithms_along_one_size_where_the_others_are_fixed():
    """Seconds of C² M³ / 100 per step: exactly 2 along C and 3 along M; memory in proportion to C alone."""
    sizes = [(c, m) for c in (2, 4, 8) for m in (16,)] + [(4, 8), (4, 32)]
    cells = [
        replace(
            cell(
                {"method": "gam", "posterior": "full", "C": str(c), "M": str(m)},
                record("a", seconds={"train": c**2 * m**3 / 1e3}, steps=10, step_memory_mb=5.0 * c),
            ),
            id=f"{c}-{m}",
        )
        for c, m in sizes
    ]
    options = experiment(kind="orders", along=["C", "M"], colour="posterior", published={"C": {"full": 1}})
    figure = drawn(options, cells)
    along_c, along_m, memory, _ = figure.axes
    np.testing.assert_allclose(along_c.lines[0].get_xydata(), [(c, 1e3 * c**2 * 16**3 / 1e4) for c in (2, 4, 8)])
    assert along_m.lines[0].get_xdata().tolist() == [8, 16, 32]
    np.testing.assert_allclose(memory.lines[0].get_ydata(), [10.0, 20.0, 40.0])
    notes = small_print(figure)
    assert notes[0] == "exponent of ms a step in C (M = 16): full 2.00 ± 0.00 [1]"
    assert notes[1] == "exponent of ms a step in M (C = 4): full 3.00 ± 0.00"
    assert notes[2].startswith("exponent of MB a step in C (M = 16): full 1.00")


def test_orders_of_counted_steps_are_of_operations_and_leave_out_what_is_not_recorded():
    counts = {"2": 8.0, "4": 32.0, "8": 128.0}
    cells = [
        replace(cell({"method": "gam", "M": m}, record(m, step_operations=count)), id=m) for m, count in counts.items()
    ]
    figure = drawn(experiment(kind="orders", along=["M"], colour="method", counted=True), cells)
    assert "exponent of operations a step in M: gam 2.00 ± 0.00" in " ".join(small_print(figure))
    cells = [replace(cell({"method": "gam", "p": "x", "C": c, "M": "8"}, record(c, steps=4)), id=c) for c in ("2", "4")]
    figure = drawn(experiment(kind="orders", along=["C", "M"], colour="p"), cells)
    assert [len(axis.lines) for axis in figure.axes] == [1, 0, 0, 0]
    assert small_print(figure)[0] == "exponent of ms a step in C (M = 8): x 0.00"
    cells = [replace(cell({"method": "gam", "size": size}, record(size, steps=4)), id=size) for size in ("4", "large")]
    with pytest.raises(ConfigError, match=r"needs numbers along size, and 4 is called 'm = 4'"):
        drawn(experiment(kind="orders", along=["size"], colour="method"), cells)


def test_orders_name_the_fixed_sizes_of_each_line_where_they_differ_and_label_the_ticks_that_leave_room():
    sizes = [("a", c, 8) for c in (1000, 1100, 2_000_000)] + [("b", c, 16) for c in (1000, 1100, 2_000_000)]
    cells = [
        replace(cell({"method": "gam", "p": p, "C": str(c), "M": str(m)}, record(f"{p}{c}", steps=4)), id=f"{p}{c}")
        for p, c, m in sizes
    ]
    figure = drawn(experiment(kind="orders", along=["C", "M"], colour="p"), cells)
    assert re.fullmatch(r"exponent of ms a step in C: a .* \(M = 8\), b .* \(M = 16\)", small_print(figure)[0])
    assert [tick.get_text() for tick in figure.axes[2].get_xticklabels()] == ["1e3", "", "2e6"]


def test_published_exponents_are_numbers_by_key_and_value(tmp_path):
    for published, message in (
        ([1], r"published=\[1\]: must be a mapping of keys to mappings"),
        ({"size": 1}, r"must be a mapping of keys to mappings of values to numbers"),
        ({"sizes": {"gam": 1}}, r"no run has the key 'sizes'"),
        ({"size": {"gan": 1}}, r"published.size: no run has the value 'gan'; did you mean gam"),
        ({"size": {"gam": "two"}}, r"published.size.gam=two: must be a number"),
    ):
        options = {"kind": "orders", "along": ["size"], "colour": "method", "published": published}
        with pytest.raises(ConfigError, match=message):
            layout.check(tmp_path, {"figure": options}, [{"method": "gam", "size": [4, 8]}])
