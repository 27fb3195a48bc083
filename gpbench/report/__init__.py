"""Tables and pictures, made from records and published numbers alone."""
