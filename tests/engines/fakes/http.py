"""A small JSON server on the loopback: what a faked cloud service speaks to the real client."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

Answer = tuple[int, dict[str, Any]]
Handle = Callable[[str, str, dict[str, str], dict[str, Any]], Answer]


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Silence: a client that gave up waiting is part of the tests."""


class JsonServer:
    """Answers `handle(method, path, query, body)` until it is closed."""

    def __init__(self, handle: Handle) -> None:
        server = _Server(("127.0.0.1", 0), _handler(handle))
        server.daemon_threads = True
        self._server = server
        self.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(handle: Handle) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}") if length else {}
            url = urlsplit(self.path)
            query = dict(parse_qsl(url.query))
            status, answer = handle(self.command, unquote(url.path), query, body)
            raw = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_DELETE = _answer

        def log_message(self, *args: object) -> None:
            """Silence."""

    return Handler
