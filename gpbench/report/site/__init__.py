"""The static site: a page for each paper, experiment, data set, method and cell, from records alone.

`facts` gathers what is shown, `views` turns numbers into what a table's cell shows, `pages` makes the pages and
`folder` puts them in place.  Templates escape whatever they are given; style.css and site.js are all there is beside.
"""

from gpbench.report.site.facts import Facts, Planned
from gpbench.report.site.folder import check, put
from gpbench.report.site.pages import pages

__all__ = ["Facts", "Planned", "check", "pages", "put"]
