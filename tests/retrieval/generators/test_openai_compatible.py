"""The OpenAI-compatible generator against a server that behaves in every way servers do."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from likewise.errors import GeneratorError, UsageError
from likewise.retrieval.generators.base import Message
from likewise.retrieval.generators.endpoint import key_from_environment
from likewise.retrieval.generators.openai_compatible import OpenAICompatible

StreamOf = Callable[..., list[bytes]]
ASKED: list[Message] = [
    {"role": "system", "content": "Cite."},
    {"role": "user", "content": "金鑰多久輪替一次？"},
]
KEY = "sk-secret-0123456789"


def generator(server: Any, **options: Any) -> OpenAICompatible:
    return OpenAICompatible(server.url, "qwen3:8b", **options)


def test_streams_pieces_and_sends_the_conversation(server: Any, stream_of: StreamOf) -> None:
    server.events(*stream_of(["金鑰", "每年輪替", " [1]."]))
    stream = generator(server, max_tokens=99, temperature=0.5).stream(ASKED)
    assert list(stream) == ["金鑰", "每年輪替", " [1]."]
    assert stream.finish_reason == "stop"
    path, headers, body = server.requests[0]
    assert path == "/v1/chat/completions"
    assert body == {
        "model": "qwen3:8b", "messages": ASKED, "stream": True, "temperature": 0.5, "max_tokens": 99,
    }  # fmt: skip
    assert "Authorization" not in headers


def test_nothing_is_sent_before_the_first_piece_is_wanted(server: Any, stream_of: StreamOf) -> None:
    server.events(*stream_of(["a"]))
    stream = generator(server).stream(ASKED)
    assert server.requests == []
    stream.close()
    assert server.requests == [] and list(stream) == []


def test_keep_alives_and_odd_line_ends(server: Any) -> None:
    server.events(
        b": OPENROUTER PROCESSING\n\n",
        b"\r\n: ping\r\n\r\n",
        b'event: message\r\nid: 7\r\ndata:{"choices":[{"delta":{"content":"a\xe2',
        b'\x80\xa8b"}}]}\r',
        b"\n\r\n",
        b'data: {"choices":\ndata: [{"delta":{"content":"c"}}]}\n\n',
        b'data: {"choices": [], "usage": {"total_tokens": 9}}\n\n',
        b'data: {"choices":[{"delta":{"reasoning_content":"hm","content":""},"finish_reason":"length"}]}\n\n',
        b"data: [DONE]",
    )
    stream = generator(server).stream(ASKED)
    # U+2028 inside a string is not the end of a line.
    assert list(stream) == ["a\u2028b", "c"]
    assert stream.finish_reason == "length"


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/plain"])
def test_server_that_does_not_stream(server: Any, content_type: str) -> None:
    whole = {
        "choices": [
            {"message": {"role": "assistant", "content": "Once a year [1]."}, "finish_reason": "stop"}
        ]
    }
    server.events(b"\n", json.dumps(whole, indent=1).encode(), content_type=content_type)
    stream = generator(server).stream(ASKED)
    assert list(stream) == ["Once a year [1]."]
    assert stream.finish_reason == "stop"


def test_stream_with_the_wrong_content_type_and_a_bom(server: Any, stream_of: StreamOf) -> None:
    server.events(b"\xef\xbb\xbf", *stream_of(["ok"]), content_type="application/json")
    assert list(generator(server).stream(ASKED)) == ["ok"]


def test_whole_messages_as_events_and_parts_as_content(server: Any) -> None:
    message = {"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}}]}
    server.events(b"data: " + json.dumps(message).encode() + b"\n\n", b"data: [DONE]\n\n")
    stream = generator(server).stream(ASKED)
    assert list(stream) == ["ab"] and stream.finish_reason == "unknown"


def test_parameters_that_a_model_refuses_are_left_out(server: Any, stream_of: StreamOf) -> None:
    def reply(handler: Any) -> None:
        body = server.requests[-1][2]
        for name, hint in (
            ("max_tokens", "use max_completion_tokens"),
            ("temperature", "temperature: only 1"),
        ):
            if name in body:
                server.says(400, {"error": {"message": f"unsupported: {hint}"}})
                server.reply(handler)
                server.reply = reply
                return
        server.events(*stream_of(["ok"]))
        server.reply(handler)

    server.reply = reply
    assert list(generator(server, max_tokens=50).stream(ASKED)) == ["ok"]
    assert [sorted(set(body) - {"model", "messages", "stream"}) for _, _, body in server.requests] == [
        ["max_tokens", "temperature"],
        ["max_completion_tokens", "temperature"],
        ["max_completion_tokens"],
    ]
    assert server.requests[-1][2]["max_completion_tokens"] == 50


def test_thoughts_are_left_out(server: Any, stream_of: StreamOf) -> None:
    server.events(*stream_of(["<thi", "nk>[9] maybe?", "</think>\n\n", "每年", "一次 [1]。"]))
    assert list(generator(server).stream(ASKED)) == ["每年", "一次 [1]。"]


def test_reader_that_goes_away_closes_the_connection(server: Any, stream_of: StreamOf) -> None:
    piece = stream_of(["one"])[1]

    def reply(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        while not server.released.is_set():
            handler.wfile.write(piece * 100)
            handler.wfile.flush()

    server.reply = reply
    stream = generator(server).stream(ASKED)
    assert next(stream) == "one"
    stream.close()
    assert server.gone.wait(30)
    assert list(stream) == []


@pytest.mark.parametrize("variable", ["LIKEWISE_API_KEY", "OPENAI_API_KEY"])
def test_key_comes_from_the_environment(
    server: Any, stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, f" {KEY}\n")
    server.events(*stream_of(["a"]))
    list(generator(server).stream(ASKED))
    assert server.requests[0][1]["Authorization"] == f"Bearer {KEY}"


def test_own_key_variable_wins(server: Any, stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_API_KEY", "ours")
    monkeypatch.setenv("OPENAI_API_KEY", "theirs")
    server.events(*stream_of(["a"]))
    list(generator(server).stream(ASKED))
    list(generator(server, api_key="given").stream(ASKED))
    assert [headers["Authorization"] for _, headers, _ in server.requests] == ["Bearer ours", "Bearer given"]


def test_shared_key_is_not_sent_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIKEWISE_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert key_from_environment("http://192.168.1.9:8000/v1") == ""
    assert key_from_environment("http://localhost.example.org/v1") == ""
    for url in ("https://api.example.org/v1", "http://localhost:8000/v1", "http://[::1]:8000/v1"):
        assert key_from_environment(url) == KEY
    monkeypatch.setenv("LIKEWISE_API_KEY", "ours")
    assert key_from_environment("http://192.168.1.9:8000/v1") == "ours"


@pytest.mark.parametrize("url", [f"https://ann:{KEY}@host/v1", f"https://host/v1?key={KEY}"])
def test_secrets_in_an_address_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match="without user, password or query") as caught:
        OpenAICompatible(url, "m")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "headers", "message", "remedy"),
    [
        (401, {"error": {"message": "Incorrect API key provided: " + KEY}}, {},
         r"refused the key \(HTTP 401\): Incorrect API key provided: \(key\)", "LIKEWISE_API_KEY"),
        (403, "", {}, r"refused the key \(HTTP 403\)", "OPENAI_API_KEY"),
        (404, {"error": {"message": "model 'qwen3:8b' not found"}}, {},
         "knows no model 'qwen3:8b', .*: model 'qwen3:8b' not found", "ollama list"),
        (404, "<html>not found</html>", {}, "is no OpenAI-compatible address: <html>", "--base-url"),
        (429, {"error": {"message": "slow down"}}, {"Retry_After": "7"}, "no more requests now.*slow down",
         "in 7 seconds"),
        (429, {}, {"Retry_After": "Mon, 01 Jan"}, "HTTP 429", "ask again later"),
        (400, {"error": {"message": "This model's maximum context length is 4096 tokens."}}, {},
         "the prompt is longer than qwen3:8b takes: This model's maximum", "lower --budget"),
        (500, {"error": {"message": "the request exceeds the available context size"}}, {},
         "longer than qwen3:8b takes", "lower --budget"),
        (413, {"detail": "Prompt is too long"}, {}, "longer than qwen3:8b takes", "lower --budget"),
        (400, {"error": "unsupported parameter"}, {}, r"reports an error \(HTTP 400\): unsupported parameter",
         "--model"),
        (503, "loading model", {}, r"failed \(HTTP 503\): loading model", "log"),
        (307, "", {"Location": "http://elsewhere/v1"}, "redirects to http://elsewhere/v1", "if you trust it"),
        (200, {"error": {"message": "out of memory"}}, {}, "reports an error in its answer: out of memory",
         "--model"),
        (200, "Welcome to nginx!", {}, "expected a chat completion from .*, found: Welcome to nginx!", "/v1"),
        (200, "", {}, "found: an empty answer", "/v1"),
        (200, '{"choices": [', {}, "expected a chat completion", "/v1"),
        (200, "[1, 2]", {}, "expected a chat completion", "/v1"),
        (200, {"message": {"content": "native"}}, {}, "expected a chat completion", "/v1"),
        (200, {"choices": ["text"]}, {}, "expected a chat completion", "/v1"),
        (200, {"choices": [{"message": "text"}]}, {}, "expected a chat completion", "/v1"),
        (200, {"choices": [{"message": {"content": 7}}]}, {}, "expected a chat completion", "/v1"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_do(
    server: Any, status: int, body: object, headers: dict[str, str], message: str, remedy: str
) -> None:
    server.says(status, body, **headers)
    with pytest.raises(GeneratorError, match=message) as caught:
        list(generator(server, api_key=KEY).stream(ASKED))
    assert remedy in str(caught.value.remedy)
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1  # nothing was tried again, no redirect was followed


def test_error_in_the_middle_of_a_stream(server: Any, stream_of: StreamOf) -> None:
    server.events(*stream_of(["Once "])[:2], b'data: {"error": {"message": "context window exceeded"}}\n\n')
    stream = generator(server).stream(ASKED)
    assert next(stream) == "Once "
    with pytest.raises(GeneratorError, match="prompt is longer than qwen3:8b takes"):
        next(stream)


def test_malformed_event(server: Any, stream_of: StreamOf) -> None:
    server.events(*stream_of(["Once "])[:2], b"data: {broken\n\n")
    stream = generator(server, api_key=KEY).stream(ASKED)
    assert next(stream) == "Once "
    with pytest.raises(GeneratorError, match=r"expected a chat completion .* found: \{broken"):
        next(stream)


def test_stream_that_breaks_off(server: Any, stream_of: StreamOf) -> None:
    server.events(*stream_of(["Once "])[:2])
    stream = generator(server).stream(ASKED)
    assert next(stream) == "Once "
    with pytest.raises(GeneratorError, match="broke off in the middle of its answer"):
        next(stream)


def test_connection_that_breaks(server: Any) -> None:
    def reply(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\ndata: {")

    server.reply = reply
    with pytest.raises(GeneratorError, match=r"the connection to .* broke \(RemoteProtocolError"):
        list(generator(server).stream(ASKED))


def test_server_that_says_nothing(server: Any) -> None:
    server.reply = lambda handler: server.released.wait(30)
    with pytest.raises(GeneratorError, match=r"sent nothing for 0\.2 seconds") as caught:
        list(generator(server, timeout=0.2).stream(ASKED))
    assert "longer timeout" in str(caught.value.remedy)


def test_event_without_end_is_given_up(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from likewise.retrieval.generators import sse

    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    server.events(b"data: ", *[b"x" * 100] * 30)
    with pytest.raises(GeneratorError, match="a line of more than 1000 bytes"):
        list(generator(server).stream(ASKED))


def test_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(GeneratorError, match="is the server running") as caught:
        list(OpenAICompatible(f"http://127.0.0.1:{port}", "m").stream(ASKED))
    assert "ollama serve" in str(caught.value.remedy)


def test_proxy_does_not_apply_to_loopback(
    server: Any, stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.events(*stream_of(["a"]))
    assert list(generator(server).stream(ASKED)) == ["a"]


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://localhost:11434", "http://localhost:11434/v1"),
        ("http://localhost:11434/", "http://localhost:11434/v1"),
        ("http://localhost:8080/v1/", "http://localhost:8080/v1"),
        (" https://api.example.org/openai/chat/completions", "https://api.example.org/openai"),
    ],
)
def test_addresses(given: str, used: str) -> None:
    assert OpenAICompatible(given, "m").name == f"m at {used}"


@pytest.mark.parametrize(
    "url", ["", "localhost:11434", "ftp://localhost/v1", "http://", "http://host:port/v1"]
)
def test_malformed_addresses(url: str) -> None:
    with pytest.raises(UsageError, match="expected an http or https address"):
        OpenAICompatible(url, "m")


def test_arguments_out_of_range() -> None:
    for options in ({"timeout": 0}, {"connect_timeout": -1}, {"max_tokens": 0}, {"temperature": -0.1}):
        with pytest.raises(UsageError, match="expected"):
            OpenAICompatible("http://localhost", "m", **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the name of a model"):
        OpenAICompatible("http://localhost", "")


def test_key_is_never_shown() -> None:
    assert KEY not in repr(OpenAICompatible("http://localhost", "m", api_key=KEY))
    with pytest.raises(UsageError, match="printable ASCII") as caught:
        OpenAICompatible("http://localhost", "m", api_key=KEY + "\nX-Evil: 1")
    assert KEY not in str(caught.value)


def test_httpx_is_imported_with_the_first_request() -> None:
    code = (
        "import sys; from likewise.retrieval.generators.openai_compatible import OpenAICompatible as G;"
        "G('http://localhost', 'm'); sys.exit(bool({'httpx', 'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
