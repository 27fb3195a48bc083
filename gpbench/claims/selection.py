"""Which claims a name means: those of a paper, of an experiment, or one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpbench.claims import definition
from gpbench.claims.definition import Claim
from gpbench.errors import ConfigError, nearest


@dataclass(frozen=True)
class Selection:
    """All claims of a file, over which verdicts are corrected, and the ids of those that were asked for."""

    claims: Sequence[Claim]
    ids: frozenset[str]

    def has(self, claim: Claim) -> bool:
        """Whether this claim was asked for."""
        return claim.id in self.ids


def select(name: str, config_dirs: Sequence[Path] = ()) -> list[Selection]:
    """The claims that "all", a paper, an experiment or a claim's name means.  Raises ConfigError for any other."""
    papers = definition.files(config_dirs)
    if not papers:
        raise ConfigError("there are no claims: put claims/NAME.yaml into a folder of --config-dir")
    wanted = list(papers) if name == "all" else [name.partition("/")[0]]
    if unknown := [paper for paper in wanted if paper not in papers]:
        raise ConfigError(f"no claims {unknown[0]!r}; {nearest(unknown[0], papers)}")
    selections = []
    for paper in wanted:
        claims = definition.read(paper, config_dirs)
        ids = {claim.id for claim in claims if name in ("all", paper, claim.name) or name in claim.experiments}
        selections.append(Selection(claims, frozenset(ids)))
    if not any(selection.ids for selection in selections):
        known = [claim.name for selection in selections for claim in selection.claims]
        known += [id for selection in selections for claim in selection.claims for id in claim.experiments]
        raise ConfigError(f"no claim and no experiment with claims {name!r}; {nearest(name, known)}")
    return selections
