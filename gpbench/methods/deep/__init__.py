"""Deep Gaussian processes."""
