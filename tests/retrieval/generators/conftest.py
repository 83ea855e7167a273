"""A chat server on the loopback interface that answers as a test tells it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Reply = Callable[[BaseHTTPRequestHandler], None]


class ChatServer:
    """Answers every request with `reply` and keeps what was asked.

    Attributes:
        reply: Writes the answer.
        requests: Path, headers and parsed body of each request.
        gone: Set when a client hung up while `reply` was writing.
    """

    def __init__(self) -> None:
        self.reply: Reply = lambda handler: send(handler, 500, b"no reply was set")
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.gone = threading.Event()
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                outer.requests.append((self.path, dict(self.headers), json.loads(self.rfile.read(length))))
                try:
                    outer.reply(self)
                except (BrokenPipeError, ConnectionResetError, ConnectionAbortedError):
                    outer.gone.set()

            def log_message(self, format: str, *args: object) -> None:
                """Keep the test output clean."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def events(self, *lines: bytes, content_type: str = "text/event-stream") -> None:
        """Answer with these bytes as an event stream."""
        self.reply = lambda handler: send(handler, 200, *lines, content_type=content_type)

    def says(self, status: int, body: object, **headers: str) -> None:
        """Answer with a status and a JSON body (or text)."""
        data = body.encode() if isinstance(body, str) else json.dumps(body, ensure_ascii=False).encode()
        self.reply = lambda handler: send(
            handler, status, data, content_type="application/json", headers=headers
        )


def send(
    handler: BaseHTTPRequestHandler,
    status: int,
    *parts: bytes,
    content_type: str = "text/plain",
    headers: dict[str, str] | None = None,
) -> None:
    """Write an answer part by part, each flushed; the connection's end is the body's end."""
    handler.send_response(status)
    handler.send_header("Content-Type", content_type)
    for name, value in (headers or {}).items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    for part in parts:
        handler.wfile.write(part)
        handler.wfile.flush()


def chunks(texts: Sequence[str], finish: str | None = "stop") -> list[bytes]:
    """The events in which a server streams a text."""
    events = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}]
    events += [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    if finish:
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})  # type: ignore[dict-item]
    lines = [b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n" for event in events]
    return [*lines, b"data: [DONE]\n\n"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """A running chat server; no key in the environment."""
    for name in ("LIKEWISE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    running = ChatServer()
    yield running
    running.close()


@pytest.fixture
def stream_of() -> Callable[..., list[bytes]]:
    """Builds the events of a stream."""
    return chunks
