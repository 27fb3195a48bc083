"""`gpbench check`: our methods, kernels and likelihoods keep every rule and lower for a GPU; what does not is said."""

from pathlib import Path
from typing import ClassVar

import jax.numpy as jnp
import pytest
from hydra.utils import instantiate

from gpbench import registry
from gpbench.config import declared
from gpbench.config.compose import compose
from gpbench.contract.families import examine_kernel, examine_likelihood
from gpbench.contract.findings import CHECKS, ROWS, examine, startable
from gpbench.contract.lowering import examine_platform
from gpbench.contract.problems import CLASSES
from gpbench.core.kernels import SquaredExponential
from gpbench.core.likelihoods import Probit

ROOT = Path(__file__).resolve().parents[2]
_DECOUPLED = "mean_basis=12 covariance_basis=5 growth=4 columns=6 batch_size=10 steps=30 rates=[]"
NETWORK = ["method.hidden=[3]", "method.samples=4"]
_INDUCING = "gfitc sep svi vsgpr pep sgpr_greedy vif dgp dsdgp"
SMALL = {name: ["method.inducing=5"] for name in _INDUCING.split()} | {
    "svdgp": [f"method.{setting}" for setting in _DECOUPLED.split()],
    "cagp": ["method.actions=5", "method.steps=20"],
    "gam": ["method.inducing=3"],
    "alacarte": ["method.frequencies=6"],
    "sdd": ["method.samples=4", "method.frequencies=50"],
    "igp": ["method.samples=4", "method.frequencies=50", "method.rank=5", "method.steps=5"],
    "qsgp": [
        "method.features=rff",
        "method.basis=200",
        "method.basis_batch=50",
        "method.block=10",
        "method.dense_columns=2",
    ],
    **dict.fromkeys(("vi_kw", "vi_g", "dropout", "sgld"), NETWORK),
    "pbp": ["method.hidden=[3]", "method.steps=4"],
    "ensemble": ["method.hidden=[3]", "method.members=2"],
    "laplace": ["method.hidden=[3]", "method.inner_steps=4"],
    "hmc": [*NETWORK, "method.chains=2", "method.warmup=30", "method.max_doublings=3"],
    "mile": [*NETWORK, "method.members=2", "method.start_steps=200", "method.tuning=100"],
}
SMALL["sgpr_greedy"].append("method.steps=20")
SMALL["vif"] += ["method.neighbours=4", "method.steps=20"]
for _name in ("dgp", "dsdgp"):
    SMALL[_name].append("method.hidden=[1]")
"""Settings that make a check quick; any other method is checked as it ships."""
_NUMBERS = "svi svdgp dgp dsdgp ensemble laplace sgld hmc mile qsgp vi_g vi_kw"
ONE_OF = {"logistic": "multiclass"} | dict.fromkeys(_NUMBERS.split(), "regression")
"""The task that a method is checked on here, where it is not two classes or the only one."""
VARIANTS = {
    "dkl": ("multiclass", ["method.inducing=5", "method.batch_size=10", "method.kernel={deep:{hidden:[3],outputs:2}}"]),
    "fitc_gp": ("regression", ["method.inducing=5"]),
    "ivsgpr": ("regression", ["method.inducing=5"]),
    "odsvgp": ("regression", SMALL["svdgp"]),
    "ppgpr": ("regression", ["method.inducing=5", "method.batch_size=10"]),
    "qsrvm": ("regression", ["method.dense_columns=2", "method.basis_batch=20", "method.control_rows=10"]),
    "sep_minibatch": ("binary", ["method.inducing=5", "method.batch_size=10"]),
    "svi_minibatch": ("binary", ["method.inducing=5", "method.batch_size=10"]),
    "svi_natural": ("count", ["method.inducing=5", "method.batch_size=10"]),
    "svgp": ("regression", ["method.inducing=5", "method.subset_rows=20", "method.batch_size=10"]),
    "tsvgp": ("regression", ["method.inducing=5"]),
    "tvsgpr": ("regression", ["method.inducing=5"]),
}
"""The task and the settings of methods that have classes of the others, and tests of their own."""
METHODS = sorted(path.stem for path in (ROOT / "conf" / "method").glob("*.yaml"))


def task_of(name, method):
    """The task that a method is checked on here."""
    tasks = declared.classes()[method["_target_"]]["tasks"]
    return ONE_OF.get(name) or ("binary" if "binary" in tasks else tasks[0])


@pytest.mark.parametrize("name", [name for name in METHODS if name not in VARIANTS])
def test_our_methods_keep_every_rule(name):
    method = compose([f"method={name}", *SMALL.get(name, [])])["method"]
    findings = list(examine(method, rows=40, tasks=[task_of(name, method)]))
    assert len(findings) == len(CHECKS)
    assert [finding for finding in findings if finding.verdict == "broken"] == []


