"""The static site: a page for each paper, experiment, data set, method and cell, from records alone.

`facts` holds the input, `views` formats entries for tables, `pages` renders the templates, which escape all text, and
`folder` writes the files.
"""

from gpbench.report.site.facts import Facts, PlannedExperiment
from gpbench.report.site.folder import check_folder, write_site
from gpbench.report.site.pages import render_pages

__all__ = ["Facts", "PlannedExperiment", "check_folder", "render_pages", "write_site"]
