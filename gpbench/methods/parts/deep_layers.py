"""The layers of deep GPs as values, their settings and their initial values."""

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.features import InducingPoints, inducing_points
from gpbench.core.gaussians import Normal
from gpbench.core.kernels import Kernel
from gpbench.core.linalg import inverse_cholesky, product
from gpbench.core.predictive import MixturePredictive, Predictive
from gpbench.core.psi import Moments
from gpbench.core.quadrature import gaussian_points, require_points
from gpbench.methods.base import Batch, inducing_count, inducing_setting, size_label
from gpbench.methods.parts.settings import LikelihoodMethod, PriorMethod
from gpbench.methods.parts.sparse_layer import SparseLayer
from gpbench.schema import SIZE, setting


class DeepLayer(eqx.Module):
    """P functions (units) of the same inputs: one kernel and additive noise, and inducing points for each unit, or one
    set for all.  `log_noise` is the logarithm of the noise variance on every output; None in the last layer, whose
    noise is the likelihood's."""

    kernel: Kernel
    log_noise: Float[Array, ""] | None
    Z: Float[Array, "S M D"]  # S is P or 1

    @property
    def noise(self) -> Float[Array, ""]:
        """The noise variance on every output; 0 without one."""
        return jnp.zeros((), self.Z.dtype) if self.log_noise is None else jnp.exp(self.log_noise)

    def unit(self, Z: Float[Array, "M D"]) -> SparseLayer:
        """The unit with these inducing points, without the noise; `jax.vmap` maps it over `self.Z`."""
        return SparseLayer(self.kernel, None, InducingPoints(Z))

    def whitening(self) -> Float[Array, "S M M"]:
        """The inverse Cholesky factor A of every Kzz: w = A u."""
        return jax.vmap(lambda Z: inverse_cholesky(self.unit(Z).gram()))(self.Z)

    def diagnose(self) -> str:
        """Find the reason why a factorisation of Kzz fails with these parameters; "" where none does."""
        return next(filter(None, (self.unit(Z).diagnose() for Z in self.Z)), "")


class LayerPosterior(eqx.Module):
    """A layer with q(w) of its units' whitened inducing outputs, and the whitening A = L⁻¹ of their Kzz = L Lᵀ."""

    layer: DeepLayer
    q: Normal
    A: Float[Array, "S M M"]

    @classmethod
    def create(cls, layer: DeepLayer, q: Normal) -> "LayerPosterior":
        """`q` has a leading axis P."""
        return cls(layer, q, layer.whitening())

    def moments_at(self, X: Float[Array, "N D"]) -> Moments:
        """Mean and variance of every unit, (N, P) each, noise included, at known inputs."""

        def whitened(Z: Any, A: Any) -> Any:
            V = product(A, InducingPoints(Z).cross(kernel, X))
            return V, jnp.maximum(kernel.diag(X) - jnp.sum(V**2, axis=0), 0.0)

        kernel = self.layer.kernel
        V, residual = jax.vmap(whitened)(self.layer.Z, self.A)
        is_shared = len(V) == 1
        project = jax.vmap(Normal.project, in_axes=(0, None if is_shared else 0))
        mean, variance = project(self.q, V[0] if is_shared else V)
        return Moments(mean.T, (variance + residual).T + self.layer.noise)


