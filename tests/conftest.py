"""Shared parts of the tests: a scripted language model and a small database."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import settings

import lynx_dspy as lynx
from lynx_dspy.engines.base import Database

# Examples are not timed: a busy machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

Reply = dict[str, Any] | str | Exception | dspy.lm15.Response


class ScriptedEngine:
    """Answers each stage from its own list of replies; the last one repeats.

    `prompts[stage]` holds the text of every call in order. A reply is the stage's outputs (sent as
    JSON), raw text, a whole response, or an exception to raise.
    """

    supported_params = frozenset({"response_format"})
    supports_response_schema = True

    def __init__(self, replies: dict[str, list[Reply]]) -> None:
        self.replies = replies
        self.prompts: dict[str, list[str]] = defaultdict(list)

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        stage = dspy.settings.caller_modules[-1].stage_name
        text = "\n".join([str(request.system), *(m.text or "" for m in request.messages)])
        self.prompts[stage].append(text)
        script = self.replies.get(stage)
        if not script:
            raise AssertionError(f"the script has no reply for {stage}")
        reply = script[min(len(self.prompts[stage]), len(script)) - 1]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, dspy.lm15.Response):
            return reply
        content = reply if isinstance(reply, str) else json.dumps(reply)
        return dspy.lm15.Response(
            id=None,
            model="scripted",
            message=dspy.lm15.Message.assistant(content),
            finish_reason="stop",
            usage=dspy.lm15.Usage(input_tokens=10, output_tokens=5, total_tokens=15),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptedEngine:
        return self


@pytest.fixture
def scripted() -> Callable[[dict[str, list[Reply]]], tuple[dspy.LM, ScriptedEngine]]:
    """A factory: replies by stage -> (language model, its engine)."""

    def make(replies: dict[str, list[Reply]]) -> tuple[dspy.LM, ScriptedEngine]:
        engine = ScriptedEngine(replies)
        return dspy.LM("test/scripted", engine=engine, cache=False, num_retries=0), engine

    return make


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Database]:
    """Customers and their orders, as SQLite."""
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
            CREATE TABLE orders (
                id INTEGER PRIMARY KEY,
                customer_id INTEGER REFERENCES customers (id),
                total_cents INTEGER,
                placed_on TEXT
            );
            INSERT INTO customers VALUES (1, 'Ada', 'Oslo'), (2, 'Bo', 'Bergen'), (3, 'Cy', 'Oslo');
            INSERT INTO orders VALUES
                (1, 1, 500, '2024-01-05'), (2, 1, 700, '2024-02-05'), (3, 2, 900, '2024-02-07');
            """
        )
    connection.close()
    with lynx.connect(path) as database:
        yield database
