"""The counts of grades of the papers' claims, in README.md and on the papers' pages in docs/results/.

python scripts/grades.py            # writes them, from results/*/records.parquet
python scripts/grades.py --check    # exit code 1 where they are not current
"""

import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench.api import tables
from gpbench.claims.grades import SCALE
from gpbench.papers import PAPERS

ROOT = Path(__file__).resolve().parents[1]
_WIDTH = 120
_HEAD = "| claims of |"


def counts(paper: str) -> dict[str, int]:
    """The number of claims of a paper with each grade, by the committed records of all papers."""
    rows: Sequence[Mapping[str, Any]] = tables.verify(
        paper, results=sorted(ROOT.glob("results/*/records.parquet"))
    ).data
    return {grade.word: sum(row["verdict"] == grade.word for row in rows) for grade in SCALE}


def words(by_grade: Mapping[str, int]) -> str:
    """The counts in words, as in "7 hold, 8 mostly hold"."""
    return ", ".join(f"{n} {word}" for word, n in by_grade.items() if n)


def with_table(readme: str, by_paper: Mapping[str, Mapping[str, int]]) -> str:
    """The text of README.md with the table of these counts."""
    header = f"{_HEAD} {' | '.join(grade.word for grade in SCALE)} |"
    total = {grade.word: sum(by_grade[grade.word] for by_grade in by_paper.values()) for grade in SCALE}
    rows = {**by_paper, "all": total}
    lines = [f"| {paper} | {' | '.join(str(n or '') for n in row.values())} |" for paper, row in rows.items()]
    table = "\n".join([header, "|---" * (len(SCALE) + 1) + "|", *lines])
    return re.sub(rf"^{re.escape(_HEAD)}(?:.*\n)(?:\|.*\n)*", lambda _: f"{table}\n", readme, flags=re.MULTILINE)


def with_sentence(page: str, by_grade: Mapping[str, int]) -> str:
    """The text of a paper's page with these counts in the sentence that ends in them."""

    def paragraph(match: re.Match[str]) -> str:
        text = re.sub(
            r"grades the claims: [^.]*\.", f"grades the claims: {words(by_grade)}.", " ".join(match[0].split())
        )
        return "\n".join(textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False))

    return re.sub(r"^`gpbench verify \w+`, on (?:.+\n)*.+", paragraph, page, flags=re.MULTILINE)


def main(check: bool) -> int:
    """Writes the files, or returns 1 where one is not current."""
    by_paper = {paper: counts(paper) for paper in PAPERS}
    readme = ROOT / "README.md"
    texts = {readme: with_table(readme.read_text(encoding="utf-8"), by_paper)}
    for paper, by_grade in by_paper.items():
        page = ROOT / "docs" / "results" / f"{paper}.md"
        texts[page] = with_sentence(page.read_text(encoding="utf-8"), by_grade)
    stale = [path for path, text in texts.items() if text != path.read_text(encoding="utf-8")]
    if check:
        return int(bool(stale))
    for path in stale:
        path.write_text(texts[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
