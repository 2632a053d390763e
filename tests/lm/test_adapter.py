"""Prompts stay small and stable; replies are read in whatever shape they come."""

from __future__ import annotations

import json
import uuid
from typing import Any, Literal

import dspy
import pytest
from dspy import lm15
from dspy.utils.exceptions import AdapterParseError
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.errors import UnknownName
from lynx_dspy.lm.adapter import (
    KINDS,
    CompactJSONAdapter,
    FencedAdapter,
    adapter_for,
    reply_schema,
    with_shared_first,
)


class Formulate(dspy.Signature):
    """Write one SQL query that answers
    the question."""

    dialect: str = dspy.InputField(desc="SQL dialect")
    question: str = dspy.InputField()
    analysis: str = dspy.OutputField(desc="one sentence")
    code: str = dspy.OutputField(desc="the query")


class Terms(dspy.Signature):
    """List the terms."""

    question: str = dspy.InputField()
    terms: list[str] = dspy.OutputField(desc="at most 5 terms")


class Compare(dspy.Signature):
    """Compare."""

    explanation: str = dspy.InputField()
    consistent: bool = dspy.OutputField()
    mismatch: str = dspy.OutputField(desc="what differs")


class Distill(dspy.Signature):
    """Distil."""

    knowledge: str = dspy.InputField()
    semantic: str = dspy.OutputField()
    structural_part: str = dspy.OutputField()


class Pick(dspy.Signature):
    """Pick."""

    text: str = dspy.InputField()
    kind: Literal["syntax", "schema"] = dspy.OutputField()


FENCED = FencedAdapter()
INPUTS = {"dialect": "sqlite", "question": "How many customers?"}
DEMO = {**INPUTS, "analysis": "Count rows.", "code": "SELECT COUNT(*) FROM customer"}


class Engine:
    """Answers with a fixed text and keeps the requests."""

    supports_response_schema = True
    supported_params = frozenset({"response_format"})

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.requests: list[lm15.Request] = []

    def complete(self, request: lm15.Request) -> lm15.Response:
        self.requests.append(request)
        message = lm15.Message.assistant(self.reply)
        return lm15.Response(None, request.model, message, "stop", lm15.Usage(1, 1))


def ask(
    adapter: dspy.Adapter, signature: Any, reply: str, **inputs: Any
) -> tuple[dspy.Prediction, lm15.Request]:
    engine = Engine(reply)
    with dspy.context(lm=dspy.LM(f"test/{uuid.uuid4()}", engine=engine), adapter=adapter):
        prediction = dspy.Predict(signature)(**inputs)
    return prediction, engine.requests[0]


def test_fenced_prompt_reads_like_the_paper() -> None:
    system, user = FENCED.format(Formulate, [], INPUTS)
    assert system["content"] == (
        "Write one SQL query that answers the question.\n\nYou are given:\nDialect: SQL dialect\n\n"
        "Reply in this form:\nAnalysis: one sentence\n```sql\nthe query\n```"
    )
    assert user["content"] == "Dialect: sqlite\n\nQuestion: How many customers?"


@pytest.mark.parametrize("adapter", [FENCED, CompactJSONAdapter()])
def test_demos_are_turns_in_the_very_form_and_stable_text_comes_first(
    adapter: dspy.Adapter,
) -> None:
    messages = adapter.format(Formulate, [DEMO, {"question": "no outputs"}], INPUTS)
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "user"]
    assert messages[1] == messages[3]
    assert messages[3]["content"].endswith("Question: How many customers?")
    assert adapter.parse(Formulate, messages[2]["content"]) == {
        "analysis": "Count rows.",
        "code": "SELECT COUNT(*) FROM customer",
    }


def test_a_short_demo_is_rendered_byte_for_byte() -> None:
    """Inputs that a demo lacks leave no trace: a demo need not repeat a schema."""
    short = {"question": "How many?", "analysis": "It counts.", "code": "SELECT COUNT(*) FROM t"}
    fenced = FENCED.format(Formulate, [short], INPUTS)
    assert fenced[1:] == [
        {"role": "user", "content": "Question: How many?"},
        {
            "role": "assistant",
            "content": "Analysis: It counts.\n```sql\nSELECT COUNT(*) FROM t\n```",
        },
        {"role": "user", "content": "Dialect: sqlite\n\nQuestion: How many customers?"},
    ]
    as_json = CompactJSONAdapter().format(Formulate, [short], INPUTS)
    assert as_json[1:3] == [
        {"role": "user", "content": "Question: How many?"},
        {
            "role": "assistant",
            "content": '{"analysis": "It counts.", "code": "SELECT COUNT(*) FROM t"}',
        },
    ]


