"""Sentences of papers as predicates, and verdicts on them from recorded runs (`gpbench verify`).  No JAX.

`definition` reads claims, `selection` selects claims and cells, `numbers` makes numbers of cells, `estimates` has their
intervals and where these lie, `grades` grades clauses, `verdicts` claims, `sentences` and `report` write."""
