"""The Python interface: the functions and classes that `import gpbench` offers, beside the command line.

Both faces take the same keys, make the same records under the same ids, and raise the same errors.
"""
