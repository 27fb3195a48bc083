"""Claims as data: `claims/PAPER.yaml` of our configuration, or of `--config-dir`.  docs/reference/claims.md says more.

A claim has a `text`, its `place` in the paper, the `experiments` whose runs test it, and `clauses`, all of which must
hold.  One that no record can decide has in place of clauses the `test` that proves or refutes it, what it needs that is
`elsewhere`, or a `reason`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpbench import paths, yamls
from gpbench.claims.clauses import Clause, line, listed, read_clause
from gpbench.errors import ConfigError, nearest
from gpbench.keys import MAPPINGS, Keys, optional, required

_PRINTED = ("supported", "contradicted", "undecided", "none")
"""Verdicts of the paper's own printed numbers on a claim; "none" where it prints none."""
_TEST = re.compile(r"tests/[\w/]+\.py::\w+(\[.+\])?")
_CLAIM = Keys(
    {
        "text": required(),
        **dict.fromkeys(("place", "experiments", "test", "elsewhere", "reason", "printed_why", "note"), optional()),
        "clauses": optional(MAPPINGS),
        "any": optional("flag"),
        "proves": optional("flag"),
        "printed": optional(_PRINTED),
    }
)


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper as predicates.

    `printed` is what the paper's own numbers say of it, and `printed_why` in words; `any` is whether one clause that
    holds is enough.  `tests` are names of tests of gpbench, as in `tests/methods/test_sep.py::test_x`, which together
    prove the sentence, or refute it where `proves` is False.  `elsewhere` is a machine or data that the runs need and
    that gpbench does not have.
    """

    paper: str
    id: str
    text: str
    location: str
    experiments: Sequence[str]
    clauses: Sequence[Clause] = ()
    any: bool = False
    tests: Sequence[str] = ()
    proves: bool = True
    elsewhere: str = ""
    reason: str = ""
    printed: str = "none"
    printed_why: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """Name of the claim, as in sep/c01."""
        return f"{self.paper}/{self.id}"


def files(config_dirs: Sequence[Path] = ()) -> dict[str, Path]:
    """Returns the claims files by name; those of the user replace none of gpbench's."""
    return paths.yaml_files("claims", config_dirs)


def read(name: str, config_dirs: Sequence[Path] = ()) -> list[Claim]:
    """Reads the claims of a file.  Raises ConfigError: an unknown name, or a file that holds no claims."""
    known = files(config_dirs)
    if name not in known:
        raise ConfigError(f"no claims {name!r}; {nearest(name, known)}")
    content = yamls.read(known[name])
    if not isinstance(content, dict) or not content:
        raise ConfigError(f"{known[name]}: claims are a mapping of ids to claims")
    shipped = known[name].is_relative_to(paths.conf_dir())
    return [_claim(name, str(id), value, f"{known[name]}: {id}", shipped) for id, value in content.items()]


def _claim(paper: str, id: str, content: Any, subject: str, shipped: bool) -> Claim:
    content = _CLAIM.check(content, subject)
    if not shipped and not {"test", "proves"}.isdisjoint(content):
        raise ConfigError(f"{subject}: a `test` is one of gpbench's, and proves its claims alone: give `clauses`")
    ways = [key for key in ("clauses", "test", "reason") if content.get(key)]
    if len(ways) != 1 and (ways or not content.get("elsewhere")):
        test = "a `test` that proves it, " * shipped
        raise ConfigError(f"{subject}: a claim has `clauses`, {test}or a `reason` why it has none; or `elsewhere`")
    if "proves" in content and "test" not in content:
        raise ConfigError(f"{subject}: `proves` is of a `test`: name it as tests/FILE.py::NAME")
    tests = tuple(map(str, listed(content.get("test", []))))
    if wrong := [test for test in tests if not _TEST.fullmatch(test)]:
        raise ConfigError(f"{subject}: test {wrong[0]}: name it as tests/FILE.py::NAME")
    return Claim(
        paper=paper,
        id=id,
        experiments=tuple(map(str, listed(content.get("experiments", [])))),
        clauses=tuple(
            read_clause(value, f"{subject}, clause {k}") for k, value in enumerate(content.get("clauses", []), 1)
        ),
        any=bool(content.get("any", False)),
        tests=tests,
        proves=bool(content.get("proves", True)),
        printed=content.get("printed", "none"),
        location=line(content.get("place", "")),
        **{key: line(content.get(key, "")) for key in ("text", "elsewhere", "reason", "printed_why", "note")},
    )
