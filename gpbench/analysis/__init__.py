"""Numbers from records: means, differences, ranks, tests, marks and tables.  Nothing is trained, and no page is made.

`cells` groups records and averages them; `tables`, `experiment`, `differences` and `rankings` build sheets, which
`formats` writes as text."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "cells": ("CellRuns", "Entry", "entries", "group_runs"),
        "differences": ("Difference", "paired_differences"),
        "formats": ("FORMATS", "format_of", "plain"),
        "power": ("smallest_difference", "splits_needed"),
        "rankings": ("SetRanking", "ranking"),
        "ranks": ("Ranking", "rank_table"),
        "comparison": ("Comparison",),
        "reproduction": ("Reproduction", "load_reproductions", "outcome", "outcomes", "reproductions", "total"),
        "sheets": ("Grid", "Sheet", "Text"),
        "sides": ("Side", "parse_sides"),
        "statistics": ("LEVEL", "TTest", "common_splits", "mean_stderr", "nemenyi_quantile", "paired_t_test"),
    },
)
