"""Records of runs: what makes two runs the same, the record of a finished one, and the folder or file that has it.
`Record` has a run's fields, `RunPlan` the runs of a configuration with their ids, `Store` a results folder,
`Collection` a Parquet file of records, and the module `frame` makes a pandas DataFrame of them.  Imports neither JAX
nor NumPy nor pandas."""
