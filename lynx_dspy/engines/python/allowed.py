"""What an analytical program may import and call by name.

This list keeps well-meant programs on their path and gives a model a clear word; it is no wall by
itself. The walls are the process's own limits (`confine.py`).
"""

from __future__ import annotations

MODULES = frozenset({
    "bisect", "calendar", "collections", "copy", "dataclasses", "datetime", "decimal", "enum",
    "fractions", "functools", "heapq", "itertools", "json", "lynx_dspy.finance", "math", "numpy",
    "numpy.fft", "numpy.lib.stride_tricks", "numpy.linalg", "numpy.random", "numpy.typing",
    "operator", "pandas", "pandas.api.types", "pandas.tseries.offsets", "random", "re",
    "statistics", "string", "textwrap", "time", "typing", "zoneinfo", "__future__",
    "collections.abc", "warnings",
})  # fmt: skip
"""Modules that may be imported, by full name; a parent of one is no leave to its other parts."""

_BELOW = ("lynx_dspy.finance",)


def is_module_allowed(name: str) -> bool:
    """Whether a program may import the module.

    >>> [is_module_allowed(name) for name in ("pandas", "pandas.io.common", "os")]
    [True, False, False]
    """
    return name in MODULES or any(name.startswith(f"{top}.") for top in _BELOW)


PARTS = frozenset({
    "numpy": ("fft", "lib", "linalg", "random", "typing", "ma", "char", "strings", "exceptions"),
    "pandas": ("api", "tseries", "errors", "arrays", "offsets"),
}.items())  # fmt: skip
"""Submodules that may be reached as attributes."""

HIDDEN_PARTS = frozenset({
    "builtins", "compat", "core", "ctypeslib", "f2py", "importlib", "io", "os", "subprocess", "sys",
    "testing", "util",
})  # fmt: skip
"""Attributes of modules that lead out of them."""

BUILTINS_DENIED = frozenset({
    "__import__", "breakpoint", "compile", "copyright", "credits", "delattr", "eval", "exec",
    "exit", "globals", "help", "input", "license", "locals", "memoryview", "open", "quit",
    "setattr", "vars",
})  # fmt: skip

BY_LITERAL = frozenset({"getattr", "hasattr"})
"""Builtins that name an attribute: with a literal name only."""

READERS = frozenset({
    "DataSource", "ExcelFile", "ExcelWriter", "HDFStore", "fromfile", "fromregex", "genfromtxt",
    "load", "load_library", "loadtxt", "memmap", "open_memmap",
})  # fmt: skip

WRITERS = frozenset({
    "dump", "save", "savetxt", "savez", "savez_compressed", "to_clipboard", "to_csv", "to_excel",
    "to_feather", "to_gbq", "to_hdf", "to_html", "to_iceberg", "to_latex", "to_orc", "to_parquet",
    "to_pickle", "to_sql", "to_stata", "to_xml", "tofile",
})  # fmt: skip

INSIDES = frozenset({
    "ag_code", "ag_frame", "co_code", "cr_code", "cr_frame", "f_back", "f_builtins", "f_code",
    "f_globals", "f_locals", "func_globals", "gi_code", "gi_frame", "mro", "tb_frame", "tb_next",
})  # fmt: skip
"""Attributes that lead from a value to the interpreter."""

PRIVATE_ALLOWED = frozenset({"_asdict", "_fields", "_make", "_replace"})
"""Names with an underscore that belong to what is public of named tuples."""

NAMES_ALLOWED = frozenset({"__name__"})
