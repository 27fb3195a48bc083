"""Texts of pictures: what is a formula, and what is a name."""

import matplotlib.pyplot as plt

from gpbench.report.figures import style


def test_powers_of_ten_are_formulas_and_names_are_not():
    figure, axis = plt.subplots()
    axis.plot([1, 1e4], [1, 1e6], label="$x$")
    axis.set(yscale="log", title="$y$")
    style.take_literally(figure)
    powers = axis.yaxis.get_ticklabels()
    assert any("10^{3}" in label.get_text() for label in powers) and all(label.get_parse_math() for label in powers)
    assert not axis.title.get_parse_math() and not any(label.get_parse_math() for label in axis.get_xticklabels())
    plt.close(figure)
