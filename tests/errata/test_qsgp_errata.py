"""docs/reference/errata.md, paper `qsgp`: what is printed and what holds, for the logistic likelihood."""

import itertools

import numpy as np
import pytest

from gpbench.core.quadrature import gauss_hermite

RNG = np.random.default_rng(0)
BASES, MINI = 6, 3
PHI = RNG.normal(size=BASES)
MU = RNG.normal(size=BASES)
FACTOR = 0.12 * np.tril(RNG.normal(size=(BASES, BASES)))
MEAN, VARIANCE = PHI @ MU, np.sum((PHI @ FACTOR) ** 2)


def log_g(x):
    """log sig(-x): the site of a row with label -1."""
    return -np.logaddexp(0.0, x)


def expected(scale):
    """E log g(φμ + z scale) by Gauss-Hermite quadrature with the paper's 101 nodes."""
    z, w = gauss_hermite(101)
    return w @ log_g(MEAN + z * scale)


TRUE = expected(np.sqrt(VARIANCE))


def mean_and_error(values):
    return values.mean(), values.std() / np.sqrt(len(values))


def test_equation_5_has_the_standard_deviation():
    w = MU + RNG.normal(size=(1_000_000, BASES)) @ FACTOR.T
    average, error = mean_and_error(log_g(w @ PHI))
    assert average == pytest.approx(TRUE, abs=4 * error)
    assert abs(expected(VARIANCE) - average) > 20 * error  # printed


def estimates(bound, count, mini):
    """Samples (count,) of the right side of theorem 3 for one row, from how often each index i, j and r was drawn."""
    i, j, r = RNG.multinomial(mini, np.full(BASES, 1 / BASES), size=(3, count))
    scale = BASES / mini
    first = scale * (i * PHI) @ MU
    left, right = (i * PHI) @ FACTOR, (j * PHI) @ FACTOR
    if bound == "printed":
        return log_g(first + scale**3 * RNG.normal(size=count) * (right * r * left).sum(1))
    return log_g(first + scale**2 * (left * r * RNG.normal(size=(count, BASES))).sum(1))


def test_theorem_3_bounds_another_quantity_than_its_left_side():
    # with ever more samples of the columns the printed argument tends to φμ + z φΣφᵀ, and Jensen has nothing to add
    assert VARIANCE < 1
    assert expected(VARIANCE) > TRUE  # so the limit is above what it should bound from below
    average, error = mean_and_error(estimates("printed", 100_000, 2_000))
    assert average > TRUE + 4 * error


@pytest.mark.parametrize("mini", (1, MINI, 40))
def test_theorem_3_holds_with_an_argument_linear_in_the_sampled_sums(mini):
    average, error = mean_and_error(estimates("corrected", 100_000, mini))
    assert average < TRUE + 3 * error


def dropout_objectives():
    """E log g of the mean alone: with i.i.d. draws of MINI functions, with MINI different ones, and with dropout's
    masks, which keep every function with probability MINI / BASES; and the last given that MINI functions stay."""
    scale, terms = BASES / MINI, PHI * MU
    drawn = [terms[list(i)].sum() for i in itertools.product(range(BASES), repeat=MINI)]
    different = [terms[list(i)].sum() for i in itertools.combinations(range(BASES), MINI)]
    masks = np.array(list(itertools.product((0, 1), repeat=BASES)))
    weight = np.prod(np.where(masks, MINI / BASES, 1 - MINI / BASES), axis=1)
    stay, sums = masks.sum(1) == MINI, masks @ terms
    np.testing.assert_allclose([scale * np.mean(drawn), scale * np.mean(different), scale * weight @ sums], MEAN)
    objectives = [log_g(scale * np.asarray(s)).mean() for s in (drawn, different)]
    return *objectives, weight @ log_g(scale * sums), np.average(log_g(scale * sums)[stay], weights=weight[stay])


def test_theorem_3_without_a_covariance_is_dropout_only_given_how_many_functions_stay():
    drawn, different, dropout, given_their_number = dropout_objectives()
    assert given_their_number == pytest.approx(different, rel=1e-12)
    bias = log_g(MEAN) - dropout
    assert drawn < dropout - 0.5 * bias and different < dropout - 0.1 * bias  # printed: identical
    assert max(drawn, different, dropout) < log_g(MEAN)  # each is below the log likelihood, as Jensen says
