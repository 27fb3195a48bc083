"""What papers assert, sentence by sentence, and whether recorded runs support it (`gpbench verify`).  No JAX."""
