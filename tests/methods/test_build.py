"""What of a method's configuration or data does not fit is one line that says how to mend it."""

from pathlib import Path

import equinox as eqx
import optax
import pytest
import yaml
from hydra.utils import get_class
from problems import FROZEN, KEY, binary, regression

from gpbench.config.build import build_method, check_class
from gpbench.config.compose import compose
from gpbench.core.optimisers import decaying_adam
from gpbench.errors import ConfigError
from gpbench.methods.base import Method
from gpbench.methods.vi.svi import SVI

METHODS = Path(__file__).resolve().parents[2] / "conf" / "method"
MISTAKES = {
    "no sweeps": ("gfitc method.sweeps=0", "method.sweeps=0: must be "),
    "no rows": ("vsgpr method.rows=0", "method.rows=0: must be "),
    "no growth": ("svdgp method.growth=0", "method.growth=0: must be "),
    "a negative ridge": ("linear method.ridge=-1", "method.ridge=-1: must be "),
    "a layer of no units": ("dgp method.hidden=[0]", "hidden=[0]: must be a list, each entry a whole number from 1"),
    "no psi statistics": ("dgp method.kernel=matern52", "dgp needs a squared exponential kernel, not matern52"),
    "L-BFGS of an estimate": ("dsdgp method.optimiser=null", "method.optimiser=null: "),
}


@pytest.mark.parametrize("words, line", MISTAKES.values(), ids=MISTAKES)
def test_a_value_that_the_method_refuses_is_its_own_line(words, line):
    name, word = words.split(maxsplit=1)
    with pytest.raises(ConfigError) as error:
        build_method(compose(["dataset=sinc", f"method={name}", word])["method"])
    assert line in str(error.value)
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
        check_class(node := {"_target_": f"{__name__}.{cls.__name__}"})
        build_method(node)


def test_a_method_without_a_target_is_one_line():
    with pytest.raises(ConfigError, match="method has no _target_"):
        check_class({"name": "mine"})


REFUSED = {"inducing": (1.5, 0, -3, 20.0, float("nan"), True), "steps": (-1, True), "noise": (-1, 0.0, float("inf"))}
REFUSED |= {"target_noise": (0, -0.1), "natural_step": (0, 3.0), "batch_size": (0,)}
REFUSED |= {"rates": ([0.1, 0], [0.1, float("nan")], ["fast"]), "trial_steps": (0,)}


@pytest.mark.parametrize("field, value", [(field, value) for field, values in REFUSED.items() for value in values])
def test_a_class_refuses_a_value_out_of_its_range_when_it_is_made(field, value):
    with pytest.raises(ConfigError, match=rf"^method\.{field}=.*: must be (?!finite)"):
        SVI(**{field: value})


class Random(Nameless):
    """Has a field with the name of a built-in one and another meaning."""

    features: int = eqx.field(static=True, kw_only=True, default=10)


def test_a_users_field_has_its_range_a_label_no_minibatches_and_equal_configurations_equal_methods():
    assert build_method({"_target_": f"{__name__}.Random", "name": "random", "features": 20}).features == 20
    with pytest.raises(ConfigError, match=r"method\.steps=-1"):
        Random(steps=-1)
    for name in ("svdgp", "sdd"):
        words = [f"method={name}", "dataset=sinc", "method.batch_size="]
        labels = [build_method(compose([*words[:2], words[2] + size])["method"]).label for size in ("null", "7")]
        assert labels[1] == f"{labels[0]}, batch=7"
    for name in sorted(file.stem for file in METHODS.glob("*.yaml")):
        first, second = (build_method(compose([f"method={name}"])["method"]) for _ in range(2))
        assert first == second and hash(first) == hash(second), name


ALL_ROWS = ["linear", "constant", "logistic", "laplace", "hmc", "gpr", "vsgpr", "alacarte", "gfitc", "mile"]


@pytest.mark.parametrize("name", ALL_ROWS)
def test_methods_whose_steps_need_all_rows_refuse_minibatches_in_one_line(name):
    with pytest.raises(ConfigError, match=r"^method\.batch_size=64: must be null$"):
        build_method(compose([f"method={name}", "dataset=sinc", "method.batch_size=64"])["method"])


ROWS, CLASSES = regression(25), binary(20)
GROWING = {"optimiser": decaying_adam(), "mean_basis": 5, "covariance_basis": 5, "growth": 5}
PATHS, STEPPING = {"predictive": "sample", "optimiser": FROZEN}, {"optimiser": FROZEN, "inducing": 5}
ALL = {"features": "inducing", "basis": None, "kernel": "matern32"}
CG = {**ALL, "solver": "cg"}
SQUARED = r"needs a squared exponential kernel, not matern52: choose .*$"

