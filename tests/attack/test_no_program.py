"""The source of the package: no file that gpbench reads can be a program, outside of the few places that are named."""

import ast
from pathlib import Path

import gpbench

PACKAGE = Path(gpbench.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# what the files with these names may do, and why
ALLOWED = {
    ("targets.py", "import_module"): "the one place where a name of a configuration is imported",
    ("lazy.py", "import_module"): "names of the package's own modules, which its source lists",
    ("cli/verbs.py", "import_module"): "the modules of the verbs, which a table lists",
    ("api/tables.py", "import_module"): "the modules of figures, whose names stand in that room",
    ("estimators/saved.py", "import pickle"): "within a pickle that the user loads, which could do as much itself",
    ("sweep/cluster.py", "import pickle"): "an unpickler that makes no objects",
    ("sweep/child.py", "CDLL"): "prctl, of the C library itself",
    ("core/memory.py", "CDLL"): "malloc_trim, of the same",
    ("data/mapped.py", "CDLL"): "signal, of the same",
    ("sweep/child.py", "import runpy"): "starts gpbench itself in a child of a sweep",
    ("yamls.py", "yaml.load"): "with a loader that makes plain values alone",
}

MODULES = {"pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib", "runpy", "code", "codeop", "imp", "pty"}
CALLS = {
    *("eval", "exec", "compile", "__import__", "import_module", "exec_module", "spec_from_file_location", "run_path"),
    *("load_module", "instantiate", "get_class", "get_method", "get_object", "locate", "_locate", "CDLL"),
    *("read_pickle", "read_hdf", "unsafe_load", "full_load", "load_all", "unsafe_load_all", "full_load_all"),
    *("system", "popen", "getoutput", "literal_eval"),
}


def name_of(node: ast.expr) -> str:
    """The dotted name of a function that is called, as far as it is one."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def findings(source: str) -> list[str]:
    """What in a source could run a program that a file brings."""
    problems = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            problems += [f"import {name}" for name in names if name.partition(".")[0] in MODULES]
            if isinstance(node, ast.ImportFrom) and node.module in ("hydra.utils", "importlib", "ctypes", "os"):
                problems += [alias.name for alias in node.names if alias.name in CALLS]
        if not isinstance(node, ast.Call):
            continue
        name, keywords = name_of(node.func), {keyword.arg: keyword.value for keyword in node.keywords}
        last = name.rpartition(".")[2]
        values = {key: getattr(value, "value", None) for key, value in keywords.items()}
        if last in CALLS and (last != "compile" or name == last):
            problems.append(last)
        if name in ("np.load", "numpy.load", "jnp.load") and values.get("allow_pickle", True) is not False:
            problems.append("np.load without allow_pickle=False")
        if name == "yaml.load":
            problems.append("yaml.load")
        if values.get("allow_pickle") or values.get("shell"):
            problems.append("allow_pickle or shell")
    return problems


def test_the_package_runs_no_program_that_a_file_brings_but_in_the_places_that_are_named():
    made = {(p.relative_to(PACKAGE).as_posix(), f) for p in FILES for f in findings(p.read_text(encoding="utf-8"))}
    assert made == ALLOWED.keys()


def test_the_search_finds():
    for source in (
        "import pickle",
        "from pickle import loads",
        "eval(text)",
        "importlib.import_module(name)",
        "from importlib import import_module",
        "np.load(file)",
        "np.load(file, allow_pickle=True)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.unsafe_load(text)",
        "hydra.utils.instantiate(node)",
        "pandas.read_pickle(path)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
    ):
        assert findings(source), source
