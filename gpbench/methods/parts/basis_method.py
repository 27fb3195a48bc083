"""Configuration and start of `qsgp` and `qsrvm`: hyper-parameters, basis functions, weights and control variate."""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.core.bases import Basis, KernelFunctions, RandomFeatures
from gpbench.core.bases.base import take
from gpbench.core.bases.fourier import SPECTRAL, spectral_degrees
from gpbench.core.kernels import Kernel, require_family
from gpbench.core.likelihoods import Gaussian
from gpbench.core.linalg import inverse_cholesky
from gpbench.core.memory import require_memory
from gpbench.errors import ConfigError, refuse, require
from gpbench.methods.base import Batch
from gpbench.methods.parts.basis_bound import Hyper
from gpbench.methods.parts.basis_weights import ControlVariate, Functions, Weights, columns
from gpbench.methods.parts.exact import SubsetStart
from gpbench.methods.parts.mean_solver import MeanSolver, chosen_solver, regressors_mean, start_solver
from gpbench.methods.parts.settings import LikelihoodMethod
from gpbench.schema import setting


class BasisState(eqx.Module):
    """The model, its optimisers, the control variate, and the solver of the mean where there is one.  `sums` are
    AdaGrad's sums of squared gradients of `weights`, and `rate` is its initial rate; `squares` is the mean over rows of
    each function's square, without its unit."""

    basis: Basis
    hyper: Hyper
    hyper_optimiser: optax.OptState
    weights: Weights
    sums: Weights
    rate: Float[Array, ""]
    squares: Float[Array, "B block"] | None
    control: ControlVariate | None
    rows: Int[Array, ""]
    step: Int[Array, ""]
    solver: MeanSolver | None


