"""Find the Python program in a model's reply, whatever the model has put round it.

The last fence whose text Python can parse, else the last fence, else the plain text without the
prose before and after it. Reasoning spans are dropped first, as for queries.
"""

from __future__ import annotations

import ast
import re
import textwrap

from lynx_dspy.lm.extract import Extraction, How, without_reasoning

_FENCED = re.compile(
    r"^[ \t]*(?:`{3,}|~{3,})[ \t]*(\w*)[^\n]*\n(.*?)(?:^[ \t]*(?:`{3,}|~{3,})|\Z)", re.M | re.S
)
_CLOSED = re.compile(r"^[ \t]*(?:`{3,}|~{3,})\s*\Z", re.M)
_LANGUAGES = frozenset({"", "python", "py", "python3", "pandas"})
_BEGINS = re.compile(
    r"(?:import|from|def|class|for|if|with|result|print)\b|[A-Za-z_]\w*\s*(?:=|\.|\[)"
)
_MOST_LINES = 400
_LONGEST = 40_000


def extract_python(reply: str, finish_reason: str = "") -> Extraction:
    """The program in `reply`; never raises.

    >>> extract_python("Sure:\\n```python\\nresult = 1\\n```\\nIt is one.").code
    'result = 1'
    >>> extract_python("The count is needed.\\nresult = len(orders)\\nThat is all.").code
    'result = len(orders)'
    """
    text = without_reasoning(reply)
    code, how = _from_fences(text)
    if not code:
        code, how = _from_text(text)
    whole = bool(code) and parses(code) and finish_reason != "length"
    return Extraction(code, whole, how)


def parses(code: str) -> bool:
    """Whether Python reads `code`. Very long code is not judged: True."""
    if len(code) > _LONGEST:
        return True
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _from_fences(text: str) -> tuple[str, How]:
    found = [
        (_plain(match[2]), match.end() < len(text) or bool(_CLOSED.search(match[0])))
        for match in _FENCED.finditer(text)
        if match[1].casefold() in _LANGUAGES and match[2].strip()
    ]
    good = [pair for pair in found if parses(pair[0])]
    if not found:
        return "", "none"
    code, closed = (good or found)[-1]
    return code, "fence" if closed else "open fence"


def _from_text(text: str) -> tuple[str, How]:
    """The longest run of lines that parses, from the first line that looks like code."""
    lines = _plain(text).splitlines()[:_MOST_LINES]
    first = next((n for n, line in enumerate(lines) if _BEGINS.match(line.strip())), None)
    if first is None:
        return "", "none"
    for last in range(len(lines), first, -1):
        code = "\n".join(lines[first:last]).strip()
        if code and parses(code):
            return code, "text"
    return "\n".join(lines[first:]).strip(), "text"


def _plain(text: str) -> str:
    return textwrap.dedent(text).strip("\n").rstrip()
