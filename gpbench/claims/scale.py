"""The scale of grades."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Grade:
    """A word of the scale of grades, and how it is drawn."""

    word: str  # the grade
    tone: str  # name of its style on the site: "good", "bad", "open" or "none"
    colour: str  # its colour in pictures and on badges, under white text
    meaning: str  # what it says of a clause


SCALE = (
    Grade("proved", "good", "#1f5137", "tests of gpbench prove it"),
    Grade("holds", "good", "#2c6e49", "as many cells as it asks for are shown to lie where it says"),
    Grade(
        "mostly holds",
        "good",
        "#557a2b",
        "four fifths of these lie there, no more are shown to lie elsewhere than it spares and a tenth of these, and"
        " half, or their mean, to lie there",
    ),
    Grade("leans for", "open", "#8a6d1f", "four fifths lie there, but errors are unknown or too large to show it"),
    Grade("mixed", "open", "#8a5a1f", "the cells disagree"),
    Grade("leans against", "open", "#8f5220", "a fifth or fewer lie there, but errors are unknown or too large"),
    Grade(
        "fails",
        "bad",
        "#a8471c",
        "more than half are shown to lie elsewhere, or a fifth or fewer lie there and too many are shown not to",
    ),
    Grade("refuted", "bad", "#7c3010", "tests of gpbench refute it"),
    Grade("not run", "none", "#6b7280", "no runs are recorded"),
    Grade("not here", "none", "#6b7280", "the runs need another machine, or data that need a download"),
)
"""The scale of grades, from best to worst, in the order in which counts are shown."""


def badge_grade(words: Sequence[str]) -> Grade:
    """The grade whose colour a badge of claims has: green only where all that was judged at least mostly holds."""
    judged = [grade for grade in SCALE if grade.word in words and grade.tone != "none"]
    return next((grade for tone in ("bad", "open", "good") for grade in judged if grade.tone == tone), SCALE[-1])
