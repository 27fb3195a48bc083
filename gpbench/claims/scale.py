"""The scale of grades."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Grade:
    """A word of the scale of grades, and how it is drawn.

    Args:
        word: The grade.
        tone: Name of its style on the site: "good", "bad", "open" or "none".
        colour: Its colour in pictures and on badges, under white text.
    """

    word: str
    tone: str
    colour: str


SCALE = (
    Grade("proved", "good", "#1f5137"),
    Grade("supported", "good", "#2c6e49"),
    Grade("undecided", "open", "#8a6d1f"),
    Grade("contradicted", "bad", "#a8471c"),
    Grade("refuted", "bad", "#7c3010"),
    Grade("not run", "none", "#6b7280"),
    Grade("not here", "none", "#6b7280"),
)
"""The scale of grades, in the order in which counts are shown."""
