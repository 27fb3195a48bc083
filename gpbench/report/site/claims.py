"""Verdicts on the papers' claims, as the site shows them: a page and a badge for each paper."""

import math
from collections.abc import Mapping, Sequence
from html import escape

from markupsafe import Markup

from gpbench.claims import report
from gpbench.claims.definition import Claim
from gpbench.claims.verdicts import Judged, Verdict, judge
from gpbench.records.record import Record
from gpbench.report.site.facts import PlannedExperiment

_WIDTH, _NAMES, _LINE, _MOST = 460, 190, 15, 30
"""Pixels of a plot, of its names and of a line; and the most lines."""


BADGES = {"supported": "whole", "contradicted": "diverged", "undecided": "partial", "not run": "none"}
"""The kind of badge of each verdict."""


def verdicts(claims: Sequence[Claim], planned: Sequence[PlannedExperiment], records: Sequence[Record]) -> list[Verdict]:
    """The verdicts on the claims of one file; none where no recorded run is of their experiments.

    Raises ConfigError as `judge` does.
    """
    cells = {(of.experiment.id, of.preset): of.cells for of in planned}
    recorded = {id for (id, _), of in cells.items() if any(cell.records for cell in of)}
    of_any_runs = any(claim.clauses and not claim.experiments for claim in claims)
    if not of_any_runs and recorded.isdisjoint(id for claim in claims for id in claim.experiments):
        return []
    return judge(claims, records, lambda id, preset: cells.get((id, preset), ()))


def plot(judged: Judged) -> Markup:
    """Intervals of the numbers of a clause beside its region, as SVG whose colours are the page's."""
    drawn = [(n.name, n.estimate) for n in judged.numbers if n.estimate][:_MOST]
    ends = [end for end in judged.clause.region if not math.isinf(end)]
    points = [x for _, e in drawn for x in (e.value, *e.interval) if not math.isinf(x)] + ends
    low, high = min(points), max(points)
    margin = 0.05 * (high - low or abs(high) or 1.0)
    low, high = low - margin, high + margin

    def at(x: float) -> float:
        return _NAMES + (_WIDTH - _NAMES) * (min(max(x, low), high) - low) / (high - low)

    left, right = at(judged.clause.region.low), at(judged.clause.region.high)
    height = _LINE * (len(drawn) + 1)
    parts = [f'<rect class="region" x="{left:.1f}" y="0" width="{right - left:.1f}" height="{height - _LINE}"/>']
    for k, (name, estimate) in enumerate(drawn):
        y, (a, b) = _LINE * (k + 0.5), estimate.interval
        inside = judged.clause.region.low <= estimate.value <= judged.clause.region.high
        parts += [
            f'<text x="{_NAMES - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(name or "all")}</text>',
            f'<line x1="{at(a):.1f}" x2="{at(b):.1f}" y1="{y}" y2="{y}"/>',
            f'<circle class="{"inside" if inside else "outside"}" cx="{at(estimate.value):.1f}" cy="{y}" r="3"/>',
        ]
    unlog = math.exp if judged.clause.kind == "ratio" else float
    for end in ends:
        parts.append(f'<text x="{at(end):.1f}" y="{height - 3}" text-anchor="middle">{unlog(end):.3g}</text>')
    words = escape(report.describe(judged.clause))
    return Markup(
        f'<svg class="claim" viewBox="0 0 {_WIDTH + 20} {height}" width="{_WIDTH + 20}" height="{height}" role="img"'
        f' aria-label="{words}">{"".join(parts)}</svg>'
    )


def links(judged: Judged, page_of: Mapping[str, str]) -> list[tuple[str, str]]:
    """Names and pages of the cells that the numbers come from, each once."""
    cells = {
        page_of[cell.records[0].id]: f"{cell.method} {cell.label} on {cell.dataset} {cell.output}".rstrip()
        for number in judged.numbers
        for cell in number.cells
        if cell.records[0].id in page_of
    }
    return [(name, page) for page, name in cells.items()]


def badge(paper: str, judged: Sequence[Verdict]) -> bytes:
    """A paper's verdicts in numbers, to be shown elsewhere."""
    left, right = f"{paper} claims", report.summary(judged)
    a, b = (int(6.2 * len(text)) + 14 for text in (left, right))
    contradicted = any(verdict.verdict == "contradicted" for verdict in judged)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{a + b}" height="20" role="img" aria-label="{escape(left)}:'
        f' {escape(right)}"><rect width="{a}" height="20" fill="#444"/><rect x="{a}" width="{b}" height="20"'
        f' fill="{"#a8471c" if contradicted else "#2c6e49"}"/><g fill="#fff" text-anchor="middle"'
        f' font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="{a / 2}" y="14">{escape(left)}</text>'
        f'<text x="{a + b / 2}" y="14">{escape(right)}</text></g></svg>\n'
    ).encode()
