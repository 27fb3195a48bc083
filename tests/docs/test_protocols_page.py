"""Protocols: each has the same keys, those of texts are clean but for what these say, and the page has their values."""

import re
from pathlib import Path

import yaml

from gpbench import paths
from gpbench.config.compose import compose

ROOT = Path(__file__).parents[2]
LINES = re.findall(r"^\| .*\|$", (ROOT / "docs/reference/protocols.md").read_text(), re.MULTILINE)
HEADER, *ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES if line.count("|") > 5]
PROTOCOLS = {name: yaml.safe_load(file.read_text()) for name, file in paths.yaml_files("protocol").items()}
BUDGETS = r"\$\{protocol\.(?:lbfgs|variational|deep|networks|solver)\b"
"""References to what differs from method to method."""


def column(name: str) -> dict[str, str]:
    """The cells of a protocol by the name of their row; a dot is the cell of clean."""
    at, clean = HEADER.index(name), HEADER.index("clean")
    return {row[0]: row[clean] if row[at] == "·" else row[at] for row in ROWS}


def test_every_protocol_is_a_column_and_every_method_that_takes_its_steps_from_it_has_a_row():
    assert sorted(HEADER[1:]) == sorted(PROTOCOLS)
    named = {name for row in ROWS for name in re.findall(r"`(\w+)`", row[0])}
    takers = {name for name, file in paths.yaml_files("method").items() if re.search(BUDGETS, file.read_text())}
    assert takers <= named


def test_a_column_has_the_values_of_its_file():
    scaled = {"standardise": "standardised", "none": "not scaled"}
    for name, values in PROTOCOLS.items():
        cells = column(name)
        assert cells["inputs"] == scaled[values["inputs"]], name
        assert cells["targets of regression"] == scaled[values["targets"]], name
        assert float(cells["initial noise variance²"]) == values["target_noise"], name
        assert float(cells["least noise variance¹ ²"]) == values["noise_floor"], name
        assert (cells["prior on lengthscales"] == "none") == (values["lengthscale_prior"] is None), name
        assert (cells["inducing points of `gam`"] == "fixed") == values["fixed_points"], name
        assert cells["trials of `rates`"].startswith("by halving") == values["halving"], name
        assert cells["`qsgp`: `solver`"] == values["solver"], name
        [networks] = [cell for row, cell in cells.items() if row.endswith("outputs of layers")]
        assert (networks == "as they are") != values["networks"]["scaled"], name


SECTIONS = ("variational", "deep", "networks", "lbfgs")


def test_every_protocol_has_the_same_keys_and_what_a_method_reads_is_there():
    for name, protocol in PROTOCOLS.items():
        assert protocol["name"] == name
        assert protocol.keys() - {"split_indices"} == PROTOCOLS["clean"].keys()
        for section in SECTIONS:
            assert protocol[section].keys() == PROTOCOLS["clean"][section].keys(), (name, section)
    for method in ("svgp", "qsgp", "gpr", "svi", "dgp", "vi_kw"):
        cfg = compose(["dataset=kin40k", f"method={method}", "protocol=evans2020"])
        assert "${" not in str(cfg) and cfg["method"].get("lengthscale_prior") is None, method
        if method in ("svgp", "qsgp"):
            assert (cfg["method"]["subset_rows"], cfg["method"]["noise_floor"]) == (1000, 1e-6)


def test_evans2020_and_adam2018_are_clean_but_for_what_their_papers_have_and_halving_is_of_clean_alone():
    differing = {key: value for key, value in PROTOCOLS["evans2020"].items() if value != PROTOCOLS["clean"][key]}
    assert differing == {"name": "evans2020", "lengthscale_prior": None, "halving": False, "solver": "adagrad"}
    differing = {key: value for key, value in PROTOCOLS["adam2018"].items() if value != PROTOCOLS["clean"][key]}
    assert differing.pop("variational") == {
        "steps": 2000,
        "natural_step": None,
        "optimiser": {"_target_": "optax.adam", "learning_rate": 0.01},
    }
    text = {"inputs": "none", "targets": "none", "fixed_points": True, "target_noise": 1.0, "lengthscale_prior": None}
    assert differing == {"name": "adam2018", "halving": False, "solver": "adagrad", **text}
    assert [name for name, protocol in PROTOCOLS.items() if protocol["halving"]] == ["clean"]
    chosen = [compose(["dataset=kin40k", "method=svi_natural", f"protocol={name}"])["method"] for name in PROTOCOLS]
    assert [method["halving"] for method in chosen] == [name == "clean" for name in PROTOCOLS]
