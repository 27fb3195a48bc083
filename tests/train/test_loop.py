"""The loop: chunks, splits together, what is timed as what, and going on from a checkpoint."""

import dataclasses
import io
import shutil
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import Fragile, StopAfter, Walk, equal, group, programs_of, quiet

from gpbench.core.optimisers import adadelta
from gpbench.core.predictive import MixturePredictive
from gpbench.data.splits import Member, label
from gpbench.errors import ConfigError, Stopped
from gpbench.methods.additive.gam import GAM
from gpbench.methods.ep.sep import SEP
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.group import Fit, Group, initial
from gpbench.train.loop import Cadence, _spacing, fit
from gpbench.train.programs import Programs
from gpbench.train.stop import StopRequest

WALK = Walk(name="walk", steps=40, batch_size=7)


@pytest.fixture
def checkpoint(tmp_path) -> Checkpoint:
    return Checkpoint(tmp_path, "abc")


def train(method, group, checkpoint, *, stop=None, every=10, save_every=None, score=None, stream=None, programs=None):
    """A fit whose only metric is the mean log probability."""
    display = quiet(stream)
    display.begin("walk", method.steps, label(group.members))
    score = score or (lambda predictions: {"log_prob": predictions["log_prob"].mean(axis=1)})
    fields = {"checkpoint": checkpoint, "progress": display, "stop": stop or StopRequest(), "score": score}
    return fit(programs or programs_of(method), group, cadence=Cadence(every, save_every), **fields)


def same(one, other) -> bool:
    """Whether two fits ended alike, bit by bit."""
    traces = [{name: v for name, v in run.trace.items() if name != "seconds"} for run in (one, other)]
    return one.step == other.step and equal(*traces) and equal(one.state, other.state)


@pytest.mark.parametrize("evaluation, every", [(0.0, 10), (35.0, 10), (36.0, 20), (1e9, 160)])
def test_an_evaluation_takes_at_most_half_the_operations_of_the_steps_before_it(evaluation, every):
    assert _spacing(100, (7.0, evaluation)) == every
    assert _spacing(5000, None) == 50


def test_a_large_run_says_what_it_takes_before_its_first_step(checkpoint, monkeypatch):
    monkeypatch.setattr("gpbench.train.loop._LARGE", 0.0)
    notes = io.StringIO()
    train(WALK, group(), checkpoint, stream=notes)
    assert notes.getvalue().splitlines()[0] == "memory: 0.0 GB for state, data and a step's work"


@pytest.mark.parametrize("every", [1, 7, 100])
def test_the_length_of_the_chunks_changes_no_number(checkpoint, every):
    one, other = train(WALK, group(), checkpoint), None
    checkpoint.delete()
    other = train(WALK, group(), checkpoint, every=every)
    assert equal(one.state, other.state)
    assert (one.trace["objective"][-1] == other.trace["objective"][-1]).all()
    assert list(other.trace["step"]) == [*range(every, 40, every), 40]


def test_chunks_of_all_lengths_are_one_program_and_test_rows_have_no_influence_on_training(checkpoint):
    traced = []

    class Counting(Walk):
        def step(self, state, batch, *, key):
            traced.append(batch)
            return super().step(state, batch, key=key)

    train(Counting(steps=25), group(), checkpoint)
    assert len(traced) == 1
    data = group(splits=(0,))
    spoilt = dataclasses.replace(data, X_test=1e3 * data.X_test[:, ::-1], y_test=-data.y_test)
    one, other = train(WALK, data, checkpoint), train(WALK, spoilt, checkpoint)
    assert equal(one.state, other.state)
    assert not np.array_equal(one.trace["log_prob"], other.trace["log_prob"])


def test_splits_together_are_splits_one_by_one_to_rounding(checkpoint):
    together = train(WALK, group(splits=(0, 1, 2)), checkpoint)
    for k in range(3):
        alone = train(WALK, group(splits=(k,)), Checkpoint(checkpoint.path.parent, f"{k}"))
        np.testing.assert_allclose(alone.state.w[0], together.state.w[k], rtol=1e-12)
        np.testing.assert_allclose(alone.trace["log_prob"][:, 0], together.trace["log_prob"][:, k], rtol=1e-12)


def test_init_compilation_training_and_evaluation_are_timed_apart(checkpoint):
    class Slow(Walk):
        def init(self, data, *, key):
            time.sleep(0.2)
            return super().init(data, key=key)

        def step(self, state, batch, *, key):
            time.sleep(0.5)  # while it is traced
            return super().step(state, batch, key=key)

    def score(predictions):
        time.sleep(0.1)
        return {}

    started = time.perf_counter()
    run = train(Slow(steps=40), group(splits=(0,)), checkpoint, score=score)
    elapsed = time.perf_counter() - started
    assert run.seconds["init"] >= 0.2 and run.seconds["compile"] >= 0.5 and run.seconds["evaluate"] >= 0.4
    assert 0 < run.seconds["train"] < 0.1 * elapsed and sum(run.seconds.values()) <= elapsed
    assert run.trace["seconds"][-1] == run.seconds["train"] and (np.diff(run.trace["seconds"]) > 0).all()


