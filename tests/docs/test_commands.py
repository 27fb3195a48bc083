"""Every command in the documentation is one that gpbench has, and every link leads somewhere."""

import itertools
import re
import shlex
from pathlib import Path

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


def test_every_method_page_and_protocol_is_described_and_the_readme_names_the_python_that_is_required():
    text = (ROOT / "docs" / "reference" / "methods.md").read_text()
    for path in [*(ROOT / "conf" / "method").glob("*.yaml"), *(ROOT / "conf" / "protocol").glob("*.yaml")]:
        assert path.stem in text, path
    wanted = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert wanted and f"Python {wanted[1]} or later" in (ROOT / "README.md").read_text()
    navigation = re.findall(r"\b(docs/\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(navigation) == sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
