"""docs/reference/errata.md, paper `aep_dgp`: what is printed and what holds."""

import numpy as np
import pytest

from gpbench.data import cards
from gpbench.papers.published import later, rows_of

RNG = np.random.default_rng(0)


def gram(a, b):
    return np.exp(-0.5 * (a[:, None] - b[None]) ** 2)


def spd(n):
    root = RNG.normal(size=(n, n))
    return root @ root.T / n + 0.1 * np.eye(n)


def variance(V, Z, h, noise):
    """v_{2|h} of section 5 from the cavity covariance V of some layer."""
    k = np.linalg.solve(gram(Z, Z), gram(Z, h))
    return noise + 1 - np.sum(gram(Z, h) * k, axis=0) + np.sum(k * (V @ k), axis=0)


def test_section_5_takes_the_second_layers_cavity():
    Z, h, noise, m = np.linspace(-2, 2, 4), np.array([0.3]), 0.2, RNG.normal(size=4)
    V1, V2 = spd(6), spd(4)  # the layers need not have equally many inducing points
    with pytest.raises(ValueError):
        variance(V1, Z, h, noise)  # printed
    V1 = spd(4)
    u = m + RNG.normal(size=(400_000, 4)) @ np.linalg.cholesky(V2).T
    mean = u @ np.linalg.solve(gram(Z, Z), gram(Z, h))[:, 0]
    rest = variance(np.zeros((4, 4)), Z, h, noise)[0]
    y = mean + np.sqrt(rest) * RNG.normal(size=len(mean))
    error = np.sqrt(2 / len(y)) * y.var()
    assert variance(V2, Z, h, noise)[0] == pytest.approx(y.var(), abs=4 * error)
    assert abs(variance(V1, Z, h, noise)[0] - y.var()) > 20 * error


def moments(psi_0, psi_1, psi_2, m, V, Kuu, noise):
    """Appendix D, equations 1 and 2, with 6 and 7."""
    inverse = np.linalg.inv(Kuu)
    B = inverse @ (V + np.outer(m, m)) @ inverse - inverse
    mean = psi_1 @ inverse @ m
    return mean, noise + psi_0 + np.trace(B @ psi_2) - mean**2


def test_appendix_d_equation_5_defines_the_second_psi():
    Z, m, V, noise = np.linspace(-2, 2, 4), RNG.normal(size=4), spd(4), 0.2
    x, w = np.polynomial.hermite_e.hermegauss(80)
    h, w = 0.5 + 0.8 * x, w / w.sum()  # q(h) = N(0.5, 0.64)
    psi_1 = w @ gram(h, Z)
    psi_2 = (gram(Z, h) * w) @ gram(h, Z)
    at_h = gram(h, Z) @ np.linalg.solve(gram(Z, Z), m)
    brute = w @ variance(V, Z, h, noise) + w @ at_h**2 - (w @ at_h) ** 2  # law of total variance
    assert moments(1.0, psi_1, psi_2, m, V, gram(Z, Z), noise)[1] == pytest.approx(brute)
    assert psi_2.shape == (4, 4) and psi_1.shape == (4,)  # one symbol cannot be both


def test_appendix_d_equation_3_averages_over_the_layer_below():
    # a linear kernel, whose k(h, h) is not a constant, on a third layer with one inducing point
    kernel = lambda a, b: np.multiply.outer(a, b)
    Z, m, V, noise = np.array([1.5]), np.array([0.4]), np.array([[0.3]]), 0.1
    first, second = (0.2, 0.5), (-0.7, 1.4)  # mean and variance of q(h1) and q(h2)
    psi_1 = np.array([second[0] * 1.5])
    psi_2 = np.array([[1.5**2 * (second[0] ** 2 + second[1])]])
    h = second[0] + np.sqrt(second[1]) * RNG.normal(size=400_000)
    u = m[0] + np.sqrt(V[0, 0]) * RNG.normal(size=len(h))
    y = h / 1.5 * u + np.sqrt(noise) * RNG.normal(size=len(h))  # a linear function is known from one value
    error = y.var() * np.sqrt(((y - y.mean()) ** 4).mean() / y.var() ** 2 / len(y))
    of = {name: q[0] ** 2 + q[1] for name, q in (("corrected", second), ("printed", first))}
    values = {name: moments(psi_0, psi_1, psi_2, m, V, kernel(Z, Z), noise)[1] for name, psi_0 in of.items()}
    assert values["corrected"] == pytest.approx(y.var(), abs=4 * error)
    assert abs(values["printed"] - y.var()) > 20 * error


@pytest.mark.parametrize("dataset", ("kin8nm", "power", "protein", "wine_red", "year"))
def test_tables_3_and_4_are_far_below_every_held_out_result(dataset):
    printed = [row for row in rows_of("papers") if (row["source"], row["dataset"]) == ("aep_dgp", dataset)]
    leaked = [row for row in printed if row["metric"] == "rmse" and row["note"] in ("int8", "int8_inferred")]
    held_out = [row.value for row in later(dataset, "rmse") if row.held_out]
    assert len(leaked) == 12 and len(held_out) >= 12
    assert min(float(row["mean"]) for row in leaked) < 0.4 * min(held_out)
    assert not any(row["held_out"] == "1" for row in leaked)  # no table shows them as targets


SIZES = {
    **{"glass": (214, 9, 6), "new_thyroid": (215, 5, 3), "svmguide2": (319, 20, 3), "wine": (178, 13, 3)},
    **{"boston": (506, 13), "concrete": (1030, 8), "energy": (768, 8), "kin8nm": (8192, 8), "naval": (11934, 16)},
    **{"power": (9568, 4), "protein": (45730, 9), "wine_red": (1588, 11), "yacht": (308, 6), "year": (515345, 90)},
}
"""N and D, and K of classes, as tables 2 to 4 print them."""


def test_tables_2_to_4_print_other_sizes_of_svmguide2_and_red_wine_than_their_files_have():
    # a card's numbers are checked against the file whenever it is read
    wrong = {}
    for name, printed in SIZES.items():
        card = cards.read(name)
        classes = (len(card["counts"]),) if len(printed) == 3 else ()
        if (true := (card["rows"], card["inputs"], *classes)) != printed:
            wrong[name] = true
    assert wrong == {"svmguide2": (391, 20, 3), "wine_red": (1599, 11)}
