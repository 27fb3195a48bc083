"""The checks of kernels and likelihoods: ours keep every claim, and broken ones are found."""

from typing import ClassVar

import jax.numpy as jnp
import pytest

from gpbench import registry
from gpbench.contract.families import examine_kernel, examine_likelihood
from gpbench.core.kernels import SquaredExponential
from gpbench.core.likelihoods import Probit


class Asymmetric(SquaredExponential):
    """A kernel that is none."""

    def cross(self, X, Y):
        return super().cross(X, Y) + 0.1 * X[:, :1]


class Kinked(SquaredExponential):
    """A kernel whose gradient is not finite where rows coincide."""

    def cross(self, X, Y):
        square = jnp.sum((X[:, None] - Y[None]) ** 2, axis=-1)
        return self.amplitude * jnp.exp(-jnp.sqrt(square))


class Shifted(Probit):
    """A likelihood whose expectation is not that of its density."""

    tasks: ClassVar[frozenset[str]] = frozenset({"binary"})

    def expected_log_prob(self, mean, variance, y):
        return super().expected_log_prob(mean, variance, y) + 0.1


def broken(findings):
    return [finding.claim for finding in findings if finding.verdict == "broken"]


@pytest.mark.parametrize("name", ["matern12", "periodic", "linear", "anova", {"sum": ["linear", "constant"]}], ids=str)
def test_our_kernels_keep_every_claim(name):
    assert broken(examine_kernel(name)) == []


@pytest.mark.parametrize("name", [name for name in registry.LIKELIHOODS if name not in ("softmax", "robust_max")])
def test_our_likelihoods_keep_every_claim(name):
    assert broken(examine_likelihood(name)) == []


def test_broken_ones_are_found():
    own = lambda cls: {"_target_": f"{cls.__module__}.{cls.__name__}"}
    assert any("symmetric" in claim for claim in broken(examine_kernel(own(Asymmetric))))
    gradients = "gradients in parameters and inputs are finite, at rows that coincide too"
    assert broken(examine_kernel(own(Kinked))) == [gradients]
    assert broken(examine_likelihood(own(Shifted))) == ["expected_log_prob is the expectation of log_prob"]
