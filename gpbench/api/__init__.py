"""The functions and classes that `import gpbench` offers, beside the command line, which calls the same functions.

Both take the same keys, make the same records under the same ids, and raise the same errors."""
