"""The grades of the papers' claims: their counts in README.md and on the papers' pages in docs/results/, and the list
of all sentences, docs/results/verdicts.csv, with its page.

python scripts/grades.py            # writes them, from results/*/records.parquet
python scripts/grades.py --check    # exit code 1 where they are not current
"""

import csv
import io
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench.api import tables
from gpbench.claims import definition
from gpbench.claims.grades import SCALE
from gpbench.papers import PAPERS

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "docs" / "results" / "verdicts.csv"
_WIDTH = 120
_HEAD = "| claims of |"
_PAGE = """# Verdicts

The sentences of the papers that `gpbench verify` grades, as [it does](../reference/claims.md): the grade that each had
before all were read again, those of two readers, and the one that it has.  The two readers were independent of each
other: each had the paper's sentence and the recorded evidence, and neither the other's grades nor the project's.  A
sentence that says two things has two grades, and each reader's too.  Below each table stands why a grade changed or
differs from a reader's, with the reasons of both readers where they differ.  `scripts/grades.py` makes
this page from the committed records and [a table](verdicts.csv), which has all reasons of both readers.

- **Errors over rows and over splits.**  Where three and more splits are recorded, the standard deviation over splits is
  in the median about as large as the standard error over test rows for error rates of sep, svi and logistic regression,
  2 to 15 times as large for nMSE and bound of svi, ivsgpr, vsgpr and gpr beside svdgp, and 3 to 5 times for qsgp.  So
  errors over rows of one split serve for error rates of `sep` alone.
- **Margins.**  "About as well", "much" and "almost always" have no number in the papers.  The numbers are ours, and a
  grade that changes its side at half or twice of one is mixed.
- **Controls.**  A grade of holds, mostly holds or fails by runs stands only where a control, which is run, comes out on
  the other side of each clause.  The readers did not have this rule.
"""


def verdicts(paper: str) -> dict[str, str]:
    """The grades of the claims of a paper by name, by the committed records of all papers."""
    rows: Sequence[Mapping[str, Any]] = tables.verify(
        paper, results=sorted(ROOT.glob("results/*/records.parquet"))
    ).data
    return {row["claim"]: row["verdict"] for row in rows}


def counts(grades: Mapping[str, str]) -> dict[str, int]:
    """The number of claims with each grade."""
    return {grade.word: sum(word == grade.word for word in grades.values()) for grade in SCALE}


def sentence_of(claim: str, sentences: Sequence[str]) -> str:
    """The name of the sentence of which a claim is a part: itself, or its beginning."""
    return max((name for name in sentences if claim == name or claim.startswith(f"{name}_")), key=len)


def listed(rows: Sequence[Mapping[str, str]], grades: Mapping[str, str]) -> list[dict[str, str]]:
    """The rows of the list with these grades: that of the sentence, and those of its further parts by name."""
    names = [row["claim"] for row in rows]
    parts = [(sentence_of(claim, names), claim.rpartition("/")[2], word) for claim, word in grades.items()]
    words = {
        name: [word if name.endswith(f"/{id}") else f"{id} {word}" for other, id, word in parts if other == name]
        for name in names
    }
    return [{**row, "now": "; ".join(words[row["claim"]])} for row in rows]


def page(rows: Sequence[Mapping[str, str]]) -> str:
    """The page of the list."""
    texts = {claim.name: claim.text for paper in PAPERS for claim in definition.read(paper)}
    lines = [_PAGE]
    for paper in PAPERS:
        own = [row for row in rows if row["claim"].startswith(f"{paper}/")]
        lines += [f"## {paper}\n", "| claim | before | first reader | second reader | now |", "|---|---|---|---|---|"]
        for row in own:
            words = (
                row["claim"].partition("/")[2],
                row["before"],
                row["first reading"],
                row["second reading"],
                row["now"],
            )
            lines.append(f"| {' | '.join(words)} |")
        lines.append("")
        for row in own:
            differs = row["first reading"] != row["second reading"]
            both = f"  First reader: {row['first reason']}  Second reader: {row['second reason']}" if differs else ""
            if row["why"] or differs:
                text = f'- **{row["claim"]}**, "{texts[row["claim"]]}".  {row["why"]}{both}'.replace("|", "\\|")
                lines += textwrap.wrap(
                    text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
                )
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def as_csv(rows: Sequence[Mapping[str, str]]) -> str:
    """The rows as text."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


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
    grades = {paper: verdicts(paper) for paper in PAPERS}
    by_paper = {paper: counts(words) for paper, words in grades.items()}
    readme = ROOT / "README.md"
    texts = {readme: with_table(readme.read_text(encoding="utf-8"), by_paper)}
    with LIST.open(encoding="utf-8", newline="") as file:
        rows = listed(
            [*csv.DictReader(file)], {name: word for words in grades.values() for name, word in words.items()}
        )
    texts |= {LIST: as_csv(rows), LIST.with_suffix(".md"): page(rows)}
    for paper, by_grade in by_paper.items():
        of_paper = ROOT / "docs" / "results" / f"{paper}.md"
        texts[of_paper] = with_sentence(of_paper.read_text(encoding="utf-8"), by_grade)
    stale = [path for path, text in texts.items() if not path.exists() or text != path.read_text(encoding="utf-8")]
    if check:
        return int(bool(stale))
    for path in stale:
        path.write_text(texts[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