def test_a_run_stopped_at_every_chunk_ends_as_if_it_never_was(checkpoint):
    whole = train(WALK, group(), Checkpoint(checkpoint.path.parent, "whole"))
    for step in (10, 20, 30):
        with pytest.raises(Stopped, match=f"stopped by SIGTERM at step {step} of 40; run the same command to resume"):
            train(WALK, group(), checkpoint, stop=StopAfter(0))
    notes = io.StringIO()
    assert same(train(WALK, group(), checkpoint, stop=StopAfter(0), stream=notes), whole)
    assert notes.getvalue() == "going on from the checkpoint at step 30\n"
    checkpoint.delete()
    assert train(WALK, group(), checkpoint, every=40, stop=StopAfter(0)).step == 40  # in the last chunk it is too late


def test_seconds_add_up_over_a_resumption_and_lost_work_does_not_count(checkpoint, tmp_path):
    data = group(splits=(0,))
    with pytest.raises(Stopped):
        train(WALK, data, checkpoint, stop=StopAfter(1))
    at_20, kept = checkpoint.facts(), tmp_path / "kept"
    shutil.copy(checkpoint.path, kept)
    with pytest.raises(Stopped):
        train(WALK, data, checkpoint, stop=StopAfter(0))
    shutil.copy(kept, checkpoint.path)  # as if it had been killed before the checkpoint of step 30
    run = train(WALK, data, checkpoint, programs=Programs(WALK))
    assert run.seconds["init"] == at_20["seconds"]["init"]
    assert list(run.trace["step"]) == [10, 20, 30, 40]
    assert run.trace["seconds"][1] == at_20["seconds"]["train"] < run.trace["seconds"][2]
    assert run.seconds["train"] == run.trace["seconds"][3]
    assert run.seconds["compile"] > at_20["seconds"]["compile"]


def test_a_damaged_checkpoint_is_ignored_with_a_note(checkpoint):
    whole = train(WALK, group(), checkpoint)
    checkpoint.path.write_bytes(checkpoint.path.read_bytes()[:-200])
    notes = io.StringIO()
    assert same(train(WALK, group(), checkpoint, stream=notes), whole)
    assert notes.getvalue() == f"the checkpoint {checkpoint.path} is damaged or does not fit: starting anew\n"


def test_training_ends_when_all_splits_have_diverged_and_not_before(checkpoint):
    labels = jnp.asarray([1.0, -1.0])
    data = group(splits=(0, 1))
    some = dataclasses.replace(data, y=data.y.at[:, 0].set(labels))
    every = dataclasses.replace(data, y=data.y.at[:, 0].set(1.0))
    run = train(Fragile(steps=40), some, checkpoint)
    assert run.step == 40 and np.isfinite(run.trace["objective"][-1]).tolist() == [False, True]
    checkpoint.delete()
    lost = train(Fragile(steps=40), every, checkpoint)
    assert lost.step == 20
    assert same(train(Fragile(steps=40), every, checkpoint), lost)  # from its checkpoint: it stays over


def test_splits_whose_states_have_unlike_forms_do_not_train_together_and_evaluations_of_many_draws_are_few():
    data = group((0, 1))
    unlike = dataclasses.replace(data, X=data.X.at[0, :, 1].set(0.0))  # gam has no component for it
    with pytest.raises(ConfigError, match=r"run\.together=1"):
        initial(GAM(name="gam", inducing=4), unlike)

    class Averaged(Walk):
        def predict(self, state, X, *, key):
            one = super().predict(state, X, key=key)
            many = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (1000, *leaf.shape)), one)
            return MixturePredictive(many, jnp.zeros(1000, X.dtype))

    few, many = (train(cls(name="walk", steps=40, batch_size=7), group(), None, every=None) for cls in (Averaged, Walk))
    assert few.trace["step"].tolist() == [40]
    assert many.trace["step"].tolist() == [10, 20, 30, 40]


@pytest.mark.parametrize("memory", ["factors", "scalars"])
def test_a_minibatch_step_of_sep_needs_no_memory_beside_the_state_that_grows_with_the_rows(memory):
    method = SEP(name="sep", inducing=8, batch_size=10, memory=memory, optimiser=adadelta())
    n = 50_000
    X = jax.random.normal(jax.random.key(0), (1, n, 2))
    y, keys = jnp.sign(X[..., 0]), jax.random.key(0)[None]
    data = Group([Member(0)], X, y, X[:, :5], y[:, :5], 2, keys, keys)
    run, programs = Fit(initial(method, data)), Programs(method)
    programs.advance(data, run, 1)
    (program,) = programs._compiled.values()
    assert program.memory.temp_size_in_bytes < n  # less than a byte a row


def test_cpu_seconds_are_of_all_parts_but_compilation(monkeypatch):
    spent, run = iter([0.0, 2.0, 3.0, 3.5, 6.5, 7.0, 8.0, 9.0, 13.0, 14.0]), Fit(state=None)
    monkeypatch.setattr(time, "process_time", lambda: next(spent))
    with run.timed("train"):
        pass
    with run.timed("init"):
        for event in ("jaxpr_to_mlir_module", "backend_compile"):  # on a busy core the clock runs faster
            jax.monitoring.record_event_duration_secs(f"/jax/core/compile/{event}_duration", 30.0)
    with run.timed("compile"):
        pass
    with run.timed("evaluate"):  # the lowering of the next program is an old one: its seconds by the clock bound it
        jax.monitoring.record_event_duration_secs("/jax/core/compile/backend_compile_duration", 0.0)
    assert run.cpu_seconds == pytest.approx(2.0 + 1.0 + 5.0)
