"""Every command in the documentation is one that gpbench has, links lead somewhere, values are those of files."""

import itertools
import re
import shlex
from pathlib import Path

import yaml

from gpbench import paths, plugins
from gpbench.api.words import with_cards
from gpbench.cli.verbs import split_words, verb_of
from gpbench.config.build import check_class
from gpbench.config.compose import compose

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text()


def blocks(page: Path, language: str = "") -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [text for found, text in fenced if found == language]


def commands() -> dict[str, None]:
    """Every line `gpbench ...` and `make ...` of the blocks without a language, comments left out."""
    joined = (re.sub(r"\\\n\s*", "", block) for page in PAGES for block in blocks(page))
    lines = (line.removeprefix("node1$ ").removeprefix("node2$ ") for block in joined for line in block.splitlines())
    return {line.partition(" #")[0].strip(): None for line in lines if line.startswith(("gpbench ", "make "))}


def jobs(words: list[str]) -> list[list[str]]:
    """The jobs of a sweep: each choice of its groups (`method=a,b`), and the first value of every other list."""
    choices = []
    for word in words:
        key, _, value = re.sub(r"=range\((\d+),.*\)$", r"=\1", word).partition("=")
        every = value if key in ("dataset", "method", "protocol") else re.sub(r"^([^\[,]*),.*$", r"\1", value)
        values = every.split(",") if every[:1] != "[" else [every]
        choices.append([f"{key}={value}" for value in values])
    return [list(job) for job in itertools.product(*choices)]


def understand(command: str, monkeypatch) -> None:
    program, *words = shlex.split(command.replace("--config-dir mine", "--config-dir docs/examples"), comments=True)
    if program == "make":
        assert f"\n{words[0]}:" in MAKEFILE
        return
    name, words = split_words(words)
    overrides, options = verb_of(name).parse(words)
    if name == "run":
        for folder in options["config_dir"]:
            monkeypatch.syspath_prepend(folder)
        own, folders = with_cards([word for word in overrides if "hydra" not in word], options["config_dir"])
        for job in jobs(own) if options["multirun"] else [own]:
            check_class(compose(job, folders)["method"])


def test_every_command_in_the_documentation_is_understood(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(plugins, "_TRACKERS", dict.fromkeys(plugins._TRACKERS, "gpbench"))  # an extra of users
    faults = []
    for command in commands():
        try:
            understand(command, monkeypatch)
        except Exception as error:  # so that one list has all of them
            faults.append(f"{command}: {error!r}")
    assert not faults and len(commands()) > 20, "\n".join(faults)


def test_every_link_leads_to_a_file_and_a_heading():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
            if target.startswith("https://"):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            assert file.exists(), (page, target)
            if anchor:
                headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
                anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
                assert anchor in anchors, (page, target)


def test_every_method_and_page_is_described_and_the_readme_names_the_python_that_is_required():
    text = (ROOT / "docs" / "reference" / "methods.md").read_text()
    for path in (ROOT / "conf" / "method").glob("*.yaml"):
        assert path.stem in text, path
    wanted = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert wanted and f"Python {wanted[1]} or later" in (ROOT / "README.md").read_text()
    navigation = re.findall(r"\b(docs/\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(navigation) == sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))


LINES = re.findall(r"^\| .*\|$", (ROOT / "docs/reference/protocols.md").read_text(), re.MULTILINE)
HEADER, *ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES if line.count("|") > 5]
PROTOCOLS = {name: yaml.safe_load(file.read_text()) for name, file in paths.yaml_files("protocol").items()}
BUDGETS = r"\$\{protocol\.(?:lbfgs|variational|deep|networks|solver)\b"
"""References to what differs from method to method."""


def column(name: str) -> dict[str, str]:
    """The cells of a protocol by the name of their row; a dot is the cell of clean."""
    at, clean = HEADER.index(name), HEADER.index("clean")
    return {row[0]: row[clean] if row[at] == "·" else row[at] for row in ROWS}


def test_every_protocol_is_a_column_with_the_same_keys_and_methods_that_read_its_steps_have_a_row():
    assert sorted(HEADER[1:]) == sorted(PROTOCOLS)
    named = {name for row in ROWS for name in re.findall(r"`(\w+)`", row[0])}
    takers = {name for name, file in paths.yaml_files("method").items() if re.search(BUDGETS, file.read_text())}
    assert takers <= named
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


def test_a_column_has_the_values_of_its_file():
    scaled = {"standardise": "standardised", "none": "not scaled"}
    for name, values in PROTOCOLS.items():
        cells = column(name)
        assert cells["inputs"] == scaled[values["inputs"]], name
        assert cells["targets of regression"] == scaled[values["targets"]], name
        assert float(cells["initial noise variance²"]) == values["target_noise"], name
        assert float(cells["least noise variance¹ ²"]) == values["noise_floor"], name
        assert (cells["prior on lengthscales³"] == "none") == (values["lengthscale_prior"] is None), name
        assert (cells["inducing points of `gam`"] == "fixed") == values["fixed_points"], name
        assert cells["trials of `rates`"].startswith("by halving") == values["halving"], name
        assert cells["`qsgp`: `solver`"] == values["solver"], name
        [networks] = [cell for row, cell in cells.items() if row.endswith("outputs of layers")]
        assert (networks == "as they are") != values["networks"]["scaled"], name


SECTIONS = ("variational", "deep", "networks", "lbfgs")


def test_evans2020_and_adam2018_are_clean_but_for_what_their_papers_have_and_halving_is_of_clean_alone():
    differing = {key: value for key, value in PROTOCOLS["evans2020"].items() if value != PROTOCOLS["clean"][key]}
    assert differing.pop("paper") is True
    assert differing == {"name": "evans2020", "lengthscale_prior": None, "halving": False, "solver": "adagrad"}
    differing = {key: value for key, value in PROTOCOLS["adam2018"].items() if value != PROTOCOLS["clean"][key]}
    optimiser = {"_target_": "optax.adam", "learning_rate": 0.01}
    assert differing.pop("variational") == {"steps": 2000, "natural_step": None, "optimiser": optimiser}
    text = {"inputs": "none", "targets": "none", "fixed_points": True, "target_noise": 1.0, "lengthscale_prior": None}
    assert differing == {"name": "adam2018", "paper": True, "halving": False, "solver": "adagrad", **text}
    assert [name for name, protocol in PROTOCOLS.items() if protocol["halving"]] == ["clean"]
    chosen = [compose(["dataset=kin40k", "method=svi_natural", f"protocol={name}"])["method"] for name in PROTOCOLS]
    assert [method["halving"] for method in chosen] == [name == "clean" for name in PROTOCOLS]


ERRATA = (ROOT / "docs" / "reference" / "errata.md").read_text()


def test_the_page_names_the_file_of_every_paper_and_has_a_row_for_every_test_of_an_erratum():
    for path in (ROOT / "tests" / "errata").glob("test_*_errata.py"):
        _, named, rest = ERRATA.partition(f"`tests/errata/{path.name}`")
        rows = re.findall(r"^\| .*\|$", rest.partition("\n## ")[0], re.MULTILINE)[1:]
        assert named and len(rows) >= len(re.findall(r"^def test_", path.read_text(), re.MULTILINE)), path
