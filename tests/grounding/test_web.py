"""Wikipedia over a real client; a scripted transport or a local server stands in for the wiki."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.web import Wikipedia
from lynx_dspy.progress import listen

CHURN = {
    "query": {
        "pages": [
            {"index": 2, "title": "Butter churn", "extract": "A churn makes butter."},
            {
                "index": 1,
                "title": "Churn rate",
                "extract": "Churn rate is a measure of loss.",
                "fullurl": "https://en.wikipedia.org/wiki/Churn_rate",
            },
            {"index": 3, "title": "Empty", "extract": ""},
            {"index": 4, "title": "Loss", "extract": "Loss is the state of not having."},
        ]
    }
}
Answer = Callable[[httpx2.Request], httpx2.Response]


def wiki(folder: Path, answer: Answer, **options: Any) -> tuple[Wikipedia, list[httpx2.Request]]:
    seen: list[httpx2.Request] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return answer(request)

    return Wikipedia(cache=folder, transport=httpx2.MockTransport(handle), **options), seen


def found(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json=CHURN)


def unreachable(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("no route to host", request=request)


def test_introductions_that_mention_the_term_in_the_order_of_the_search(tmp_path: Path) -> None:
    source, _ = wiki(tmp_path, found)
    pages = source.look_up("churn")
    assert [p.heading for p in pages] == ["Churn rate", "Butter churn"]
    assert pages[0].source == "https://en.wikipedia.org/wiki/Churn_rate"
    assert [p.heading for p in source.look_up("churn rate")] == ["Churn rate"]


def test_the_request_is_polite_and_holds_the_term_alone(tmp_path: Path) -> None:
    source, seen = wiki(tmp_path, found, contact="me@example.org (x)")
    source.look_up("  churn   rate ")
    (request,) = seen
    assert request.url.host == "en.wikipedia.org"
    assert request.url.params["gsrsearch"] == "churn rate"
    assert request.url.params["maxlag"] == "5"
    assert request.headers["user-agent"].startswith("lynx-dspy/")
    assert "(me@example.org x)" in request.headers["user-agent"]


def test_an_answer_is_kept_on_disk(tmp_path: Path) -> None:
    first, seen = wiki(tmp_path, found)
    assert first.look_up("churn")
    second, never = wiki(tmp_path, unreachable)
    assert second.look_up("Churn") == first.look_up("churn")
    assert (len(seen), len(never)) == (1, 0)


def test_an_old_answer_is_asked_for_again_and_serves_without_a_network(tmp_path: Path) -> None:
    source, _ = wiki(tmp_path, found)
    source.look_up("churn")
    (file,) = tmp_path.glob("*.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"at": 0}))
    again, seen = wiki(tmp_path, unreachable)
    assert [p.heading for p in again.look_up("churn")] == ["Churn rate", "Butter churn"]
    assert len(seen) == 1


def test_without_a_network_it_goes_on_and_does_not_ask_again(tmp_path: Path) -> None:
    source, seen = wiki(tmp_path, unreachable)
    said: list[str] = []
    with listen(lambda _, text: said.append(text)):
        assert source.look_up("churn") == ()
        assert source.look_up("margin") == ()
    assert len(seen) == 1
    assert said == ["goes on without https://en.wikipedia.org/w/api.php: no route to host"]


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(503, headers={"Retry-After": "5"}),
        httpx2.Response(200, text="<html>blocked</html>"),
        httpx2.Response(200, text="[" * 100_000),
        httpx2.Response(200, json=["odd"]),
        httpx2.Response(200, json={"error": {"code": "maxlag"}}),
        httpx2.Response(200, json={"query": {"pages": {"1": {"extract": 3}}}}),
        httpx2.Response(200, json={"query": {"pages": [3, {"extract": 3}, {"title": "x"}]}}),
        httpx2.Response(200, json={"batchcomplete": True}),
        httpx2.Response(200, content=b" " * 3_000_000),
        httpx2.Response(302, headers={"Location": "http://127.0.0.1/"}),
    ],
)
def test_an_odd_answer_is_no_answer(answer: httpx2.Response, tmp_path: Path) -> None:
    source, _ = wiki(tmp_path, lambda _: answer)
    assert source.look_up("churn") == ()


def test_a_broken_cache_file_is_replaced(tmp_path: Path) -> None:
    source, seen = wiki(tmp_path, found)
    source.look_up("churn")
    (file,) = tmp_path.glob("*.json")
    for broken in ("", "{}", '{"at": "x", "answer": {}}', "[" * 99_999):
        file.write_text(broken)
        assert source.look_up("churn")
    assert len(seen) == 5


def test_a_language_that_is_no_code_is_refused() -> None:
    with pytest.raises(BadInput, match=r"evil\.example"):
        Wikipedia("evil.example/x#")


@pytest.fixture
def server() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(CHURN).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}/w/api.php"
    running.shutdown()
    running.server_close()


def test_over_a_real_socket(server: str, tmp_path: Path) -> None:
    source = Wikipedia(url=server, cache=tmp_path)
    assert source.look_up("churn rate")[0].heading == "Churn rate"
    source.close()
    closed = Wikipedia(url="http://127.0.0.1:9/w/api.php", cache=tmp_path, timeout=1)
    assert closed.look_up("churn rate") == ()
