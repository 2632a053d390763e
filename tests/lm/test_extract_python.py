"""Which program is read out of a reply, in the language of its field."""

from __future__ import annotations

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.lm.adapter import CompactJSONAdapter, FencedAdapter
from lynx_dspy.lm.extract_python import extract_python
from lynx_dspy.lm.languages import language_of, program_in
from lynx_dspy.signatures import FormulateProgram
from lynx_dspy.signatures.python import FormulatePython, RepairPython

CODE = "from math import pi\nresult = pi"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (f"```python\n{CODE}\n```", CODE),
        (f"Sure.\n```py\n{CODE}\n```\nDone.", CODE),
        (f"```\n{CODE}\n```", CODE),
        (f"```python\n{CODE}", CODE),
        (f"<think>```python\nx = 1\n```</think>\n```python\n{CODE}\n```", CODE),
        (f"```python\nx =\n```\nNo:\n```python\n{CODE}\n```", CODE),
        (f"```python\n{CODE}\n```\n```json\n{{}}\n```", CODE),
        (f"```python\n{CODE}\n```\n```python\nbroken(\n```", CODE),
        ("  ```python\n  x = 1\n  result = x\n  ```", "x = 1\nresult = x"),
        (f"The answer:\n{CODE}", CODE),
        (f"{CODE}\nThis gives pi.", CODE),
        ("def f(x):\n    return x\nresult = f(1)", "def f(x):\n    return x\nresult = f(1)"),
        ("I cannot do that.", ""),
        ("", ""),
    ],
)
def test_the_program_is_found(reply: str, code: str) -> None:
    assert extract_python(reply).code == code


def test_a_reply_that_was_cut_is_not_complete() -> None:
    assert not extract_python("```python\nresult = (1 +").complete
    assert not extract_python(f"```python\n{CODE}\n```", "length").complete
    assert extract_python(f"```python\n{CODE}\n```").complete


@given(st.text(max_size=200))
def test_any_reply_is_read(reply: str) -> None:
    extract_python(reply)


@pytest.mark.parametrize("signature", [FormulatePython, RepairPython])
def test_the_mark_survives_what_dspy_does_to_a_signature(signature: type[dspy.Signature]) -> None:
    changed = signature.delete("analysis").with_instructions("Write it.")
    predictor = dspy.Predict(changed)
    predictor.load_state(predictor.dump_state())
    for one in (signature, changed, predictor.deepcopy().signature):
        assert language_of(one.output_fields["code"]) == "python"
    assert language_of(FormulateProgram.output_fields["code"]) == "sql"


def test_a_python_program_is_no_query() -> None:
    field = FormulatePython.output_fields["code"]
    assert program_in(CODE, field) == CODE
    assert program_in("SELECT 1", FormulateProgram.output_fields["code"]) == "SELECT 1"


def test_both_adapters_read_python() -> None:
    fenced = FencedAdapter().parse(FormulatePython, f"Analysis: it is pi\n```python\n{CODE}\n```")
    assert fenced == {"analysis": "it is pi", "code": CODE}
    json = CompactJSONAdapter().parse(FormulatePython, '{"analysis": "a", "code": "result = 1"}')
    assert json["code"] == "result = 1"
