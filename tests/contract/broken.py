"""Methods that break one rule each; `Good` breaks none."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from gpbench.core.predictive import GaussianPredictive, MixturePredictive
from gpbench.methods.base import Info, Method


class State(eqx.Module):
    mean: jax.Array
    count: jax.Array


class Good(Method):
    """The mean of the training targets, approached by halves, with variance one."""

    tasks = frozenset({"regression"})

    def init(self, data, *, key):
        return State(jnp.zeros((), data.X.dtype), jnp.zeros((), int))

    def step(self, state, batch, *, key):
        n = batch.weight.sum()
        mean = 0.5 * (state.mean + batch.weight @ batch.y / n)
        return State(mean, state.count + 1), Info(-(batch.weight @ (batch.y - state.mean) ** 2) / n)

    def predict(self, state, X, *, key):
        return GaussianPredictive(jnp.full(len(X), state.mean), jnp.ones(len(X), X.dtype))


class Silent(Good):
    pass


class StartsWithNaN(Good):
    """Its first mean is no number."""

    def init(self, data, *, key):
        return State(jnp.full((), jnp.nan, data.X.dtype), jnp.zeros((), int))


class StartsInFloat64(Good):
    """It does not ask for the dtype of the data."""

    def init(self, data, *, key):
        return State(jnp.zeros((), "float64"), jnp.zeros((), int))


class StartsAnyhow(Good):
    """It draws its first state from NumPy's global stream."""

    def init(self, data, *, key):
        return State(jnp.asarray(np.random.normal(), data.X.dtype), jnp.zeros((), int))


class Mutating(Good):
    """Its state is a dictionary, which it changes in place."""

    def init(self, data, *, key):
        return {"mean": jnp.zeros((), data.X.dtype)}

    def step(self, state, batch, *, key):
        state["mean"] = 0.5 * (state["mean"] + batch.y.mean())
        return state, Info(-((batch.y - state["mean"]) ** 2).mean())

    def predict(self, state, X, *, key):
        return GaussianPredictive(jnp.full(len(X), state["mean"]), jnp.ones(len(X), X.dtype))


class Growing(Good):
    """Its state grows with every step."""

    def step(self, state, batch, *, key):
        state, info = super().step(state, batch, key=key)
        return State(jnp.append(state.mean, state.mean), state.count), info


class Labelled(eqx.Module):
    mean: jax.Array
    label: float = eqx.field(static=True)


class Recompiling(Good):
    """A number from the data is a static field of its state."""

    def init(self, data, *, key):
        return Labelled(jnp.zeros((), data.X.dtype), float(data.y[0]))

    def step(self, state, batch, *, key):
        return Labelled(0.5 * (state.mean + batch.y.mean()), state.label), Info(-jnp.abs(state.mean))


class Untraceable(Good):
    """A Python `if` on a traced value."""

    def step(self, state, batch, *, key):
        return super().step(state, batch, key=key) if batch.y.sum() > -1e9 else (state, Info(jnp.zeros(())))


class Diverging(Good):
    """Its objective is the logarithm of a negative number."""

    def step(self, state, batch, *, key):
        state, info = super().step(state, batch, key=key)
        return state, Info(jnp.log(info.objective - 1))


class Worsening(Good):
    """It climbs down."""

    def step(self, state, batch, *, key):
        return State(state.mean + 1.0, state.count), Info(-jnp.abs(state.mean))


class Overconfident(Good):
    """Its density is twice a density."""

    def predict(self, state, X, *, key):
        class Twice(GaussianPredictive):
            def log_prob(self, y):
                return super().log_prob(y) + jnp.log(2.0)

        good = super().predict(state, X, key=key)
        return Twice(good.mean, good.var)


class CountsWhatFillsUp(Good):
    """It takes the rows of weight 0 for data."""

    def step(self, state, batch, *, key):
        return State(batch.y.mean(), state.count + 1), Info(-((batch.y - state.mean) ** 2).mean())


class Sampled(Good):
    """Its state has a random key; its predictions are a mixture over weights drawn from the key, for all rows alike."""

    def init(self, data, *, key):
        return State(jnp.zeros((), data.X.dtype), key)

    def step(self, state, batch, *, key):
        good, info = super().step(State(state.mean, 0), batch, key=key)
        return State(good.mean, jax.random.fold_in(state.count, 1)), info

    def predict(self, state, X, *, key):
        weights = jax.random.normal(key, (8, X.shape[1]), X.dtype)
        parts = jax.vmap(lambda w: GaussianPredictive(state.mean + X @ w, jnp.ones(len(X), X.dtype)))(weights)
        return MixturePredictive(parts, jnp.zeros(8, X.dtype))


class Positional(Good):
    """Its noise belongs to a row's position."""

    def predict(self, state, X, *, key):
        return GaussianPredictive(state.mean + jax.random.normal(key, (len(X),), X.dtype), jnp.ones(len(X), X.dtype))


class Averaging(Good):
    """Its predictions depend on the average of the test rows."""

    def predict(self, state, X, *, key):
        return GaussianPredictive(jnp.full(len(X), state.mean + X.mean()), jnp.ones(len(X), X.dtype))


class Miscounted(Good):
    """Its cdf is that of another density."""

    def predict(self, state, X, *, key):
        class Shifted(GaussianPredictive):
            def cdf(self, y):
                return super().cdf(y + 0.1)

        good = super().predict(state, X, key=key)
        return Shifted(good.mean, good.var)


class PredictsAnArray(Good):
    """Returns numbers where a distribution belongs."""

    def predict(self, state, X, *, key):
        return X[:, 0]


class Printing(Good):
    """It prints within its step."""

    def step(self, state, batch, *, key):
        jax.debug.print("{}", state.mean)
        return super().step(state, batch, key=key)


class CallsForeignCode(Good):
    """It calls a kernel that is registered with XLA, perhaps for one platform."""

    def step(self, state, batch, *, key):
        mean = jax.ffi.ffi_call("my_kernel", state.mean, vmap_method="sequential")(state.mean)
        return super().step(State(mean, state.count), batch, key=key)


class NotOnAGPU(Good):
    """Its start has a decomposition that JAX computes on a CPU alone."""

    def init(self, data, *, key):
        T = jax.scipy.linalg.schur(data.X.T @ data.X)[0]
        return State(T[0, 0], jnp.zeros((), int))


class Widens(Good):
    """It computes in float64 whatever the data are."""

    def step(self, state, batch, *, key):
        state, info = super().step(state, batch, key=key)
        rest = jnp.sum((batch.y.astype("float64") - state.mean) ** 2)
        return state, Info(info.objective - 0.0 * rest.astype(batch.y.dtype))


class WidensOnPurpose(Widens):
    """It says that it computes in float64."""

    def step(self, state, batch, *, key):
        with jax.named_scope("needs_float64"):
            return super().step(state, batch, key=key)


class Loose(GaussianPredictive):
    """One whose shapes the tests do not check."""


class OneVariance(Good):
    """It has one variance for all rows."""

    def predict(self, state, X, *, key):
        return Loose(jnp.full(len(X), state.mean), jnp.ones((), X.dtype))
