"""Any server that speaks the OpenAI chat protocol: Ollama, llama.cpp server, vLLM, LM Studio, OpenAI.

The key travels in one header and appears nowhere else: not in messages, errors or representations. Nothing is
sent but the messages. httpx is imported when the first request is made.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from likewise.errors import GeneratorError, UsageError
from likewise.retrieval.generators.base import FinishReason, Message, TextStream
from likewise.retrieval.generators.endpoint import (
    checked_key,
    checked_url,
    is_loopback,
    key_from_environment,
)
from likewise.retrieval.generators.failures import connection_failure, status_failure
from likewise.retrieval.generators.sse import EventTooLong, event_data
from likewise.retrieval.generators.thoughts import without_thoughts

if TYPE_CHECKING:
    import httpx

    from likewise.retrieval.tokens import TokenCounter

_MAX_BODY_BYTES = 16_000_000


class OpenAICompatible:
    """Generates with a chat model behind an OpenAI-compatible HTTP interface.

    Args:
        base_url: Address of the interface, such as `http://localhost:11434/v1` (Ollama),
            `http://localhost:8080/v1` (llama.cpp server) or `http://localhost:8000/v1` (vLLM). `/v1` is added
            to an address without a path.
        model: Name of the model as the server knows it.
        api_key: Key; None takes it from `LIKEWISE_API_KEY`, else from `OPENAI_API_KEY` for an https or
            loopback address. Local servers need none.
        temperature: Randomness, >= 0; None leaves it to the server.
        max_tokens: Most tokens of an answer; None leaves it to the server.
        timeout: Seconds to wait for the next bytes. A large model on a small computer may read a prompt for
            minutes before it writes the first word.
        connect_timeout: Seconds to wait for a connection.
        token_counter: Counts tokens as the model does; see `load_token_counter`.

    Raises:
        UsageError: An argument makes no sense.

    Example:
        >>> OpenAICompatible("http://localhost:11434", "qwen3:8b").name
        'qwen3:8b at http://localhost:11434/v1'
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
        timeout: float = 300.0,
        connect_timeout: float = 10.0,
        token_counter: TokenCounter | None = None,
    ) -> None:
        self._base_url = checked_url(base_url)
        if not model:
            raise UsageError("expected the name of a model, found none", remedy="--model qwen3:8b")
        if timeout <= 0 or connect_timeout <= 0:
            raise UsageError(f"expected timeouts above 0, found {timeout} and {connect_timeout}")
        if max_tokens is not None and max_tokens < 1:
            raise UsageError(f"expected max_tokens of at least 1, found {max_tokens}")
        if temperature is not None and temperature < 0:
            raise UsageError(f"expected a temperature of at least 0, found {temperature}")
        self._model = model
        self._key = checked_key(key_from_environment(self._base_url) if api_key is None else api_key)
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._token_counter = token_counter

    def __repr__(self) -> str:
        return f"OpenAICompatible({self._base_url!r}, {self._model!r})"

    @property
    def name(self) -> str:
        """Model and address."""
        return f"{self._model} at {self._base_url}"

    @property
    def token_counter(self) -> TokenCounter | None:
        """The counter that was given; the protocol has no way to ask the server for one."""
        return self._token_counter

    def stream(self, messages: Sequence[Message]) -> TextStream:
        """The answer as the server sends it.

        The request is made when the first piece is asked for. A server that ignores `stream` and answers in
        one go gives one piece. What a reasoning model thinks before it answers is left out.

        Raises:
            GeneratorError: While reading: connection refused or broken, key missing or wrong, model unknown,
                too many requests, prompt too long for the model, or an answer that is not the protocol's.
        """
        return TextStream(without_thoughts(self._answer(list(messages))))

    def _answer(self, messages: list[Message]) -> Generator[str, None, FinishReason]:
        body: dict[str, object] = {"model": self._model, "messages": messages, "stream": True}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        if self._max_tokens is not None:
            body["max_tokens"] = self._max_tokens
        while True:
            try:
                return (yield from self._request(body))
            except _ParameterRefused as refused:
                body = refused.accepted

    def _request(self, body: dict[str, object]) -> Generator[str, None, FinishReason]:
        import httpx

        try:
            with (
                httpx.Client(
                    timeout=httpx.Timeout(self._timeout, connect=self._connect_timeout),
                    # A proxy cannot reach this machine's loopback address.
                    trust_env=not is_loopback(self._base_url),
                    # Following a redirect could carry key and documents to another host.
                    follow_redirects=False,
                ) as client,
                client.stream(
                    "POST", f"{self._base_url}/chat/completions", json=body, headers=self._headers()
                ) as response,
            ):
                if response.status_code != 200:
                    text = _body(response.iter_bytes()).decode("utf-8", "replace")
                    if response.status_code == 400 and (accepted := _without_refused(body, text)):
                        raise _ParameterRefused(accepted)
                    raise status_failure(
                        response.status_code,
                        self._hidden(text),
                        self._base_url,
                        self._model,
                        response.headers,
                    )
                return (yield from self._read(response))
        except httpx.HTTPError as error:
            raise connection_failure(error, self._base_url, self._timeout) from error
        except EventTooLong as error:
            raise self._malformed(str(error)) from error

    def _read(self, response: httpx.Response) -> Generator[str, None, FinishReason]:
        chunks = response.iter_bytes()
        first = b""
        # Some servers stream without saying so, others say so and do not: the first bytes decide.
        while not first.strip() and (chunk := next(chunks, None)) is not None:
            first = (first + chunk).removeprefix(b"\xef\xbb\xbf")
        if first.lstrip()[:1] in (b"{", b"["):
            return (yield from self._read_whole(first + _body(chunks)))
        finished: FinishReason | None = None
        found_event = False
        for data in event_data(_chain(first, chunks)):
            found_event = True
            if data.strip() == "[DONE]":
                return finished or "unknown"
            text, reason = self._choice(self._parsed(data), "delta")
            finished = reason or finished
            if text:
                yield text
        if not found_event:
            raise self._malformed(first.decode("utf-8", "replace") or "an empty answer")
        if finished is None:
            raise GeneratorError(
                f"{self.name} broke off in the middle of its answer",
                remedy="ask again; if it happens every time, look at the server's log",
            )
        return finished

    def _read_whole(self, body: bytes) -> Generator[str, None, FinishReason]:
        text, reason = self._choice(self._parsed(body.decode("utf-8", "replace")), "message")
        if text:
            yield text
        return reason or "unknown"

    def _parsed(self, text: str) -> dict[str, Any]:
        try:
            value = json.loads(text)
        except ValueError:
            raise self._malformed(text) from None
        if not isinstance(value, dict):
            raise self._malformed(text)
        if error := value.get("error"):
            said = error.get("message") if isinstance(error, dict) else error
            raise status_failure(200, self._hidden(str(said or error)), self._base_url, self._model, {})
        return value

    def _choice(self, value: dict[str, Any], part: str) -> tuple[str, FinishReason | None]:
        """Text and finish reason of an answer or a piece of one."""
        choices = value.get("choices")
        if not isinstance(choices, list):
            raise self._malformed(json.dumps(value, ensure_ascii=False))
        if not choices:
            return "", None  # a last piece with the usage alone
        choice = choices[0]
        # Servers that ignore `stream` inside an event stream send whole messages as events.
        said = (choice.get(part) or choice.get("message") or {}) if isinstance(choice, dict) else None
        if not isinstance(said, dict):
            raise self._malformed(json.dumps(value, ensure_ascii=False))
        content = said.get("content")
        if isinstance(content, list):
            content = "".join(str(item.get("text", "")) for item in content if isinstance(item, dict))
        if content is not None and not isinstance(content, str):
            raise self._malformed(json.dumps(value, ensure_ascii=False))
        reason = choice.get("finish_reason")
        known: FinishReason | None = None
        if reason is not None:
            known = reason if reason in ("stop", "length") else "unknown"
        return content or "", known

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "text/event-stream, application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return headers

    def _hidden(self, text: str) -> str:
        """What a server said, without the key that some of them repeat."""
        return text.replace(self._key, "(key)") if self._key else text

    def _malformed(self, found: str) -> GeneratorError:
        shown = " ".join(self._hidden(found).split())
        shown = shown if len(shown) <= 200 else shown[:200] + "…"
        return GeneratorError(
            f"expected a chat completion from {self._base_url}, found: {shown}",
            remedy="check the address: it should be the one that ends in /v1",
        )


class _ParameterRefused(Exception):
    """The server refuses a parameter that it can be asked without."""

    def __init__(self, accepted: dict[str, object]) -> None:
        super().__init__()
        self.accepted = accepted


def _without_refused(body: dict[str, object], said: str) -> dict[str, object] | None:
    """The request as a server may accept it that complained about a parameter, or None.

    Models that reason take no temperature, and call the limit of an answer by another name.
    """
    rest = dict(body)
    if "max_tokens" in body and "max_completion_tokens" in said:
        rest["max_completion_tokens"] = rest.pop("max_tokens")
        return rest
    if "temperature" in body and "temperature" in said:
        del rest["temperature"]
        return rest
    return None


def _chain(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _body(chunks: Iterator[bytes]) -> bytes:
    """A whole body, up to a size that no answer needs."""
    body = b""
    for chunk in chunks:
        body += chunk
        if len(body) > _MAX_BODY_BYTES:
            break
    return body