UNFIT = [
    ("alacarte", ROWS, {"kernel": "matern52"}, rf"^own {SQUARED}"),
    ("alacarte", ROWS, {"frequencies": 10**7}, r"^20,000,000 features need .* TB, and .* GB of memory are free: .*$"),
    ("cagp", ROWS, {"actions": 26}, r"^method\.actions=26 asks for 26 actions, but there are 25 training rows"),
    ("dgp", ROWS, {"energy": "sep"}, r"^method\.energy=sep needs a method\.optimiser"),
    ("dgp", ROWS, {"inducing": 50, **PATHS}, "asks for 50 inducing points, but there are 25 training rows"),
    ("dgp", ROWS, {"hidden": (3, 3), "samples": 16, **PATHS}, "samples=16 must be a power of two of at least 32"),
    ("dropout", ROWS, {"dropout": 1.0}, "method.dropout=1.0: must be a number from 0 and below 1"),
    ("ensemble", ROWS, {"likelihood": "laplace"}, r"^own needs a gaussian, .* likelihood, not "),
    ("gam", ROWS, {"components": [[0, 0]]}, r"\[0, 0\] names the input 0 twice"),
    ("gam", ROWS, {"components": [[0], [7]]}, r"\[7\] names the input 7, but the data have only the inputs 0 to 1"),
    ("gam", ROWS, {"components": [[0], [1], [1, 0]], "pairs": [[0, 1]]}, "in method.components and method.pairs"),
    ("gam", ROWS, {"components": "all"}, r"method.components=all: must be univariate, or a list of lists"),
    ("gam", ROWS, {"components": [{"input": 0}]}, "a component has no option 'input': known are inputs, "),
    ("gam", ROWS, {"components": [{"inputs": 7}]}, r"is no list of inputs such as \[0, 1\], nor a mapping such as"),
    ("gam", ROWS, {"components": [[-1]]}, r"\[-1\] must be whole numbers from 0"),
    ("gam", ROWS, {"components": [{"inputs": [0], "inducing": 1}]}, r"inducing of component \[0\]=1: a component has"),
    ("gam", ROWS, {"kernel": "linear"}, r"kernel linear has no zero-mean form for a component: nothing is left of it"),
    ("gam", ROWS, {"pairs": "all", "components": [[0], [1], [1, 0]]}, r"two components of the inputs \[0, 1\]"),
    ("gam", ROWS, {"pairs": [[0]]}, r"method.pairs: \[0\] is no pair"),
    ("gam", ROWS, {"kernel": "anova"}, r"has no zero-mean form for a component: it has effects of its own"),
    ("gam", ROWS, {"rank": 3, "posterior": "mean_field"}, "rank is for method.posterior=coupled_precision, not mean"),
    ("gam", ROWS, {"inducing": 0.5}, r"method.inducing=0.5: must be a whole number from 2"),
    ("gam", ROWS, {"rank": 1000}, r"method.rank=1000: must be from 1 to 43"),
    ("gam", ROWS, {"inducing": 10**6}, r"3 components with 3,000,001 inducing outputs need 216.* TB"),
    ("gam", ROWS, {"inducing": 30}, "30 inducing points of a component, but there are 25 training rows"),
    ("gam", ROWS, {"optimiser": None}, r"method.natural_step needs a method.optimiser"),
    ("gfitc", CLASSES, {"likelihood": "gaussian"}, "needs a probit or logistic likelihood, not gaussian"),
    ("sgpr_greedy", ROWS, {"inducing": 26}, r"^method\.inducing=26 asks for 26 inducing points, but there are 25"),
    ("pbp", ROWS, {"likelihood": "laplace"}, r"^own needs a gaussian likelihood, not "),
    ("pbp", ROWS, {"gamma_shape": 1.0}, r"^method\.gamma_shape=1\.0: must be a number above 1$"),
    ("qsgp", ROWS, {"basis": None}, "method.basis=null is one function for every training row"),
    ("qsgp", ROWS, {"features": "inducing", "basis": 26}, "method.basis=26: there are 25 training rows"),
    ("qsgp", ROWS, {"dense_columns": 21}, "method.dense_columns=21 of 20 basis functions"),
    ("qsgp", ROWS, {"block": 30, "basis_batch": 20}, "method.block=30: functions are drawn in whole blocks, 20"),
    ("qsgp", ROWS, {"control_rows": 26}, "method.control_rows=26: there are 25 training rows"),
    ("qsgp", ROWS, {"kernel": "periodic"}, "own with features=rff needs a"),
    ("qsgp", ROWS, {"relevance": True}, "method.relevance=true needs kernel functions"),
    ("qsgp", ROWS, {"features": "inducing", "basis": 6, "augmentation": True}, "set method.basis=null and"),
    ("qsgp", ROWS, {**ALL, "augmentation": True, "likelihood": "laplace"}, "is derived for Gaussian noise, not"),
    ("qsgp", ROWS, {"likelihood": "student_t"}, "own needs a gaussian, laplace, probit or logistic likelihood"),
    ("qsgp", ROWS, {**ALL, "optimiser": optax.adam(0.1)}, "set method.optimiser=null"),
    ("qsgp", ROWS, {"basis": 10**13}, "basis functions with 0 dense columns need"),
    ("qsgp", ROWS, {**CG, "basis": 20}, "it is for kernel functions around all rows: set method.featur"),
    ("qsgp", ROWS, {**CG, "dense_columns": 1}, "it is for a diagonal C: set method.dense_columns=0, or"),
    ("qsgp", ROWS, {**CG, "relevance": True}, "it is for a prior whose precision is K: set method.rel"),
    ("qsgp", ROWS, {**CG, "likelihood": "laplace"}, "for Gaussian noise: set method.likelihood="),
    ("qsgp", ROWS, {**CG, "search": {"rate": [0.1]}}, "no rate to search: set method.search=null"),
    ("qsgp", ROWS, {**ALL, "solver": "adagrad", "regressors": 26}, "method.regressors=26: needs regression on as"),
    ("qsgp", ROWS, {"solver": "adagrad", "regressors": 4}, "set method.regressors=0"),
    ("sdd", ROWS, {"samples": 1}, r"^method\.samples=1: must be a whole number from 2$"),
    ("sdd", ROWS, {"kernel": "linear"}, "a squared exponential, matern12, matern32 or matern52 kernel, not linear"),
    ("sdd", CLASSES, {}, r"^own is for regression, and these are 2 classes: try svi$"),
    ("sep", CLASSES, {"gradient": "scalars", "batch_size": 5, **STEPPING}, r"^method\.gradient=scalars needs all rows"),
    ("sgld", ROWS, {"steps": 6, "burn_in": 1.0}, r"no samples: of method.steps=6 the first 6 are burn-in"),
    ("svdgp", ROWS, {**GROWING, "batch_size": 10, "growth": 11}, "method.growth=11"),
    ("svdgp", ROWS, {**GROWING, "covariance_basis": 26}, "covariance_basis=26 is more than the 25 training rows"),
    ("svdgp", ROWS, {**GROWING, "natural_step": 0.1}, "method.natural_step is for method.parametrisation=orthogonal"),
    ("svdgp", ROWS, {**GROWING, "likelihood": "heteroscedastic"}, "likelihood, not heteroscedastic"),
    ("svdgp", ROWS, {**GROWING, "kernel": "matern52"}, SQUARED),
    ("svi", CLASSES, {"batch_size": 10}, "L-BFGS needs all rows"),
    ("svi", CLASSES, {"natural_step": 0.1}, "natural_step needs"),
    ("svi", ROWS, {"likelihood": "probit"}, "likelihood probit does not fit regression data"),
    ("svi", ROWS, {"features": "generalised", "kernel": "matern52"}, SQUARED),
    ("svi", ROWS, {"conditional": "scaled", "likelihood": "student_t"}, "needs Gaussian noise, and the likelihood is"),
    ("svi", ROWS, {"subset_rows": 9, "likelihood": "student_t"}, r"^method\.subset_rows=9 .* set method.subset_rows="),
    ("vif", ROWS, {"neighbours": 25}, r"^method\.neighbours=25: there are 25 training rows: choose a number below$"),
    ("vsgpr", ROWS, {"optimiser": FROZEN}, r"^method\.optimiser=.*: must be null$"),
]
NEEDED = {"dropout": {"optimiser": FROZEN}, "ensemble": {"optimiser": FROZEN}}
NEEDED["qsgp"] = {"basis": 20, "basis_batch": 8, "block": 2, "batch_size": 4, "control_rows": 3}
NEEDED["gam"] = {"inducing": 14, "pairs": [[0, 1]], "optimiser": FROZEN, "natural_step": "auto"}


@pytest.mark.parametrize(("name", "data", "fields", "line"), UNFIT, ids=[f"{m[0]} {[*m[2]]}" for m in UNFIT])
def test_a_mistake_is_one_line(name, data, fields, line, one_line):
    cls = get_class(yaml.safe_load((METHODS / f"{name}.yaml").read_text())["_target_"])
    with one_line(ConfigError, match=line):
        cls(**{"name": "own", **NEEDED.get(name, {}), **fields}).init(data, key=KEY)