@pytest.mark.parametrize("adapter", [FENCED, CompactJSONAdapter()])
def test_shared_inputs_open_the_first_turn(adapter: Any) -> None:
    """What stays the same while demos change is read once by a model with a prefix cache."""
    moved = with_shared_first(adapter, ("dialect",))
    short = {"question": "How many?", "analysis": "It counts.", "code": "SELECT 1"}
    messages = moved.format(Formulate, [short], INPUTS)
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "user"]
    assert messages[1]["content"] == "Dialect: sqlite\n\nQuestion: How many?"
    assert messages[3]["content"] == "Question: How many customers?"
    assert messages[0] == adapter.format(Formulate, [], INPUTS)[0]
    assert moved.format(Formulate, [], INPUTS) == adapter.format(Formulate, [], INPUTS)
    assert adapter.shared == (), "the adapter that was given is unchanged"


def test_adapters_of_others_keep_their_own_order() -> None:
    chat = dspy.ChatAdapter()
    assert with_shared_first(chat, ("dialect",)) is chat


REPLIES = {
    "as asked": "Analysis: Count rows.\n```sql\nSELECT 1\n```",
    "no label": "Count rows.\n\n```sql\nSELECT 1;\n```",
    "bold label": "**Analysis:** Count rows.\n\n```sql\nSELECT 1\n```\n",
    "code label": "Analysis: Count rows.\nCode:\n```sql\nSELECT 1\n```",
    "no fence": "Analysis: Count rows.\n\nSELECT 1",
    "dspy chat form": "[[ ## analysis ## ]]\nCount rows.\n\n[[ ## code ## ]]\nSELECT 1",
    "json": '{"analysis": "Count rows.", "code": "SELECT 1"}',
    "fenced json": '```json\n{"analysis": "Count rows.", "code": "SELECT 1"}\n```',
    "thinking": "<think>Analysis: no</think>Analysis: Count rows.\n```sql\nSELECT 1\n```",
}


@pytest.mark.parametrize("form", REPLIES)
def test_fenced_replies_are_read(form: str) -> None:
    fields = FENCED.parse(Formulate, REPLIES[form])
    assert fields == {"analysis": "Count rows.", "code": "SELECT 1"}


def test_a_lone_program_is_enough_and_no_program_is_not() -> None:
    assert FENCED.parse(Formulate, "SELECT 1") == {"analysis": "", "code": "SELECT 1"}
    with pytest.raises(AdapterParseError, match="no code"):
        FENCED.parse(Formulate, "Analysis: I do not know.")


@pytest.mark.parametrize(
    ("reply", "terms"),
    [
        ("Terms:\n- churn\n- ARPU", ["churn", "ARPU"]),
        ("1. churn\n2. ARPU", ["churn", "ARPU"]),
        ("Terms: churn, ARPU", ["churn", "ARPU"]),
        ('["churn", "ARPU"]', ["churn", "ARPU"]),
        ('{"terms": ["churn"]}', ["churn"]),
        ("Terms: none", []),
        ("None.", []),
        ("Terms:\n- none", []),
    ],
)
def test_lists(reply: str, terms: list[str]) -> None:
    assert FENCED.parse(Terms, reply) == {"terms": terms}


@pytest.mark.parametrize(
    ("reply", "consistent", "mismatch"),
    [
        ("Consistent: yes\nMismatch:", True, ""),
        ("Consistent: No.\nMismatch: the year is missing", False, "the year is missing"),
        ("- **Consistent**: False\n- **Mismatch**: year", False, "year"),
        ("No\nMismatch: year", False, "year"),
        ('{"consistent": true, "mismatch": ""}', True, ""),
    ],
)
def test_booleans(reply: str, consistent: bool, mismatch: str) -> None:
    assert FENCED.parse(Compare, reply) == {"consistent": consistent, "mismatch": mismatch}


def test_a_verdict_that_is_not_there_is_not_made_up() -> None:
    with pytest.raises(AdapterParseError, match="no consistent"):
        FENCED.parse(Compare, "Consistent: perhaps\nMismatch: year")


