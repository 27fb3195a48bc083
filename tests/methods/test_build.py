"""What of a method's configuration cannot be built is one ConfigError, and never Hydra's wrapper of it."""

from pathlib import Path

import equinox as eqx
import pytest

from gpbench.config.build import build_method
from gpbench.config.compose import compose
from gpbench.errors import ConfigError
from gpbench.methods.base import Method, inducing_count
from gpbench.methods.vi.svi import SVI

METHODS = Path(__file__).resolve().parents[2] / "conf" / "method"
MISTAKES = {
    "unknown kernel": ("method.kernel=matern53", "unknown kernel 'matern53': did you mean matern52"),
    "empty kernel": ("method.kernel=", "unknown kernel '': known are"),
    "kernel in a list": ("method.kernel=[linear]", "a kernel is a name or a name with its options"),
    "option out of range": ("method.kernel={periodic: {period: -2}}", "period=-2: must be a number above 0"),
    "nested kernels": ("method.kernel={sum: [linear, {sum: 3}]}", "kernel sum must be a list of two or more kernels"),
    "unknown likelihood": ("method.likelihood=probitt", "unknown likelihood 'probitt': did you mean probit?"),
    "empty likelihood": ("method.likelihood=", "unknown likelihood '': known are"),
    "option of a likelihood": ("method.likelihood={student_t: {df: -1}}", "df=-1: must be a number above 0"),
    "optimiser without a target": ("method.optimiser={rate: 1}", "must be a mapping with the optimiser's _target_"),
    "optimiser as a name": ("method.optimiser=adam", "method.optimiser=adam: must be a mapping with"),
    "negative steps": ("method.steps=-1", "method.steps=-1: must be a whole number from 1"),
    "empty batch": ("method.batch_size=0", "method.batch_size=0: must be a whole number from 1"),
}


@pytest.mark.parametrize("word, line", MISTAKES.values(), ids=MISTAKES)
def test_a_value_that_the_method_refuses_is_its_own_line(word, line):
    with pytest.raises(ConfigError) as error:
        build_method(compose(["method=svi", word])["method"])
    assert str(error.value).startswith(line) or line in str(error.value)
    assert "\n" not in str(error.value) and "Error in call" not in str(error.value)


class Unfinished(Method):
    """Has no `predict`."""

    def init(self, data, *, key):
        return data.X

    def step(self, state, batch, *, key):
        return state


class Refusing(Unfinished):
    """Refuses every width but 1."""

    width: int = eqx.field(static=True, kw_only=True, default=1)

    def __check_init__(self):
        raise ValueError("too wide")

    def predict(self, state, X, *, key):
        return X


class Nameless(Unfinished):
    """Could be built, had it a name."""

    def predict(self, state, X, *, key):
        return X


class Stranger:
    """Not a method."""


@pytest.mark.parametrize(
    "cls, line",
    [
        (Unfinished, "Unfinished lacks predict; see docs/how-to/own_method.md"),
        (Refusing, "cannot construct .*Refusing: ValueError: too wide"),
        (Stranger, r"Stranger is no gpbench\.Method: derive its class from gpbench\.Method"),
        (Nameless, "method has no name"),
    ],
)
def test_a_class_that_is_not_a_method_is_one_line(cls, line):
    with pytest.raises(ConfigError, match=line):
        build_method({"_target_": f"{__name__}.{cls.__name__}"})


def test_a_module_that_python_cannot_parse_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "unparsable.py").write_text("def f(:")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=r"cannot import 'unparsable.Method': invalid syntax"):
        build_method({"_target_": "unparsable.Method"})


def test_a_method_without_a_target_is_one_line():
    with pytest.raises(ConfigError, match="method has no _target_"):
        build_method({"name": "mine"})


REFUSED = {
    "inducing": (1.5, 0, -3, 20.0, float("nan"), True),
    "steps": (-1, True),
    "noise": (-1, 0.0, float("inf")),
    "target_noise": (0, -0.1),
    "natural_step": (0, 3.0),
    "batch_size": (0,),
    "rates": ([0.1, 0], [0.1, float("nan")], ["fast"]),
    "trial_steps": (0,),
}


@pytest.mark.parametrize("field, value", [(field, value) for field, values in REFUSED.items() for value in values])
def test_a_class_refuses_a_value_out_of_its_range_when_it_is_made(field, value):
    with pytest.raises(ConfigError, match=rf"^method\.{field}=.*: must be (?!finite)"):
        SVI(**{field: value})


@pytest.mark.parametrize(
    "method, field, value",
    [
        ("sep", "damping", 0.0),
        ("sep", "damping", 7),
        ("gfitc", "damping", float("nan")),
        ("gfitc", "sweeps", 0),
        ("sep", "update", "foo"),
        ("vsgpr", "rows", 0),
        ("svdgp", "growth", 0),
        ("linear", "ridge", -1.0),
    ],
)
def test_every_method_refuses_a_value_out_of_its_range(method, field, value):
    node = compose([f"method={method}"])["method"]
    with pytest.raises(ConfigError, match=rf"method\.{field}=.*: must be "):
        build_method(node | {field: value})


class Random(Nameless):
    """Has a field with the name of a built-in one and another meaning."""

    features: int = eqx.field(static=True, kw_only=True, default=10)


def test_a_users_field_has_a_range_of_its_own():
    assert build_method({"_target_": f"{__name__}.Random", "name": "random", "features": 20}).features == 20
    with pytest.raises(ConfigError, match=r"method\.steps=-1"):
        Random(steps=-1)


def test_a_number_of_inducing_points_between_two_whole_ones_is_refused():
    for wrong in (1.5, 20.0):
        with pytest.raises(ConfigError, match=rf"method.inducing={wrong}: must be a whole number from 1, or a number"):
            inducing_count(wrong, 100)
    assert inducing_count(1, 100) == 1 and inducing_count(1.0, 100) == 100


def test_the_label_of_a_method_without_minibatches_names_none():
    for name in ("svdgp", "sdd"):
        words = [f"method={name}", "dataset=sinc", "method.batch_size="]
        labels = [build_method(compose([*words[:2], words[2] + size])["method"]).label for size in ("null", "7")]
        assert labels[1] == f"{labels[0]}, batch=7"


@pytest.mark.parametrize("name", ["linear", "constant", "logistic", "laplace", "hmc", "gpr", "vsgpr"])
def test_methods_whose_steps_need_all_rows_refuse_minibatches_in_one_line(name):
    with pytest.raises(ConfigError, match=r"^method\.batch_size=64: must be null$"):
        build_method(compose([f"method={name}", "dataset=sinc", "method.batch_size=64"])["method"])


@pytest.mark.parametrize("name", sorted(file.stem for file in METHODS.glob("*.yaml")))
def test_two_methods_of_one_configuration_are_equal_so_that_no_program_is_compiled_for_each(name):
    first, second = (build_method(compose([f"method={name}"])["method"]) for _ in range(2))
    assert first == second and hash(first) == hash(second)
