"""The package of the mathematics starts without JAX."""

import subprocess
import sys


def test_core_and_its_memory_are_imported_without_jax():
    code = "import sys, gpbench.core.memory; sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
