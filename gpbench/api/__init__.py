"""The functions and classes that `import gpbench` offers; the command line calls the same functions."""
