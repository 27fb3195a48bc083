"""Tables, rankings, comparisons and figures of recorded runs, beside the published numbers.  Nothing is trained.

`cells` groups records and averages them; `tables`, `experiment`, `differences` and `ranks` build sheets, which
`formats` writes as text; `figures` draws with Matplotlib, and `site` makes web pages.
"""