def test_choices_and_labels_of_several_words() -> None:
    assert FENCED.parse(Pick, "Kind: `Schema`, because") == {"kind": "schema"}
    with pytest.raises(AdapterParseError):
        FENCED.parse(Pick, "Kind: other")
    fields = FENCED.parse(Distill, "Semantic: a\nb: c\nStructural part:\nt.x\nt.y")
    assert fields == {"semantic": "a\nb: c", "structural_part": "t.x\nt.y"}
    assert FENCED.parse(Distill, "Semantic: a")["structural_part"] == ""


@given(st.text(max_size=200))
def test_a_reply_is_read_or_refused(reply: str) -> None:
    for signature in (Formulate, Terms, Compare, Distill, Pick):
        for adapter in (FENCED, CompactJSONAdapter()):
            try:
                fields = adapter.parse(signature, reply)
            except AdapterParseError:
                continue
            assert list(fields) == list(signature.output_fields)


@given(
    st.text(st.characters(categories=["L", "N", "Zs"]), max_size=40).map(str.strip),
    st.booleans(),
    st.lists(st.from_regex(r"[a-z]{3,8}( [a-z]{2,6})?", fullmatch=True), max_size=4),
)
def test_what_a_demo_shows_is_read_back(text: str, flag: bool, items: list[str]) -> None:
    outputs: tuple[tuple[Any, dict[str, Any]], ...] = (
        (Compare, {"consistent": flag, "mismatch": text}),
        (Terms, {"terms": [i for i in items if i not in ("none", "empty")]}),
    )
    for signature, values in outputs:
        told = FENCED.format_assistant_message_content(signature, values)
        read = FENCED.parse(signature, told)
        assert {k: _squeezed(v) for k, v in read.items()} == {
            k: _squeezed(v) for k, v in values.items()
        }


def _squeezed(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value


def test_json_sends_a_bounded_schema_to_own_engines() -> None:
    reply = '{"analysis": "a", "code": "SELECT 1;"}'
    prediction, request = ask(CompactJSONAdapter(), Formulate, reply, **INPUTS)
    assert prediction.code == "SELECT 1"
    sent = json.dumps(request.config.response_format)
    assert '"maxLength": 4000' in sent and '"additionalProperties": false' in sent
    plain = reply_schema(Compare, bounded=False)
    assert plain["properties"] == {
        "consistent": {"type": "boolean"},
        "mismatch": {"type": "string"},
    }
    assert reply_schema(Pick, True)["properties"]["kind"]["enum"] == ["syntax", "schema"]


def test_json_that_was_cut_off_is_refused() -> None:
    adapter = CompactJSONAdapter()
    with pytest.raises(AdapterParseError, match="cut off"):
        adapter.parse(Formulate, '{"analysis": "a", "code": "SELECT a FROM t WHERE')
    whole = 'Sure: {"analysis": "a", "code": "SELECT \'}\' FROM t"}'
    assert adapter.parse(Formulate, whole)["code"] == "SELECT '}' FROM t"


@pytest.mark.parametrize(("kind", "most"), [("fenced", 170), ("json", 170)])
def test_scaffolding_is_small(kind: str, most: int) -> None:
    messages = KINDS[kind]().format(Formulate, [], INPUTS)
    text = "".join(m["content"] for m in messages)
    said = ["Write one SQL query that answers the question.", *INPUTS.values()]
    assert len(text) - sum(map(len, said)) <= most


def test_the_adapter_follows_what_the_model_can() -> None:
    lm = dspy.LM("test/x", engine=Engine(""))
    assert isinstance(adapter_for(lm), CompactJSONAdapter)
    assert isinstance(adapter_for(dspy.LM("openai/gpt-4o")), FencedAdapter)
    assert type(adapter_for(lm, "chat")) is dspy.ChatAdapter
    with pytest.raises(UnknownName, match="fenced, json, chat"):
        adapter_for(lm, "xml")


@pytest.mark.parametrize("kind", ["fenced", "json", "chat"])
def test_each_kind_serves_a_predictor(kind: str) -> None:
    reply = {
        "fenced": "Analysis: a\n```sql\nSELECT 1\n```",
        "json": '{"analysis": "a", "code": "SELECT 1"}',
        "chat": "[[ ## analysis ## ]]\na\n\n[[ ## code ## ]]\nSELECT 1\n\n[[ ## completed ## ]]",
    }[kind]
    prediction, _ = ask(KINDS[kind](), Formulate, reply, **INPUTS)
    assert (prediction.analysis, prediction.code) == ("a", "SELECT 1")
