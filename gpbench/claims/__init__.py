"""Sentences of papers as predicates, and verdicts on them from recorded runs (`gpbench verify`).  No JAX.

`definition` reads claims, `selection` selects claims and cells, `predicates` makes numbers of cells, `estimates` their
intervals, `regions` says where these lie, `grades` grades clauses, `verdicts` claims, `sentences` and `report` write.
"""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "definition": ("Claim", "files", "read"),
        "grades": ("Judged",),
        "report": ("as_dict", "evidence", "sheet", "summary"),
        "scale": ("SCALE", "Grade"),
        "selection": ("select_claims",),
        "verdicts": ("Verdict", "count", "judge"),
    },
)
