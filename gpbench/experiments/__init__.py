"""The papers' tables and figures: the definition of each, its runs, and which of them are recorded."""
