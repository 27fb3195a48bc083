"""Methods by variational inference."""
