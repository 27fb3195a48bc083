"""Many runs: jobs, where they run, and what becomes of them."""