class DeepMethod(PriorMethod, LikelihoodMethod):
    """A deep GP: the settings of its layers and its likelihood, and their initial values."""

    label_fields: ClassVar[frozenset[str]] = frozenset({"inducing", "batch_size", "hidden"})
    shares_points: ClassVar[bool] = False  # whether the units of a layer have the same inducing points

    hidden: tuple[int | str, ...] = setting(
        (2,),
        "list of units",
        "Number of units of each hidden layer, inputs for as many as inputs and at most a quarter of `samples`; []: a "
        "model of one layer.",
        converter=tuple,
    )
    inducing: float | int | str = setting(
        50,
        SIZE,
        "Number of inducing points of every unit, at most the training rows; or a fraction of the rows, at most 1,000 "
        "points.  1 is one point, 1.0 all rows; '15%, at least 200' is 200 of up to 1,333 rows.",
    )
    start: str = setting(
        "kmeans",
        ["rows", "kmeans"],
        "Initial inducing points of the first layer: random training rows, or cluster centres of the rows.",
    )
    noise: float = setting(0.01, "positive", "Initial noise variance of hidden units.")
    samples: int = setting(64, "count", "Number of paths through the hidden layers in a sampled prediction.")

    @property
    def label(self) -> str:
        return size_label(self, inducing_setting(self.inducing), f"hidden=[{','.join(map(str, self.hidden))}]")

    def widths(self, X: Float[Array, "N D"]) -> tuple[int, ...]:
        """Number of units of each hidden layer, with the inputs of X."""
        inputs = min(X.shape[1], max(1, self.samples // 4))
        return tuple(inputs if isinstance(units, str) else units for units in self.hidden)

    def require_paths(self, data: Batch) -> None:
        """Raise ConfigError for a number of `samples` that has no points of quadrature for the hidden units."""
        if self.hidden:
            require_points("method.samples", self.samples, sum(self.widths(data.X)))

    def average_paths(
        self, predictive: Callable[[Float[Array, " H"]], Predictive], X: Float[Array, "N D"]
    ) -> Predictive:
        """The mixture of the predictions along `samples` paths, each with its noise of the H hidden units."""
        points = jnp.asarray(gaussian_points(self.samples, sum(self.widths(X))), X.dtype)
        return MixturePredictive(jax.vmap(predictive)(points), jnp.zeros(self.samples, X.dtype))

    @abc.abstractmethod
    def posteriors(self, parameters: Any) -> list[LayerPosterior]:
        """Every layer with its q(w)."""

    def latents(self, state: Any, X: Float[Array, "N D"]) -> dict[str, Array]:
        """The means of the first layer's units where there is a hidden layer."""
        first, *others = self.posteriors(state.parameters)
        return {"hidden": first.moments_at(X).mean} if others else {}

    def arrays(self, state: Any) -> dict[str, Array]:
        """The inducing points of the first layer's first unit."""
        return {"inducing": state.parameters.layers[0].Z[0]}

    def diagnose(self, state: Any) -> str:
        """Find the layer whose Kzz cannot be factorised, and the reason; "" where all can."""
        reasons = [layer.diagnose() for layer in state.parameters.layers]
        return next((f"layer {depth}: {reason}" for depth, reason in enumerate(reasons, start=1) if reason), "")

    def log_prior(self, layers: Sequence[DeepLayer]) -> Float[Array, ""]:
        """The log density of the layers' lengthscales under their prior: 0 without one."""
        if self.lengthscale_prior is None:
            return jnp.zeros((), layers[0].Z.dtype)
        values = [self.lengthscale_prior.log_prob(layer.kernel, layer.Z.shape[2]) for layer in layers]
        return jnp.sum(jnp.stack(values))

    def initial_layers(
        self,
        data: Batch,
        outputs: int,
        means: Sequence[Float[Array, "_ _"]] = (),
        *,
        hidden_start: str = "fill",
        key: PRNGKeyArray,
    ) -> tuple[DeepLayer, ...]:
        """The layers to start from, the last with `outputs` units.  The first layer's inducing points are rows or their
        cluster centres, for each of its units.  With linear `means` (D, P) of the hidden layers those of a later layer
        are where the means take them, with lengthscales of `lengthscale_start`.  Without, they are of `hidden_start`,
        with the lengthscale e (the program of the authors of the paper `aep_dgp`).  Raises ConfigError for more
        inducing points than rows, or an unfit kernel."""
        X, dtype = data.X[: data.total], data.X.dtype
        Z = inducing_points(X, inducing_count(self.inducing, len(X)), self.start, key=key)
        kernel = self.initial_kernel(Z, data)
        log_noise, layers, widths = jnp.asarray(jnp.log(self.noise), dtype), [], (*self.widths(X), outputs)
        for depth, units in enumerate(widths):
            if depth and means:
                Z = Z @ means[depth - 1]
                kernel = self.kernel.initial(Z, start=self.lengthscale_start)
            elif depth:
                Z = jnp.asarray(_HIDDEN_STARTS[hidden_start](len(Z), widths[depth - 1]), dtype)
                kernel = _with_lengthscale(self.kernel.initial(Z, start="median"), 1.0)
            sets, is_last = 1 if self.shares_points else units, depth == len(widths) - 1
            layers.append(DeepLayer(kernel, None if is_last else log_noise, jnp.broadcast_to(Z, (sets, *Z.shape))))
        return tuple(layers)


def of_output(h: Moments) -> tuple[Float[Array, "N ..."], Float[Array, "N ..."]]:
    """Mean and variance as likelihoods have them: (N,) each for one unit, else (N, P)."""
    return (h.mean[:, 0], h.cov[:, 0]) if h.mean.shape[1] == 1 else (h.mean, h.cov)


def _fill(m: int, dimensions: int) -> Float[np.ndarray, "M D"]:
    """m points that fill [-1, 1]^D evenly: a grid for D = 1, else a Halton sequence."""
    if dimensions == 1:
        return np.linspace(-1.0, 1.0, m)[:, None]
    from scipy.stats import qmc  # takes half a second

    points: np.ndarray = qmc.Halton(dimensions, scramble=False).random(m)
    return 2.0 * points - 1.0


def _line(m: int, dimensions: int) -> Float[np.ndarray, "M D"]:
    """m points at equal distances on the diagonal of [-1, 1]^D."""
    return np.tile(np.linspace(-1.0, 1.0, m)[:, None], (1, dimensions))


_HIDDEN_STARTS = {"fill": _fill, "line": _line}


def _with_lengthscale(kernel: Kernel, log_lengthscale: float) -> Kernel:
    """The kernel with every lengthscale at this value."""

    def fill(path: Any, leaf: Any) -> Any:
        is_squared = jax.tree_util.keystr(path[-1:]) == ".log_lengthscale2"
        return jnp.full_like(leaf, 2.0 * log_lengthscale) if is_squared else leaf

    return jax.tree_util.tree_map_with_path(fill, kernel)
