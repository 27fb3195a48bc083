"""Methods by expectation propagation."""
