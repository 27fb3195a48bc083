"""Numbers in README.md and docs/results/ are those of the committed records, at the digits that are printed.

tests/docs/numbers/PAGE.yaml says what the numbers of a page are: `records`, a folder of results/, and entries.

- `says` is text of the page; `are` has a selection for each of its numbers, with commas between them.  `~`, or no
  `are`: not in the records.
- `table` is the beginning of a table's header.  `rows` and `columns` give the words of labels, or of places from 0, and
  several selections, with commas, where cells have several numbers.  What a cell has in brackets is not checked.
- `better: A - B` or `tied: A - B`, with commas between several: what the corrected resampled test must say.
- `of` has words that all selections of the entry share.
- `csv` is a committed file in the place of records; words, with bars between them, select its row and then its column.

A selection has words: a metric, and what tells the runs from others (data set, output, method, protocol, preset, a
word of the setting, `!word` for one that it lacks, `splits=0-4`).  `A - B` is the mean of paired differences.  Over
several cells `mean`, `std`, `min`, `max`, `count` combine; `printed`, `n`, `p`, `t` take another number; `%` and
`minus` rescale.
"""

import csv
import itertools
import re
from functools import cache
from pathlib import Path
from statistics import fmean, pstdev

import pytest
import yaml

from gpbench.analysis.cells import CellRuns, by_split, entry, group_runs
from gpbench.analysis.statistics import largest_ratio, mean_stderr, paired_t_test
from gpbench.metrics import METRICS, better
from gpbench.records.collection import open_store

ROOT = Path(__file__).resolve().parents[2]
SHEETS = sorted(Path(__file__).with_name("numbers").glob("*.yaml"))
NUMBER = re.compile(r"(?<![\w.-])([-+]?\d[\d,]*(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?(?:e-\d+)?))?")
OVER = {"mean": fmean, "std": pstdev, "min": min, "max": max, "count": len}
SPECIAL = {*OVER, "printed", "n", "p", "t", "%", "minus"}


@cache
def cells(folder: str) -> list[CellRuns]:
    return group_runs(open_store(ROOT / "results" / folder / "records.parquet").all())


def names(cell: CellRuns) -> set[str]:
    first = cell.records[0]
    fixed = {cell.dataset, cell.output, cell.method, f"method={cell.method}", cell.preset}
    return {*fixed, first.protocol, first.precision, *cell.setting.split(", ")}


def select(folder: str, words: list[str]) -> tuple[list[CellRuns], str, set[int] | None]:
    """The cells that have all these words, the metric, and the splits (None: all)."""
    (metric,) = [word for word in words if word in METRICS or word in ("seconds", "objective")]
    splits, wanted, refused = None, set(), set()
    for word in words:
        if word.startswith("splits="):
            low, high = word.removeprefix("splits=").split("-")
            splits = {*range(int(low), int(high) + 1)}
        elif word.startswith("!"):
            refused.add(word[1:])
        elif word != metric and word not in SPECIAL:
            wanted.add(word)
    found = [cell for cell in cells(folder) if wanted <= names(cell) and not refused & names(cell)]
    assert found, f"no cell of {folder} has {words}"
    return found, metric, splits


def values(cell: CellRuns, metric: str, splits: set[int] | None) -> dict[int, float]:
    return {split: value for split, value in by_split(cell, metric).items() if splits is None or split in splits}


def difference(folder: str, a: list[str], b: list[str]):
    """The paired differences A - B, the test of their mean, and the direction that is better."""
    sides = []
    for words in (a, b):
        (cell,), metric, splits = select(folder, words)
        sides.append((cell, values(cell, metric, splits)))
    (x, of_x), (y, of_y) = sides
    differences = [of_x[split] - of_y[split] for split in sorted(of_x.keys() & of_y.keys())]
    return differences, paired_t_test(differences, largest_ratio([x.ratio, y.ratio])), better(metric, x.records)


def sides(selection: str, common: str) -> list[list[str]]:
    return [[*common.split(), *side.split()] for side in selection.split(" - ")]


def number(folder: str, selection: str, common: str = "") -> tuple[float, float | None]:
    """The number that a selection stands for, and its standard error."""
    first, *second = sides(selection, common)
    scale = (100 if "%" in first else 1) * (-1 if "minus" in first else 1)
    if second:
        differences, test, _ = difference(folder, first, second[0])
        if "p" in first or "t" in first:
            return (test.p if "p" in first else abs(test.mean / test.stderr)), None
        mean, stderr = mean_stderr(differences)
    else:
        found, metric, splits = select(folder, first)
        if over := next((OVER[word] for word in first if word in OVER), None):
            if "printed" in first:
                return scale * over([known.value for cell in found if (known := entry(cell, metric).published)]), None
            return scale * over([fmean(values(cell, metric, splits).values()) for cell in found]), None
        assert len(found) == 1, f"{first}: {[(c.dataset, c.output, c.method, c.label) for c in found]}"
        if "printed" in first:
            published = entry(found[0], metric).published
            return scale * published.value, published.err
        of_splits = values(found[0], metric, splits)
        if "n" in first:
            return len(of_splits), None
        mean, stderr = mean_stderr([*of_splits.values()])
    return scale * mean, None if stderr is None else abs(scale) * stderr


