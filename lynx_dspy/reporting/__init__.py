"""The paper's tables and figures from finished runs.

`open_runs` reads run folders; `make_table` and `render`, `make_chart` and `plots.image` turn them
into text and pictures. `plots` is imported where a picture is made: it alone needs matplotlib.
"""

from lynx_dspy.reporting.figures import FIGURES, make_chart
from lynx_dspy.reporting.render import FORMATS, render
from lynx_dspy.reporting.runs import FinishedRun, open_runs
from lynx_dspy.reporting.tables import TABLES, make_table

__all__ = [
    "FIGURES",
    "FORMATS",
    "TABLES",
    "FinishedRun",
    "make_chart",
    "make_table",
    "open_runs",
    "render",
]
