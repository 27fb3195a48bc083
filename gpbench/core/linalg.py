"""Linear algebra: the one safe Cholesky, and products whose gradients are as fast as they are.  Every factorisation of
gpbench goes through `inverse_cholesky`.  It returns the inverse factor A = L⁻¹ rather than L, because every use of it,
forward and backward, is then a matrix product, the fastest operation of CPUs and GPUs: whitening is A K, K⁻¹ is AᵀA,
log|K| is -2 Σ log diag A."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.lax.linalg import cholesky
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

# Initial jitter, of the order of rounding in the Gram matrix, relative to the mean of the diagonal.
_JITTER = {"float64": 1e-10, "float32": 1e-6}
_GROWTH, _TRIES = 10.0, 6
# Up to this size LAPACK's own factorisation is as fast as the recursion on halves, and each half is more to compile.
_LEAF = 128
# Number of rows of a tile, by which products with triangular factors of three tiles or more skip most of the zeros.
_TILE = 128


@jax.custom_vjp
def product(A: Float[Array, "M M"], B: Float[Array, "M N"]) -> Float[Array, "M N"]:
    """A B for a lower triangular A.  Of the gradient in A the part above the diagonal is none, and that in B is as fast
    as the product (`transposed`)."""
    return _lower_product(A, B)


product.defvjp(
    lambda A, B: (_lower_product(A, B), (A, B)),
    lambda saved, V_bar: (_lower_outer(V_bar, saved[1]), _upper_product(transposed(saved[0]), V_bar)),
)


def _in_tiles(rows_of: Callable[[slice], Array], m: int) -> Array:
    """The m rows of a product, a tile after the other where they are many and a CPU waits for every operation."""
    size = _TILE if m >= 3 * _TILE and jax.default_backend() == "cpu" else m
    return jnp.concatenate([rows_of(slice(start, min(start + size, m))) for start in range(0, m, size)])


def _lower_product(L: Array, B: Array) -> Array:
    return _in_tiles(lambda t: L[t, : t.stop] @ B[: t.stop], len(B))


def _upper_product(U: Array, B: Array) -> Array:
    return _in_tiles(lambda t: U[t, t.start :] @ B[t.start :], len(B))


def _lower_outer(C: Array, B: Array) -> Array:
    """The lower triangle of C Bᵀ; above it some entries are left out, and 0."""
    m = len(B)
    return _in_tiles(lambda t: jnp.pad(C[t] @ B[: t.stop].T, ((0, 0), (0, m - t.stop))), m)


def transposed(A: Float[Array, "M K"]) -> Float[Array, "K M"]:
    """Aᵀ as an array of its own on a CPU, for products with it from the left.  XLA takes Aᵀ B as one operation, for
    which it has no fast kernel on a CPU.  Measured on one core, (512, 512) by (512, 1024): 13 ms against 7 in float32,
    19 against 15 in float64; the copy takes less than 0.5."""
    return jax.lax.optimization_barrier(A.T) if jax.default_backend() == "cpu" else A.T


@jax.custom_vjp
def inverse_cholesky(K: Float[Array, "M M"]) -> Float[Array, "M M"]:
    """Lower triangular A with A K Aᵀ = I, that is A = L⁻¹ for K = L Lᵀ, in the precision of K.  The factorisation is
    done in float64 whatever the precision of `K`.  A small jitter relative to the mean of the diagonal is added; where
    the factorisation fails the jitter grows tenfold, at most six times.  Beyond that the result is NaN, and the
    training loop records the run as diverged, with the message of `describe_failure`."""
    return _safe_inverse_factor(K)


def _forward(K: Array) -> tuple[Array, Array]:
    A = _safe_inverse_factor(K)
    return A, A


def _gradient(A: Array, inner: Array) -> Array:
    """K̄ = -Aᵀ sym(Φ(Ā Aᵀ)) A of Ā Aᵀ, Φ the lower triangle with half the diagonal."""
    lower = jnp.tril(inner)
    lower = lower - 0.5 * jnp.diag(jnp.diag(lower))
    return _upper_product(-0.5 * transposed(A), (lower + lower.T) @ A)


inverse_cholesky.defvjp(_forward, lambda A, A_bar: (_gradient(A, _lower_outer(A_bar, A)),))


@jax.custom_vjp
def whitened(K: Float[Array, "M M"], C: Float[Array, "M N"]) -> Float[Array, "M N"]:
    """V = A C with A the `inverse_cholesky` of K, and a gradient that has one product less than those of the two."""
    return inverse_cholesky(K) @ C


def _whiten(K: Array, C: Array) -> tuple[Array, tuple[Array, Array]]:
    A = inverse_cholesky(K)
    V = _lower_product(A, C)
    return V, (A, V)


def _unwhiten(saved: tuple[Array, Array], V_bar: Array) -> tuple[Array, Array]:
    # Ā Aᵀ = V̄ Cᵀ Aᵀ = V̄ Vᵀ
    A, V = saved
    return _gradient(A, _lower_outer(V_bar, V)), _upper_product(transposed(A), V_bar)


whitened.defvjp(_whiten, _unwhiten)


def log_determinant(A: Float[Array, "M M"]) -> Float[Array, ""]:
    """log|K| = -2 Σ log diag A from the inverse Cholesky factor A of K."""
    return -2.0 * jnp.sum(jnp.log(jnp.diag(A)))


@jax.named_scope("needs_float64")  # rounding in float32 makes covariance matrices indefinite
def _safe_inverse_factor(K: Array) -> Array:
    high = K.astype(jnp.float64)
    scale = jnp.mean(jnp.diag(high))
    eye = jnp.eye(K.shape[-1], dtype=high.dtype)

    def unfinished(carry: Any) -> Array:
        tries, _, A = carry
        return (tries == 0) | ((tries <= _TRIES) & ~jnp.isfinite(A[-1, -1]))

    def step(carry: Any) -> Any:
        tries, jitter, _ = carry
        return tries + 1, jitter * _GROWTH, _inverse_factor(high + jitter * scale * eye)

    # The first attempt is in the loop too, so that the factorisation is compiled once.
    # A NaN anywhere in a Cholesky factor reaches the last row, so the last entry speaks for the whole.
    jitter = jnp.asarray(_JITTER[K.dtype.name], high.dtype)
    with jax.debug_nans(False):  # a NaN in here is a factorisation that failed, and the next jitter may do
        *_, A = jax.lax.while_loop(unfinished, step, (0, jitter, jnp.full_like(high, jnp.nan)))
    return A.astype(K.dtype)


def _inverse_factor(K: Array) -> Array:
    """L⁻¹ by recursion on halves, so that nearly all the work is in matrix products."""
    n = K.shape[-1]
    if n <= _LEAF:
        return solve_triangular(cholesky(K, symmetrize_input=False), jnp.eye(n, dtype=K.dtype), lower=True)
    h = n // 2
    # K = [[K11, K12], [K21, K22]]: A11 = L11⁻¹, L21 = K21 A11ᵀ, A22 from the Schur complement, A21 = -A22 L21 A11
    A1 = _inverse_factor(K[:h, :h])
    L21 = K[h:, :h] @ A1.T
    A2 = _inverse_factor(K[h:, h:] - L21 @ L21.T)
    A21 = -A2 @ (L21 @ A1)
    return jnp.block([[A1, jnp.zeros((h, n - h), K.dtype)], [A21, A2]])


def describe_failure(name: str, K: Float[Array, "M M"]) -> str:
    """The failure of `inverse_cholesky` for the matrix K, as a diverged run's one-line error; "": it succeeds."""
    if bool(jnp.isfinite(_safe_inverse_factor(K)[-1, -1])):
        return ""
    reached = _JITTER[K.dtype.name] * _GROWTH**_TRIES
    return f"the Cholesky factorisation of {name} failed in {K.dtype} with relative jitter up to {reached:g}"


def with_intercept(X: Float[Array, "N D"]) -> Float[Array, "N E"]:
    """The inputs X (N, D) and a column of ones, (N, D + 1)."""
    return jnp.concatenate([X, jnp.ones((X.shape[0], 1), X.dtype)], axis=1)
