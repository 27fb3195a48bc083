"""What the training loop counts on in a method, as checks to which a user's own method can be put: `gpbench check`."""
