"""A chat service over real HTTP, and four questions of one's own to ask it."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PROGRAM = "SELECT COUNT(*) FROM customers"


@dataclass
class Service:
    """A chat service of OpenAI's form; `failures` are statuses to give first."""

    url: str = ""
    failures: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    asked: list[bytes] = field(default_factory=list)
    delay: float = 0.0

    def reply(self, body: bytes) -> tuple[int, dict[str, object]]:
        self.times.append(time.monotonic())
        self.asked.append(body)
        time.sleep(self.delay)
        if self.failures:
            status = self.failures.pop(0)
            return status, {"error": {"message": "try again later", "type": "x", "code": "x"}}
        fields = dict.fromkeys(("semantic", "structural", "intent", "grounding", "analysis"), "-")
        content: dict[str, object] = {
            **fields,
            "code": PROGRAM,
            "terms": [],
            "links": [],
            "explanation": "counts",
        }
        content |= {"consistent": True, "mismatch": "", "summary": "-", "suggestion": "-"}
        message = {"role": "assistant", "content": json.dumps(content)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59}
        return 200, {
            "id": "1", "object": "chat.completion", "created": 1, "model": "tiny",
            "choices": [choice], "usage": usage,
        }  # fmt: skip


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Service]:
    found = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = found.reply(self.rfile.read(int(self.headers["Content-Length"])))
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            if status == 429:
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.url = f"http://127.0.0.1:{server.server_port}/v1"
    monkeypatch.setenv("OPENAI_API_KEY", "none-needed-here")
    monkeypatch.setenv("OPENAI_API_BASE", found.url)
    monkeypatch.setenv("OPENAI_BASE_URL", found.url)
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four questions of one's own; the program above is right for two of them."""
    folder = tmp_path / "data"
    folder.mkdir()
    with sqlite3.connect(folder / "shop.sqlite") as connection:
        connection.executescript(
            "CREATE TABLE customers (id INTEGER); INSERT INTO customers VALUES (1), (2);"
        )
    connection.close()
    with (folder / "test.jsonl").open("w") as stream:
        for number in range(4):
            question = {
                "id": f"q{number}",
                "question": f"How many customers, {number}?",
                "database": "shop.sqlite",
                "gold_sql": PROGRAM if number % 2 else "SELECT 7",
            }
            stream.write(json.dumps(question) + "\n")
    return folder
