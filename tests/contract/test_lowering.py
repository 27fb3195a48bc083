"""`gpbench check --platform`: every method lowers for a GPU, and what would not suit one is found and said."""

from pathlib import Path

import pytest
from test_contract import SMALL, task_of

from gpbench.cli import main
from gpbench.config.compose import compose
from gpbench.contract.lowering import examine_platform

VARIANTS = {
    "fitc_gp": ("regression", ["method.inducing=5"]),
    "ivsgpr": ("regression", ["method.inducing=5"]),
    "odsvgp": ("regression", SMALL["svdgp"]),
    "qsrvm": ("regression", ["method.dense_columns=2", "method.basis_batch=20", "method.control_rows=10"]),
    "sep_minibatch": ("binary", ["method.inducing=5", "method.batch_size=10"]),
    "svi_minibatch": ("binary", ["method.inducing=5", "method.batch_size=10"]),
    "svi_natural": ("count", ["method.inducing=5", "method.batch_size=10"]),
    "svgp": ("regression", ["method.inducing=5", "method.subset_rows=20", "method.batch_size=10"]),
    "tsvgp": ("regression", ["method.inducing=5"]),
    "tvsgpr": ("regression", ["method.inducing=5"]),
}
"""The task and the settings of methods that the other checks leave out."""
METHODS = sorted(path.stem for path in (Path(__file__).resolve().parents[2] / "conf" / "method").glob("*.yaml"))


def broken(name, platform="cuda"):
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
    assert broken("Sampled", "cuda") == broken("Sampled", "tpu") == {}
    [(claim, why)] = broken("Widens").items()
    assert claim == "step in float32 lowers for cuda"
    assert why.startswith("it computes in float64 (use the dtype of the data, or jax.named_scope('needs_float64')): ")
    assert "convert_element_type at" in why and "broken.py" in why
    assert broken("WidensOnPurpose") == {}


@pytest.mark.parametrize(
    "name, part, why",
    [
        ("Printing", "step", "it waits for the host: debug_print at "),
        ("CallsForeignCode", "step", "it calls foreign code: my_kernel at "),
        ("NotOnAGPU", "init", "primitive 'schur' not found for platform cuda"),
    ],
)
def test_what_does_not_suit_a_gpu_is_broken_in_both_precisions(name, part, why):
    found = broken(name)
    assert list(found) == [f"{part} in {precision} lowers for cuda" for precision in ("float32", "float64")]
    assert all(why in reason and "\n" not in reason for reason in found.values())


def test_the_verb_names_the_platform(tmp_path, capsys):
    (tmp_path / "method").mkdir()
    (tmp_path / "method" / "printing.yaml").write_text("_target_: broken.Printing\nname: printing\nsteps: 2\n")
    words = ["check", "printing", "--config-dir", str(tmp_path), "--rows", "20", "--platform", "cuda"]
    assert main(words) == 8
    out, err = capsys.readouterr()
    assert "broken    regression  step in float32 lowers for cuda: it waits for the host" in out
    assert err == "gpbench: printing breaks 2 of 6 claims; see docs/how-to/own_method.md\n"
