"""Writers of tables: a sheet as text for a terminal, Markdown, LaTeX, HTML and CSV."""

from gpbench.analysis.writers.html import as_html, grid_html
from gpbench.analysis.writers.latex import as_latex
from gpbench.analysis.writers.markdown import as_markdown
from gpbench.analysis.writers.terminal import as_text
from gpbench.analysis.writers.values import as_csv, rows_as_csv

__all__ = ["as_csv", "as_html", "as_latex", "as_markdown", "as_text", "grid_html", "rows_as_csv"]
