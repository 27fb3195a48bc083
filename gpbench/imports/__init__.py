"""Results of other programs: a table of predictions is read, checked, scored by our metrics, and recorded."""
