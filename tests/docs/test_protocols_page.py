"""The table of protocols in the documentation has every protocol, its values, and every method with steps from it."""

import re
from pathlib import Path

import yaml

from gpbench import paths

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