def from_csv(file: str, selection: str, common: str) -> tuple[float, None]:
    """The number in the column that the last word names, of the row that has the other words, split at ` | `."""
    *wanted, column = [word for text in (common, selection) for word in text.split(" | ") if word]
    with (ROOT / "results" / file).open(encoding="utf-8") as lines:
        (row,) = [row for row in csv.DictReader(lines) if {*wanted} <= {*row.values()}]
    error = row.get(f"{column} se") or row.get("se" if column == "ratio" else "")
    return float(row[column]), float(error) if error else None


def agree(text: str, value: float) -> bool:
    """Whether a number rounds to the digits of this text."""
    digits = len(text.partition(".")[2]) if "e" not in text else len(text.split("e")[0].partition(".")[2])
    power = -int(text.split("e")[1]) if "e" in text else 0
    return abs(float(text.replace(",", "")) - value) <= 0.5000001 * 10.0 ** -(digits + power) + 1e-12


def wrong(text: str, made: tuple[float, float | None]) -> list[str]:
    """What does not agree in a printed `mean ± error`."""
    mean, stderr = NUMBER.search(text).groups()
    pairs = [(mean, made[0]), *([(stderr, made[1])] if stderr else [])]
    return [f"{text}: is {made}" for printed, value in pairs if value is None or not agree(printed, value)]


def listed(selections: str) -> list[str]:
    return selections.split(", ")


def page_of(sheet: Path) -> Path:
    return ROOT / "README.md" if sheet.stem == "README" else ROOT / "docs" / "results" / f"{sheet.stem}.md"


def table_rows(page: str, header: str) -> tuple[list[str], dict[str, list[str]]]:
    """The labels of the columns of the table whose header begins so, and its rows by their first cell."""
    lines = iter(page.splitlines())
    head = _cells(next(line for line in lines if line.startswith(header)))
    rows = {}
    for line in itertools.takewhile(lambda line: line.startswith("|"), lines):
        first, *others = _cells(line)
        rows[first] = others
    return head[1:], rows


def _cells(line: str) -> list[str]:
    return [cell.strip(" *") for cell in line.strip()[1:-1].split("|")]


def checks(sheet: Path) -> list[tuple[str, object]]:
    """Every number of a page that is checked: its text, and a function that makes it or tells what is wrong."""
    page, content = page_of(sheet).read_text(encoding="utf-8"), yaml.safe_load(sheet.read_text(encoding="utf-8"))
    flat, found = " ".join(page.split()), []
    for item in content["entries"]:
        folder, common = item.get("records", content["records"]), item.get("of", "")
        if "says" in item:
            says = " ".join(item["says"].split())
            assert says in flat, f"{page_of(sheet).name} does not say: {says}"
            texts = [match[0] for match in NUMBER.finditer(says)]
            are = listed(item["are"]) if "are" in item else ["~"] * len(texts)
            assert len(texts) == len(are), f"{says}: {len(texts)} numbers, {len(are)} selections"
            found += [(folder, item, text, one, common) for text, one in zip(texts, are) if one != "~"]
        if "table" in item:
            head, rows = table_rows(page, item["table"])
            for row, words in item["rows"].items():
                for column, more in item["columns"].items():
                    at = column if isinstance(column, int) else head.index(column)
                    texts = [match[0] for match in NUMBER.finditer(rows[row][at].split(" [")[0])]
                    parts = listed(more)
                    if texts:  # a cell may be empty
                        assert len(texts) == len(parts), f"{row} {column}: {texts}"
                    shared = words if "csv" in item else f"{common} {words}"
                    found += [(folder, item, text, part, shared) for text, part in zip(texts, parts)]
    return found


def unlisted(sheet: Path) -> list[str]:
    """The numbers with a decimal point on a page that no entry of its sheet has; those of code and links left out."""
    text = page_of(sheet).read_text(encoding="utf-8")
    entries = yaml.safe_load(sheet.read_text(encoding="utf-8"))["entries"]
    for item in entries:
        if "table" in item:
            before, header, after = text.partition(f"\n{item['table']}")
            table, _, rest = after.partition("\n\n")
            table = "\n".join(line for line in table.splitlines() if _cells(line)[0] not in item["rows"])
            text = f"{before}{header}{table}\n\n{rest}"
    flat = " ".join(text.split())
    for item in entries:
        flat = flat.replace(" ".join(item.get("says", "``").split()), "``")
    return re.findall(r"(?<![\w.])\d[\d,]*\.\d+(?![.\d])", re.sub(r"`[^`]*`|\]\([^)]*\)", "", flat))


def test_every_number_with_decimals_is_in_the_sheet_of_its_page():
    assert not {sheet.stem: found for sheet in SHEETS if (found := unlisted(sheet))}
    assert sum(len(checks(sheet)) for sheet in SHEETS) >= 250


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.stem)
def test_numbers_of_a_page_are_those_of_the_records(sheet):
    problems = []
    for folder, item, text, selection, common in checks(sheet):
        made = from_csv(item["csv"], selection, common) if "csv" in item else number(folder, selection, common)
        problems += [f"{problem} ({common} {selection})" for problem in wrong(text, made)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.stem)
def test_what_a_page_calls_better_is_significantly_better(sheet):
    content = yaml.safe_load(sheet.read_text(encoding="utf-8"))
    for item in content["entries"]:
        for word in {"better", "tied"} & item.keys():
            for selection in listed(item[word]):
                a, b = sides(selection, item.get("of", ""))
                _, test, direction = difference(item.get("records", content["records"]), a, b)
                assert test.p is not None, f"{selection}: no test is possible"
                ahead = bool(test.significant) and (test.mean < 0) == (direction == "lower")
                assert ahead if word == "better" else not test.significant, f"{sheet.stem}: {selection}: {test}"
