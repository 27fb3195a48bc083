"""Minibatches: every row once per epoch, unbiased, a function of key and step alone; also of rows on the host."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import job, numbers, programs_of, quiet

from gpbench.config.compose import compose
from gpbench.core.random import permute
from gpbench.errors import ConfigError, DataError
from gpbench.records.plan import RunPlan
from gpbench.records.store import Store
from gpbench.train import batches, context, programs
from gpbench.train.job import run_job
from gpbench.train.progress import Progress
from gpbench.train.stop import StopRequest

N = 23
DATA = batches.whole(jnp.arange(2.0 * N).reshape(N, 2), jnp.arange(float(N)))


@functools.partial(jax.jit, static_argnums=(0, 1))
def steps(count: int, size: int, seed: int = 0, start: int = 0):
    """`count` batches in a row, stacked."""
    return jax.vmap(lambda t: batches.at_step(DATA, size, t, key=jax.random.key(seed)))(start + jnp.arange(count))


@pytest.mark.parametrize("size", [1, 5, 7, 22])
def test_an_epoch_visits_every_row_once(size):
    blocks = -(-N // size)
    for epoch in range(4):
        batch = steps(blocks, size, start=epoch * blocks)
        visits = np.bincount(np.asarray(batch.index).ravel(), np.asarray(batch.weight).ravel(), N)
        assert (visits == 1).all()


def test_only_the_last_block_is_filled_up_with_rows_of_weight_zero_and_rows_and_targets_are_those_of_the_index():
    batch = steps(5, 5)
    full = np.asarray(batch.weight.sum(axis=1))
    assert sorted(full) == [3, 5, 5, 5, 5]
    assert all(len(set(rows)) == 5 for rows in np.asarray(batch.index).tolist())
    np.testing.assert_array_equal(batch.X, DATA.X[batch.index])
    np.testing.assert_array_equal(batch.y, DATA.y[batch.index])


@pytest.mark.parametrize("size", [None, N, N + 1])
def test_a_batch_as_large_as_the_data_is_the_data(size):
    batch = batches.at_step(DATA, size, jnp.asarray(3), key=jax.random.key(0))
    assert batch is DATA and batch.scale == 1


def test_scaling_by_n_over_the_batch_is_unbiased_and_the_order_a_function_of_key_and_step():
    # each row's mean contribution over 4000 epochs is 1; its standard error, from the epochs, is about 0.01
    blocks, epochs = 5, 4000
    batch = steps(blocks * epochs, 5)
    scaled = jax.jit(jax.vmap(lambda b: jnp.zeros(N).at[b.index].add(b.scale * b.weight)))(batch)
    means = np.asarray(scaled).reshape(epochs, blocks, N).mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(epochs)
    assert error.max() < 0.02
    assert (np.abs(means.mean(axis=0) - 1) < 4.5 * error).all()
    run = steps(20, 5, seed=1)
    alone = jax.jit(lambda t: batches.at_step(DATA, 5, t, key=jax.random.key(1)).index)
    for t in (13, 2, 13):
        np.testing.assert_array_equal(alone(jnp.asarray(t)), run.index[t])
    assert not np.array_equal(run.index, steps(20, 5, seed=2).index)
    assert not np.array_equal(run.index[:5], run.index[5:10])  # every epoch has an order of its own


@pytest.mark.parametrize("n", [1, 2, 5, 24])
def test_permute_is_a_permutation_and_every_image_is_equally_likely(n):
    keys = jax.random.split(jax.random.key(0), 4000)
    one = lambda i, key: permute(i, n, key=key)
    orders = jax.jit(jax.vmap(jax.vmap(one, (0, None)), (None, 0)))(jnp.arange(n), keys)
    assert (np.sort(orders, axis=1) == np.arange(n)).all()
    # counts of where each place goes: binomial, so within 5 standard deviations
    counts = np.stack([(np.asarray(orders) == value).sum(axis=0) for value in range(n)])
    assert (np.abs(counts - 4000 / n) <= 5 * np.sqrt(4000 / n)).all()
    if n > 2:  # neighbours do not stay neighbours: the next place goes to each other value as often
        steps = (np.diff(np.asarray(orders), axis=1) % n).ravel()
        assert np.abs(np.bincount(steps, minlength=n)[1:] / len(steps) - 1 / (n - 1)).max() < 0.01


SVI = ["dataset=sinc", "method=svi_natural", "method.inducing=5", "method.batch_size=64", "method.steps=25"]
WALK = ["dataset=moons", "method=walk", "method.batch_size=64", "method.steps=25", "split=[0,1]", "run.trace_every=10"]


@pytest.mark.parametrize("together", [True, False])
def test_streamed_rows_give_the_very_numbers_of_rows_on_the_device(tmp_path, together, monkeypatch):
    monkeypatch.setattr(batches, "_STEPS", 4)  # so that traces, ends and chunks fall apart
    words = [*WALK, "run.save=true", f"run.together={together}"]
    folders = [tmp_path / "resident", tmp_path / "streamed"]
    resident, streamed = job(folders[0], *words), job(folders[1], *words, "run.stream=true")
    assert numbers(streamed) == numbers(resident)
    states = [Store(folder).state(resident[0].id) for folder in folders]
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_streamed_rows_give_the_very_numbers_of_a_sparse_gp(tmp_path, precision):
    words = [*SVI, f"protocol.precision={precision}"]
    assert numbers(job(tmp_path / "b", *words, "run.stream=true")) == numbers(job(tmp_path / "a", *words))


def test_init_sees_a_sample_of_the_rows_and_the_steps_see_all(tmp_path, monkeypatch):
    words = [*SVI, "run.stream=true"]
    monkeypatch.setattr(context, "SAMPLE", 100)
    (sample,) = job(tmp_path / "sample", *words)
    monkeypatch.setattr(programs, "_BLOCK", 30)
    (blocks,) = job(tmp_path / "blocks", *words)
    assert blocks.metrics == pytest.approx(sample.metrics, rel=1e-9)
    (in_memory,) = job(tmp_path / "memory", *SVI)
    assert sample.row_operations == pytest.approx(in_memory.row_operations, rel=0.01)
    assert sample.train_rows > 100 and sample.metrics["rmse"] < 0.2


def test_methods_that_need_all_rows_or_numbers_for_each_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(context, "SAMPLE", 100)
    with pytest.raises(ConfigError, match=r"walk keeps numbers for each row, .* up to 100 rows"):
        job(tmp_path, *WALK, "run.stream=true")
    with pytest.raises(ConfigError, match=r"run\.stream=true needs minibatches, and a step of linear takes all"):
        job(tmp_path, "dataset=friedman", "method=linear", "run.stream=true")


@pytest.fixture
def big(tmp_path, monkeypatch, new_file):
    """A function that trains on a table on disk: `big(folder, *words)`; `big.file` is the table."""
    rng = np.random.default_rng(0)
    X = rng.normal(2.0, 3.0, (400, 3))
    np.save(tmp_path / "big.npy", np.column_stack([X, np.sin(X[:, 0]) + X[:, 1]]).astype(np.float32))
    card = {"name": "big", "task": "regression", "splits": {"set": "random", "sets": {"random": 1}, "test_rows": 50}}
    card["sources"] = [{"kind": "file", "path": "big.npy", "reader": "mapped"}]
    new_file(tmp_path / "dataset" / "big.yaml", json.dumps(card))

    def run(folder, *words, progress=None, before=lambda: None):
        words = ["dataset=big", *SVI[1:], "protocol.precision=float32", f"run.results={tmp_path / folder}", *words]
        plan = RunPlan.from_config(compose(words, [tmp_path]))
        before()
        return run_job(plan, store=Store(tmp_path / folder), progress=progress or quiet(), stop=StopRequest())[0]

    run.file = tmp_path / "big.npy"
    monkeypatch.setattr(context, "Programs", lambda method, devices: programs_of(method))
    return run


def test_a_table_on_disk_trains_as_in_memory(big, monkeypatch):
    resident = big("resident")
    streamed = big("streamed", "run.stream=true")
    assert streamed.id == resident.id and streamed.metrics == pytest.approx(resident.metrics, rel=1e-3)
    monkeypatch.setattr(context, "SAMPLE", 100)
    sample = big("sample", "run.stream=true")
    assert sample.train_rows == 350 and sample.metrics["rmse"] < 2.0


def write(path, array):
    """Writes into the file that is there, as `cp` does."""
    with open(path, "r+b") as file:
        np.save(file, array)


def exchange(path):
    """Puts an equal file in the place of this one."""
    path.with_suffix(".new").write_bytes(path.read_bytes())
    path.with_suffix(".new").rename(path)


CHANGES = {
    "other numbers": (lambda path: write(path, np.load(path)[::-1]), 12),
    "no numbers": (lambda path: write(path, np.load(path) * np.nan), 24),  # when all is read
    "another file": (exchange, 12),
    "no file": (lambda path: path.unlink(), 24),
}


@pytest.mark.parametrize(("change", "after"), CHANGES.values(), ids=CHANGES)
def test_a_table_on_disk_that_changes_while_it_trains_leaves_no_record(big, tmp_path, monkeypatch, change, after):
    monkeypatch.setattr(batches, "_STEPS", 4)

    class Meanwhile(Progress):
        def update(self, step, objective, metrics):
            if step == after:
                change(big.file)

    with pytest.raises(DataError, match=r"big\.npy was changed while it was in use, and"):
        big("runs", "run.stream=true", "run.trace_every=1", progress=Meanwhile())
    assert not Store(tmp_path / "runs").all()


def test_data_that_change_between_plan_and_training_leave_no_record(big, tmp_path):
    with pytest.raises(DataError, match="big: its data were changed since this command began: run it again"):
        big("runs", before=lambda: write(big.file, np.load(big.file)[::-1]))
    assert not Store(tmp_path / "runs").all()