COUNTS = [["method=constant"], ["method=svi", *SMALL["svi"], "method.likelihood=negative_binomial"]]


@pytest.mark.parametrize("rules", [4, len(CHECKS)], ids=["few", "all"])  # few: no predictions, dear to compile
@pytest.mark.parametrize("words", COUNTS, ids=" ".join)
def test_counts_are_a_task_of_their_own_and_methods_of_them_keep_every_rule(words, rules, monkeypatch):
    monkeypatch.setattr("gpbench.contract.findings.CHECKS", CHECKS[:rules])
    tasks = ["count"] if "constant" in words[0] else CLASSES
    findings = list(examine(compose(words)["method"], rows=30, tasks=tasks))
    assert {finding.task for finding in findings} == {"count"} and len(findings) == rules
    assert [finding for finding in findings if finding.verdict == "broken"] == []


def broken(name):
    """{claim: (verdict, why)} of what a method of broken.py does not keep."""
    findings = examine({"_target_": f"broken.{name}", "name": name.lower(), "steps": 4}, rows=20)
    return {finding.claim: (finding.verdict, finding.reason) for finding in findings if finding.verdict != "kept"}


@pytest.mark.parametrize("name", ["Good", "Sampled"])
def test_a_method_that_keeps_all_rules_is_not_complained_about(name):
    """Sampled has a random key in its state, and noise that belongs to the row and the key."""
    assert broken(name) == {}


BROKEN = [
    ("Silent", "the class has a docstring", "Silent has no docstring"),
    ("StartsWithNaN", "init gives a pytree of arrays", "state.mean has NaN in 1 of 1 places"),
    ("StartsInFloat64", "data in float32", "predicts mean in float64 from data in float32: use the dtype of"),
    ("OneVariance", "predictions have a number for each", "var of shape () for 15 rows: its shape must be (15,)"),
    ("StartsAnyhow", "init gives the same", "take all randomness from `key`"),
    ("Mutating", "step is pure", "step changes the state that it is given"),
    ("Growing", "step keeps the structure", "step changes state.mean from float64[] to float64[2]"),
    ("Recompiling", "a second split", "keep numbers that come from the data in arrays"),
    ("CountsWhatFillsUp", "rows of weight 0", "have `batch.weight` as a factor in every sum over rows"),
    ("Untraceable", "step keeps", "TracerBoolConversionError at"),
    ("Diverging", "the objective is finite", "step reports nan, nan"),
    ("Worsening", "the objective grows", "larger is better"),
    ("Overconfident", "the probabilities of all targets", "sums to 2 over all targets"),
    ("Miscounted", "the probabilities of all targets", "cdf differs from the integral of exp(log_prob) by"),
    ("Positional", "a row's prediction", "in another order the predictions differ by"),
    ("Averaging", "a row's prediction", "with other rows beside it a row's log_prob differs by"),
]


@pytest.mark.parametrize("name, claim, why", BROKEN)
def test_a_broken_rule_is_found(name, claim, why):
    findings = broken(name)
    verdict, explanation = next((value for key, value in findings.items() if key.startswith(claim)), ("kept", ""))
    assert verdict == ("doubtful" if name == "Worsening" else "broken"), findings
    assert why in explanation and "\n" not in explanation


def test_the_same_reason_is_given_once_and_settings_that_want_more_rows_get_them():
    reasons = [why for _, why in broken("PredictsAnArray").values()]
    assert len(reasons) > 5 and "predict returns an array: return a gpbench.core.predictive.Pred" in reasons[0]
    assert set(reasons[1:]) == {"for the same reason"}
    cfg = compose(["method=svi", "method.inducing=61"])
    method = instantiate(cfg["method"])
    assert startable(method, "regression", ROWS).rows == 250 and startable(method, "regression", (60,)).rows == 60


DOCUMENTED = [("robust_gp", "few"), *((name, "all") for name in ("robust_gp", "langevin", "two_layers"))]


@pytest.mark.parametrize(("name", "checks"), DOCUMENTED)
def test_the_documentations_examples_pass_in_under_60_lines(name, checks, monkeypatch, printed):
    rules = {"few": 4, "all": len(CHECKS)}[checks]
    monkeypatch.setattr("gpbench.contract.findings.CHECKS", CHECKS[:rules])
    examples = ROOT / "docs" / "examples"
    lines = printed("check", name, "--config-dir", examples, "--rows", "40").splitlines()
    assert len(lines) >= rules and not any(line.startswith("broken") for line in lines)
    assert len((examples / f"{name}.py").read_text().splitlines()) < 60