class BasisMethod(SubsetStart, LikelihoodMethod):
    """A GP on many basis functions: its settings, their admissible combinations, and the initial state."""

    tasks: ClassVar[frozenset[str]] = frozenset({"binary", "regression"})
    likelihoods: ClassVar[tuple[str, ...] | None] = ("gaussian", "laplace", "probit", "logistic")
    searchable: ClassVar[tuple[str, ...]] = ("rate",)
    label_fields: ClassVar[frozenset[str]] = frozenset({"features", "basis", "dense_columns"})

    features: str = setting(
        "rff",
        ["rff", "inducing"],
        "Basis functions: random Fourier features with prior precision S = I, or kernel functions around "
        "training rows with S = K.",
    )
    basis: int | None = setting(
        100_000, "count or null", "Number m of basis functions; null: a kernel function for every training row."
    )
    basis_batch: int = setting(
        10_000, "count", "Number of functions in each draw of a step; all where there are fewer."
    )
    block: int = setting(
        100,
        "count",
        "Number of consecutive functions that are drawn together; 1 draws them one by one, which is slower.",
    )
    replacement: bool = setting(False, "flag", "Draws with replacement, as in the paper's proofs.")
    store: bool = setting(
        False,
        "flag",
        "Frequencies of random features in memory, m (D + 1) numbers, instead of generated from a seed in each step.",
    )
    dense_columns: int = setting(
        0, "whole", "Number k of dense columns of C in q(w) = N(mean, C Cᵀ); 0: C is diagonal."
    )
    relevance: bool = setting(
        False, "flag", "Diagonal prior precision S with a trained entry for each kernel function, which is qsrvm."
    )
    control_rows: int | str | None = setting(
        "auto",
        "rows or auto or null",
        "Rank of the control variate, or of the preconditioner of solver=cg; auto: 500, for cg a tenth of the rows "
        "where that is more, and at most 2,000; null: neither.",
    )
    solver: str = setting(
        "adagrad",
        ["auto", "adagrad", "blocks", "cg", "dual"],
        "Solver of the mean of kernel functions around all rows under Gaussian noise: the paper's AdaGrad; "
        "or, for (K + σ²I) mean = y, exact solutions of each minibatch's equations in turn, conjugate gradients, or "
        "stochastic dual descent; auto: cg where it is possible with at most 100,000 rows.",
    )
    tolerance: float = setting(
        1e-3,
        "nonnegative",
        "Residual relative to y at which blocks, cg and dual have converged, so that training ends.",
    )
    regressors: int = setting(
        0,
        "whole",
        "Number of kernel functions from whose solution without the others AdaGrad starts (subset of regressors); 0: "
        "from a mean of 0.",
    )
    bound: str = setting(
        "corrected",
        ["corrected", "printed"],
        "Theorem 3 for other than Gaussian noise: as corrected (docs/reference/errata.md), or as printed, no bound.",
    )
    augmentation: bool = setting(
        False,
        "flag",
        "A function around the test point beside the kernel functions in its predictive variance (proposition 4).",
    )
    plug_in: bool = setting(False, "flag", "Predictions at the posterior mean of f, without its variance.")
    rate: float = setting(0.1, "positive", "Initial rate of AdaGrad for the weights.")
    decay: float = setting(
        0.1, "fraction", "Factor by which all rates have fallen at the last step; they fall exponentially."
    )
    optimiser: optax.GradientTransformation | None = setting(
        None, "optimiser or null", "Optimiser of the hyper-parameters; null: they stay fixed."
    )
    freeze: float = setting(0.1, "share", "Fraction of the steps before the hyper-parameters move.")

    @property
    def label(self) -> str:
        return f"{self.features}, m={'n' if self.basis is None else _short(self.basis)}, k={self.dense_columns}"

    def init(self, data: Batch, *, key: PRNGKeyArray) -> BasisState:
        X, dtype = data.X[: data.total], data.X.dtype
        self._check(data)
        solver = chosen_solver(self, data)
        hyper = self._initial_hyper(data)
        basis = self._initial_basis(hyper.kernel, X, key=key)
        count = basis.blocks
        gaussian = isinstance(hyper.likelihood, Gaussian)
        squares = basis.initial_squares(hyper.kernel, X) if gaussian else None
        zeros = jnp.zeros((count, basis.block), dtype)
        weights = Weights(
            zeros,
            jnp.zeros((count, basis.block, self.dense_columns), dtype),
            None if gaussian else zeros,
            zeros if self.relevance else None,
        )
        weights = _with_closed_form_diagonal(weights, squares, basis, hyper, X)
        if self.regressors and solver == "adagrad":
            mean = regressors_mean(hyper, X, X[: self.regressors], data.y[: data.total])
            mean = zeros.ravel().at[: len(mean)].set(mean).reshape(zeros.shape)
            weights = eqx.tree_at(lambda w: w.mean, weights, mean)
        control = self._initial_control(hyper, basis, weights, X) if gaussian and solver == "adagrad" else None
        sums = jax.tree.map(jnp.zeros_like, weights)
        optimiser = None if self.optimiser is None else self.optimiser.init(hyper)
        rate, rows, step = jnp.asarray(self.rate, dtype), jnp.asarray(data.total), jnp.asarray(0)
        solving = None if solver == "adagrad" else self._initial_solver(solver, hyper, basis, weights, squares, data)
        return BasisState(basis, hyper, optimiser, weights, sums, rate, squares, control, rows, step, solving)

    def with_settings(self, state: BasisState, settings: Mapping[str, float]) -> BasisState:
        """An initial state with another `rate`."""
        return eqx.tree_at(lambda s: s.rate, state, jnp.asarray(settings["rate"], state.rate.dtype))

    def settings(self, state: BasisState) -> dict[str, Array]:
        return {"rate": state.rate}

    def _check(self, data: Batch) -> None:
        n, m = data.total, self.size(data.total)
        random = self.features == "rff"
        if random:
            require_family(self.kernel, SPECTRAL, f"{self.name} with features=rff")
        kernel_functions = "needs kernel functions: set method.features=inducing"
        mistakes = {
            "basis=null is one function for every training row, which needs method.features=inducing: set a number of"
            " random features": random and self.basis is None,
            f"relevance=true {kernel_functions}": random and self.relevance,
            f"augmentation=true {kernel_functions}": random and self.augmentation,
            f"basis={m}: there are {n} training rows to put kernel functions around; choose no more, or null for"
            " all": not random and m > n,
            "optimiser: log|S| of kernel functions has no cheap estimate, so that their hyper-parameters stay fixed:"
            " set method.optimiser=null": not (random or self.optimiser is None or self.relevance),
            "augmentation=true: proposition 4 needs a kernel function around every training row: set"
            " method.basis=null and method.relevance=false": self.augmentation and (m < n or self.relevance),
            f"block={self.block}: functions are drawn in whole blocks, {self.basis_batch} in a draw"
            " (method.basis_batch): choose no more": self.block > self.basis_batch,
            f"regressors={self.regressors}: needs regression on as many kernel functions, whose prior precision is K:"
            " set method.regressors=0": self.regressors
            and (random or self.relevance or self.regressors > m or data.task != "regression"),
            f"dense_columns={self.dense_columns} of {m} basis functions: choose no more": self.dense_columns > m,
            f"control_rows={self.control_rows}: there are {n} training rows; choose no more": isinstance(
                self.control_rows, int
            )
            and self.control_rows > n,
        }
        refuse("method.", *((holds, text) for text, holds in mistakes.items()))
        itemsize, d, c = data.X.dtype.itemsize, data.X.shape[1], 2 * min(self.basis_batch, m)
        numbers = 2 * (self.dense_columns + 2) * m + (m * (d + 1) if random and self.store else 0)
        work = 4 * c * (min(self.batch_size or n, n) + (self.support(n) or 0)) + 2 * c * (d + self.dense_columns)
        subject = f"{m:,} basis functions with {self.dense_columns} dense columns"
        fewer = "of them (method.basis, method.basis_batch)" + (", method.store=false" if self.store else "")
        require_memory((numbers + work) * itemsize, subject, fewer)

    def limits(self, n: int) -> dict[str, int]:
        return {"basis_batch": self.size(n)}

    def size(self, n: int) -> int:
        """Number m of basis functions for n training rows."""
        return n if self.basis is None else self.basis

    def support(self, n: int) -> int | None:
        """The rank of the control variate for n training rows."""
        return min(500, n) if isinstance(self.control_rows, str) else self.control_rows

    def _initial_hyper(self, data: Batch) -> Hyper:
        floor, dtype = self.noise_floor, data.X.dtype
        likelihood = self.initial_likelihood(data)
        need = "a log-concave likelihood of one function, such as gaussian, laplace, logistic or probit"
        is_fit = likelihood.log_concave and likelihood.latents() == 1
        require(is_fit, f"{self.name} needs {need}, and not {self.likelihood}", ConfigError)
        fault = f"is derived for Gaussian noise, not for {type(likelihood).__name__.lower()}"
        augments = self.augmentation and not isinstance(likelihood, Gaussian)
        mend = "set method.augmentation=false"
        require(not augments, f"method.augmentation=true: proposition 4 {fault}: {mend}", ConfigError)
        if self.subset_rows is None or data.task != "regression":
            return Hyper(self.initial_kernel(data.first(2000).X, data), likelihood)
        model = self.subset_gp(data, self.subset_rows)
        if type(likelihood) is type(model.likelihood):
            return Hyper(model.kernel, model.likelihood)
        own = float(model.likelihood.noise)
        likelihood = self.likelihood.initial(data.task, 0, noise=own, floor=floor, dtype=dtype)
        return Hyper(model.kernel, likelihood)

    def _initial_basis(self, kernel: Kernel, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Basis:
        m = self.size(len(X))
        block = min(self.block, m)
        if self.features == "inducing":
            return KernelFunctions.around(X[:m], block)
        basis = RandomFeatures(key=key, size=m, block=block, degrees=spectral_degrees(kernel))
        return basis.store(X.shape[1], X.dtype) if self.store else basis

    def _initial_control(
        self, hyper: Hyper, basis: Basis, weights: Weights, X: Float[Array, "N D"]
    ) -> ControlVariate | None:
        p = self.support(len(X))
        if p is None:
            return None
        support = X[-p:]  # rows come in random order, and kernel functions are around the first ones
        needs_root = self.features == "inducing" and not self.relevance
        root = inverse_cholesky(hyper.kernel.cross(support, support)) if needs_root else None
        filled = max(self.dense_columns, self.regressors, 1)
        blocks = jnp.arange(-(-filled // basis.block))  # of the only entries that are not 0
        running = basis.evaluate(hyper.kernel, support, blocks) @ columns(take(weights, blocks), basis.index(blocks))
        return ControlVariate(support, hyper.kernel, running, root)

    def _initial_solver(
        self,
        name: str,
        hyper: Hyper,
        basis: Basis,
        weights: Weights,
        squares: Float[Array, "B block"] | None,
        data: Batch,
    ) -> MeanSolver:
        X, n = data.X[: data.total], data.total
        every = Functions.of_blocks(basis, jnp.arange(basis.blocks), X, squares, jnp.asarray(n))
        scales2 = every.diagonal_squares(weights, hyper.kernel, hyper.noise)[:n]
        subset, batch = min(self.subset_rows or 1000, n), min(self.batch_size or n, n)
        log_scales = 0.5 * jnp.log(scales2)
        rank = min(n, 2000, max(500, n // 10)) if isinstance(self.control_rows, str) else self.control_rows
        return start_solver(name, hyper, X, data.y[:n], log_scales, rank=rank, rows=subset, batch=batch)


def _short(m: int) -> str:
    """A number as text: 1e5 for 100,000, and 12345 for 12,345."""
    zeros = len(str(m)) - len(str(m).rstrip("0"))
    return f"{m // 10**zeros}e{zeros}" if zeros > 3 else str(m)


def _with_closed_form_diagonal(
    weights: Weights, squares: Float[Array, "B block"] | None, basis: Basis, hyper: Hyper, X: Float[Array, "N D"]
) -> Weights:
    """The diagonal entries of the dense columns start at those of a diagonal C (proposition 1)."""
    k = weights.width
    if squares is None or k == 0:
        return weights
    blocks = jnp.arange(-(-k // basis.block))
    narrow = eqx.tree_at(lambda w: w.dense, take(weights, blocks), replace_fn=lambda dense: dense[..., :0])
    some = Functions.of_blocks(basis, blocks, X, squares, jnp.asarray(len(X)))
    scales2 = some.diagonal_squares(narrow, hyper.kernel, hyper.noise)
    flat = weights.dense.reshape(-1, k).at[jnp.arange(k), jnp.arange(k)].set(0.5 * jnp.log(scales2[:k]))
    return eqx.tree_at(lambda w: w.dense, weights, flat.reshape(weights.dense.shape))
