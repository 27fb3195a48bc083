"""Numbers from records: means, differences, ranks, tests, marks and tables.  Nothing is trained, and no page is made.

`cells` groups records and averages them; `tables`, `experiment`, `differences` and `rankings` build sheets, which
`formats` writes as text."""
