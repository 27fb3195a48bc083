"""Protocols: each has the same keys, and those of texts are clean but for what these say, halving and solver."""

import yaml

from gpbench.config.compose import compose
from gpbench.paths import conf_dir

FILES = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(conf_dir().glob("protocol/*.yaml"))}
SECTIONS = ("variational", "deep", "networks", "lbfgs")


def test_every_protocol_has_the_same_keys():
    for name, protocol in FILES.items():
        assert protocol["name"] == name
        assert protocol.keys() - {"split_indices"} == FILES["clean"].keys()
        for section in SECTIONS:
            assert protocol[section].keys() == FILES["clean"][section].keys(), (name, section)


def test_evans2020_and_adam2018_are_clean_but_for_what_their_papers_and_programs_have():
    differing = {key: value for key, value in FILES["evans2020"].items() if value != FILES["clean"][key]}
    assert differing == {"name": "evans2020", "lengthscale_prior": None, "halving": False, "solver": "adagrad"}
    differing = {key: value for key, value in FILES["adam2018"].items() if value != FILES["clean"][key]}
    assert differing.pop("variational") == {
        "steps": 2000,
        "natural_step": None,
        "optimiser": {"_target_": "optax.adam", "learning_rate": 0.01},
    }
    text = {"inputs": "none", "targets": "none", "fixed_points": True, "target_noise": 1.0, "lengthscale_prior": None}
    assert differing == {"name": "adam2018", "halving": False, "solver": "adagrad", **text}


def test_step_sizes_are_chosen_by_halving_in_clean_alone():
    assert [name for name, protocol in FILES.items() if protocol["halving"]] == ["clean"]
    chosen = [compose(["dataset=kin40k", "method=svi_natural", f"protocol={name}"])["method"] for name in FILES]
    assert [method["halving"] for method in chosen] == [name == "clean" for name in FILES]


def test_what_a_method_reads_of_evans2020_is_there():
    for method in ("svgp", "qsgp", "gpr", "svi", "dgp", "vi_kw"):
        cfg = compose(["dataset=kin40k", f"method={method}", "protocol=evans2020"])
        assert "${" not in str(cfg) and cfg["method"].get("lengthscale_prior") is None, method
        if method in ("svgp", "qsgp"):
            assert (cfg["method"]["subset_rows"], cfg["method"]["noise_floor"]) == (1000, 1e-6)
