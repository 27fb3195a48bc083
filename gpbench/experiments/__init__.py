"""The papers' tables and figures: what each is made of, and what is recorded of it."""
