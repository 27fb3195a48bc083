"""Sentences of papers as predicates, and verdicts on them from recorded runs (`gpbench verify`).  No JAX.

`definition` reads claims, `selection` selects claims and cells, `predicates` makes numbers of cells, `estimates` their
p-values, `verdicts` judges, and `report` writes.
"""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "definition": ("Claim", "files", "read"),
        "report": ("as_dict", "evidence", "sheet", "summary"),
        "scale": ("SCALE", "Grade"),
        "selection": ("select_claims",),
        "verdicts": ("Judged", "Verdict", "count", "judge"),
    },
)
