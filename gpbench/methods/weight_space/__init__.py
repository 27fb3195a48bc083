"""Methods whose posterior is of the weights of basis functions."""
