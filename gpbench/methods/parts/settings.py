"""Settings that several methods share, declared once, with the initial values that they configure."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.kernels import Kernel, LengthscalePrior, LengthscaleStart, Spec, kernel_spec, lengthscale_prior
from gpbench.core.likelihoods import Gaussian, Likelihood, likelihood_spec
from gpbench.core.likelihoods import Spec as LikelihoodSpec
from gpbench.methods.base import Batch, Method
from gpbench.schema import setting


class AllRowsMethod(Method):
    """A method whose steps need all rows.  It comes first among the bases of a class, so that its setting holds."""

    batch_size: int | None = setting(None, "null", "No minibatches: a step needs all rows.")


class StartMethod(Method):
    """A method whose initial lengthscales come from the data."""

    lengthscale_start: LengthscaleStart = setting(
        "median",
        ["median", "root_median", "median_each"],
        "Initial lengthscales: the median distance between rows, its square root, or the median distance along each "
        "input.",
    )


class KernelMethod(StartMethod):
    """A method with a covariance function."""

    kernel: Spec = setting(
        "squared_exponential", "kernel", "Covariance function: a name, or a name with options.", converter=kernel_spec
    )

    def initial_kernel(self, X: Float[Array, "N D"], data: Batch) -> Kernel:
        """The kernel that training starts from, with lengthscales from rows X in the units of the training data."""
        return self.kernel.initial(X, start=self.lengthscale_start, unit=data.unit)


class PriorMethod(KernelMethod):
    """A method that can have a prior on its kernel's lengthscales."""

    lengthscale_prior: LengthscalePrior | None = setting(
        None,
        "lengthscale_prior",
        "Log-normal prior on the lengthscales, {median: M, spread: S}, whose log density is part of the objective; "
        "null: none.",
        converter=lengthscale_prior,
    )


class NoiseMethod(Method):
    """A method with a Gaussian noise, or another one of the same scale, in regression."""

    target_noise: float = setting(0.1, "positive", "Initial noise variance of the scaled targets, in regression.")
    noise_floor: float = setting(
        0.0,
        "nonnegative",
        "Smallest variance of gaussian and laplace noise that training may reach, in units of the scaled targets' "
        "variance.",
    )

    def initial_noise(self, X: Float[Array, "N D"]) -> Gaussian:
        """The Gaussian likelihood that training starts from, in the dtype of X."""
        return Gaussian.initial(self.target_noise, 0, X.dtype, floor=self.noise_floor)


class _NamedLikelihoodMethod(Method):
    """A method whose likelihood is a setting."""

    likelihood: LikelihoodSpec = setting(
        "auto",
        "likelihood",
        "Likelihood p(y|f): a name, or a name with options; auto: gaussian, poisson, probit or softmax by the task.",
        converter=likelihood_spec,
    )


class LikelihoodMethod(_NamedLikelihoodMethod, NoiseMethod):
    """A method with any likelihood that it declares in `likelihoods`."""

    def initial_likelihood(self, data: Batch) -> Likelihood:
        """The likelihood that training starts from."""
        noise = {"noise": self.target_noise, "floor": self.noise_floor}
        likelihood = self.likelihood.initial(data.task, data.classes, **noise, dtype=data.X.dtype)
        y = data.y[: data.total]
        if data.log_exposure is not None:
            y = y / jnp.mean(jnp.exp(data.log_exposure[: data.total]))
        return likelihood.started(y)


class TwoClassMethod(_NamedLikelihoodMethod):
    """A method for two classes, with a likelihood that has no parameters."""

    tasks: ClassVar[frozenset[str]] = frozenset({"binary"})
    likelihoods: ClassVar[tuple[str, ...] | None] = ("probit", "logistic")

    def class_likelihood(self, X: Float[Array, "N D"]) -> Likelihood:
        """The likelihood of the labels -1 and 1, in the dtype of X."""
        return self.likelihood.initial("binary", 2, noise=1.0, dtype=X.dtype)
