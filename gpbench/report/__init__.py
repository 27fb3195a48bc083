"""Tables, rankings, comparisons and figures of recorded runs, beside the published numbers.  Nothing is trained.

`cells` groups records and averages them; `tables`, `experiment`, `differences` and `ranks` build sheets, which
`formats` writes as text; `figures` draws with Matplotlib, and `site` makes web pages.
"""

from gpbench.report.cells import CellRuns, Entry, entries, group_runs
from gpbench.report.statistics import TTest, mean_stderr, paired_t_test

__all__ = ["CellRuns", "Entry", "TTest", "entries", "group_runs", "mean_stderr", "paired_t_test"]
