"""Sentences of papers as predicates, and verdicts on them from recorded runs (`gpbench verify`).  No JAX.

`definition` reads claims, `selection` selects claims and cells, `predicates` makes numbers of cells, `estimates` their
p-values, `verdicts` judges, and `report` writes.
"""
