"""A scripted OpenAI-compatible server over real HTTP."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Say = Callable[[str], str | int]


class Server:
    """Answers chat completions by `say(prompt)`: the reply's text, or a status to fail with.

    `asked` are the prompts in order; `stop` cuts every open connection, as a kill does.
    """

    def __init__(self, say: Say, seconds: float = 0.0, port: int = 0) -> None:
        self.say, self.seconds = say, seconds
        self.asked: list[str] = []
        self.answered: list[str] = []
        self.probes = 0
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.dead = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.probes += 1
                self._send(200, {"object": "list", "data": [{"id": "tiny"}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                text = "\n".join(_text(m["content"]) for m in body["messages"])
                outer.bodies.append(body)
                outer.keys.append(self.headers.get("Authorization", ""))
                outer.asked.append(text)
                if outer.dead.wait(outer.seconds):
                    self.close_connection = True
                    return
                said = outer.say(text)
                if isinstance(said, int):
                    self._send(said, {"error": {"message": "not now", "type": "x", "code": "x"}})
                else:
                    outer.answered.append(text)
                    self._send(200, completion(said))

            def _send(self, status: int, body: dict[str, Any]) -> None:
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                if status == 429:
                    self.send_header("Retry-After", "1")
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *arguments: object) -> None: ...

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            allow_reuse_address = True

        self._listener = Listener(("127.0.0.1", port), Handler)
        self.port: int = self._listener.server_port
        self.url = f"http://127.0.0.1:{self.port}/v1"
        threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self.dead.set()
        self._listener.shutdown()
        self._listener.server_close()
        time.sleep(0.05)


def completion(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59},
    }


def number_in(text: str) -> int:
    return int(re.findall(r"number (\d+)", text)[-1])


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
