"""A sparse GP as a value: kernel, additive noise and inducing features; models have one such layer or several."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.features import Features, InducingPoints, ScaledFeatures, inducing_points
from gpbench.core.gaussians import Covariances, MeanVariance, Normal, residual
from gpbench.core.greedy import select_rows
from gpbench.core.kernels import Kernel, LengthscalePrior, SquaredExponential, log_scalar, require_family
from gpbench.core.linalg import describe_failure, product, whitened
from gpbench.methods.base import Batch, inducing_count, inducing_setting, size_label
from gpbench.methods.parts.settings import PriorMethod
from gpbench.methods.protocols import State, learned
from gpbench.schema import SIZE, setting


class SparseLayer(eqx.Module):
    """The prior of f and the inducing features u that its posterior is conditioned on.  `log_noise` is the logarithm of
    an additive noise on k(x, x), None where there is none; `noise_on_inducing` puts it on the diagonal of Kzz too."""

    kernel: Kernel
    log_noise: Float[Array, ""] | None
    features: Features
    noise_on_inducing: bool = eqx.field(static=True, default=False)
    lengthscale_prior: LengthscalePrior | None = eqx.field(static=True, default=None)

    def gram(self) -> Float[Array, "M M"]:
        """Kzz of the inducing features."""
        zz = self.features.gram(self.kernel)
        if self.log_noise is None or not self.noise_on_inducing:
            return zz
        return zz + jnp.exp(self.log_noise) * jnp.eye(zz.shape[0], dtype=zz.dtype)

    def covariances(self, X: Float[Array, "N D"]) -> Covariances:
        """Kzz, Kzx, and k(x, x) with the additive noise."""
        xx = self.kernel.diag(X)
        if self.log_noise is not None:
            xx = xx + jnp.exp(self.log_noise)
        return Covariances(self.gram(), self.features.cross(self.kernel, X), xx)

    def whitened(self, X: Float[Array, "N D"]) -> tuple[Float[Array, "M N"], Float[Array, " N"]]:
        """V = L⁻¹Kzx with Kzz = L Lᵀ, and the variance of f given the inducing outputs."""
        cov = self.covariances(X)
        V = whitened(cov.zz, cov.zx)
        return V, residual(cov, V)

    def marginals(self, A: Float[Array, "M M"], q: Normal, X: Float[Array, "N D"]) -> MeanVariance:
        """Mean and variance of f at X under q(w), where w = A u and A is the inverse Cholesky factor of Kzz."""
        cov = self.covariances(X)
        V = product(A, cov.zx)
        mean, variance = q.project(V)
        return mean, residual(cov, V) + variance

    def covariance(self, A: Float[Array, "M M"], q: Normal, X: Float[Array, "N D"]) -> Float[Array, "N N"]:
        """Covariance of f at X under q(w): Kxx - VᵀV + (RV)ᵀRV, and the additive noise on its diagonal."""
        V = A @ self.features.cross(self.kernel, X)
        RV = jnp.tril(q.root) @ V
        covariance = self.kernel.cross(X, X) - V.T @ V + RV.T @ RV
        if self.log_noise is None:
            return covariance
        return covariance + jnp.exp(self.log_noise) * jnp.eye(len(X), dtype=X.dtype)

    def log_prior(self) -> Float[Array, ""]:
        """The log density of the hyper-parameters under their prior: 0 without one."""
        if self.lengthscale_prior is None:
            return jnp.zeros((), self.features.Z.dtype)
        return self.lengthscale_prior.log_prob(self.kernel, self.features.Z.shape[1])

    def diagnose(self) -> str:
        """Find the reason why a factorisation of Kzz fails with these parameters; "" where it does not."""
        return describe_failure(f"Kzz of the {self.kernel.describe()}", self.gram())


class SparseMethod(PriorMethod):
    """A method with one sparse layer: the settings of the layer, and its initial value.  With the same key and the same
    fields all of them start from the same inducing points and hyper-parameters."""

    inducing: float | int | str = setting(
        0.15,
        SIZE,
        "Number of inducing points, at most the training rows; or a fraction of the rows, at most 1,000 points.  1 is "
        "one point, 1.0 all rows; '15%, at least 200' is 200 of up to 1,333 rows.",
    )
    features: str = setting(
        "values",
        ["values", "generalised"],
        "Inducing features: values of f at the inducing points, or features with learned scales of their own.",
    )
    start: str = setting(
        "rows",
        ["rows", "kmeans", "greedy"],
        "Initial inducing points: random training rows, cluster centres of the rows, or the rows of largest "
        "conditional variance under the kernel that training starts from.",
    )
    noise: float = setting(1e-3, "positive", "Initial variance of an additive noise on k(x, x), in classification.")
    noise_on_inducing: bool = setting(False, "flag", "Additive noise on the diagonal of Kzz too.")

    @property
    def label(self) -> str:
        return size_label(self, inducing_setting(self.inducing))

    def arrays(self, state: State) -> dict[str, Array]:
        layers = learned(state, SparseLayer)
        return {"inducing": layers[0].features.Z} if layers else {}

    def diagnose(self, state: State) -> str:
        return next((layer.diagnose() for layer in learned(state, SparseLayer)), "")

    def initial_layer(
        self, data: Batch, *, additive_noise: bool, key: PRNGKeyArray, kernel: Kernel | None = None
    ) -> SparseLayer:
        """The layer to start from, with this kernel or the one that the settings make of the data.  Raises ConfigError
        for more inducing points than rows, or an unfit kernel."""
        X = data.X[: data.total]
        m, greedy = inducing_count(self.inducing, len(X)), self.start == "greedy"
        Z = inducing_points(X, m, "rows" if greedy else self.start, key=key)
        if kernel is None:
            kernel = self.initial_kernel(Z, data)
        if greedy:
            Z = X[select_rows(kernel, X, m).index]
        features: Features = InducingPoints(Z)
        if self.features == "generalised":
            require_family(self.kernel, SquaredExponential, "method.features=generalised")
            features = ScaledFeatures(Z, jnp.zeros_like(Z))
        log_noise = log_scalar(self.noise, X) if additive_noise else None
        on_inducing = self.noise_on_inducing and additive_noise
        return SparseLayer(kernel, log_noise, features, on_inducing, self.lengthscale_prior)
