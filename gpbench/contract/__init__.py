"""Checks of the properties that the training loop relies on in a method, a user's own too: `gpbench check`."""
