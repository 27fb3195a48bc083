"""Pictures, drawn with Matplotlib, and a static site, of the tables of `gpbench.analysis` and of verdicts."""
