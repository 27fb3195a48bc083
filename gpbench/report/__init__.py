"""Pictures, drawn with Matplotlib, archives to publish, and a static site, of the tables of `gpbench.analysis`."""