def test_a_broken_method_ends_in_one_line_and_an_exit_code_and_the_verb_names_the_platform(tmp_path, new_file, streams):
    new_file(tmp_path / "method" / "silent.yaml", "_target_: broken.Silent\nname: silent\nsteps: 2\n")
    out, err = streams("check", "silent", "--config-dir", tmp_path, "--rows", "20", code=8)
    assert out.startswith("broken    regression  the class has a docstring")
    assert err == "gpbench: silent breaks 1 of 16 claims; see docs/how-to/own_method.md\n"
    (tmp_path / "method" / "printing.yaml").write_text("_target_: broken.Printing\nname: printing\nsteps: 2\n")
    words = ["check", "printing", "--config-dir", str(tmp_path), "--rows", "20", "--platform", "cuda"]
    out, err = streams(*words, code=8)
    assert "broken    regression  step in float32 lowers for cuda: it waits for the host" in out
    assert err == "gpbench: printing breaks 2 of 6 claims; see docs/how-to/own_method.md\n"


class Asymmetric(SquaredExponential):
    """A kernel that is none."""

    def cross(self, X, Y):
        return super().cross(X, Y) + 0.1 * X[:, :1]


class Kinked(SquaredExponential):
    """A kernel whose gradient is not finite where rows coincide."""

    def cross(self, X, Y):
        square = jnp.sum((X[:, None] - Y[None]) ** 2, axis=-1)
        return self.amplitude * jnp.exp(-jnp.sqrt(square))


class Shifted(Probit):
    """A likelihood whose expectation is not that of its density."""

    tasks: ClassVar[frozenset[str]] = frozenset({"binary"})

    def expected_log_prob(self, mean, variance, y):
        return super().expected_log_prob(mean, variance, y) + 0.1


def broken_claims(findings):
    return [finding.claim for finding in findings if finding.verdict == "broken"]


@pytest.mark.parametrize("name", ["matern12", "periodic", "linear", "anova", {"sum": ["linear", "constant"]}], ids=str)
def test_our_kernels_keep_every_claim(name):
    assert broken_claims(examine_kernel(name)) == []


@pytest.mark.parametrize("name", [name for name in registry.LIKELIHOODS if name not in ("softmax", "robust_max")])
def test_our_likelihoods_keep_every_claim(name):
    assert broken_claims(examine_likelihood(name)) == []


def test_broken_ones_are_found():
    own = lambda cls: {"_target_": f"{cls.__module__}.{cls.__name__}"}
    assert any("symmetric" in claim for claim in broken_claims(examine_kernel(own(Asymmetric))))
    gradients = "gradients in parameters and inputs are finite, at rows that coincide too"
    assert broken_claims(examine_kernel(own(Kinked))) == [gradients]
    assert broken_claims(examine_likelihood(own(Shifted))) == ["expected_log_prob is the expectation of log_prob"]


def not_lowered(name, platform="cuda"):
    """{claim: why} of what a method of broken.py does not keep."""
    findings = examine_platform({"_target_": f"broken.{name}", "name": name.lower(), "steps": 4}, platform, rows=20)
    return {finding.claim: finding.reason for finding in findings if finding.verdict == "broken"}


@pytest.mark.parametrize("name", METHODS)
def test_every_program_of_every_method_lowers_for_cuda(name):
    task, words = VARIANTS.get(name, ("", SMALL.get(name, [])))
    method = compose([f"method={name}", *words])["method"]
    findings = list(examine_platform(method, "cuda", rows=40, tasks=[task or task_of(name, method)]))
    assert len(findings) >= 6
    assert [finding for finding in findings if finding.verdict != "kept"] == []


def test_plain_programs_lower_and_undeclared_float64_in_one_of_float32_is_broken():
    assert not_lowered("Sampled", "cuda") == not_lowered("Sampled", "tpu") == {}
    [(claim, why)] = not_lowered("Widens").items()
    assert claim == "step in float32 lowers for cuda"
    assert why.startswith("it computes in float64 (use the dtype of the data, or jax.named_scope('needs_float64')): ")
    assert "convert_element_type at" in why and "broken.py" in why
    assert not_lowered("WidensOnPurpose") == {}


@pytest.mark.parametrize(
    "name, part, why",
    [
        ("Printing", "step", "it waits for the host: debug_print at "),
        ("CallsForeignCode", "step", "it calls foreign code: my_kernel at "),
        ("NotOnAGPU", "init", "primitive 'schur' not found for platform cuda"),
    ],
)
def test_what_does_not_suit_a_gpu_is_broken_in_both_precisions(name, part, why):
    found = not_lowered(name)
    assert list(found) == [f"{part} in {precision} lowers for cuda" for precision in ("float32", "float64")]
    assert all(why in reason and "\n" not in reason for reason in found.values())
