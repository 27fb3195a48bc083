"""Numbers from records: means, differences, ranks, tests, marks and tables.  Nothing is trained, and no page is made.

`cells` groups records and averages them; `tables`, `experiment`, `differences` and `rankings` build sheets, which
`formats` writes as text and `printing` shows on a terminal.
"""

from gpbench.analysis.cells import CellRuns, Entry, entries, group_runs
from gpbench.analysis.statistics import TTest, mean_stderr, paired_t_test

__all__ = ["CellRuns", "Entry", "TTest", "entries", "group_runs", "mean_stderr", "paired_t_test"]
