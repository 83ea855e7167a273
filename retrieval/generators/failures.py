"""What went wrong with a server, in words that say what to do about it. Opens no connection."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from likewise.errors import GeneratorError

if TYPE_CHECKING:
    import httpx

_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|window|size)|maximum context|prompt is too long|too many tokens"
    r"|exceeds? the available",
    re.IGNORECASE,
)
_LONGEST_QUOTE = 300


def connection_failure(error: httpx.HTTPError, base_url: str, timeout: float) -> GeneratorError:
    """The error for a request that got no whole answer."""
    import httpx

    if isinstance(error, httpx.ConnectTimeout):
        return GeneratorError(
            f"no connection to {base_url} in time", remedy="check the address, and whether the server runs"
        )
    if isinstance(error, httpx.TimeoutException):
        return GeneratorError(
            f"{base_url} sent nothing for {timeout:g} seconds",
            remedy="use a smaller model or --budget, or a longer timeout",
        )
    if isinstance(error, httpx.ConnectError):
        return GeneratorError(
            f"cannot connect to {base_url} ({error}): is the server running?",
            remedy="start it, for instance with `ollama serve`, or give another --base-url",
        )
    return GeneratorError(
        f"the connection to {base_url} broke ({type(error).__name__}: {error})",
        remedy="ask again; if it happens every time, look at the server's log",
    )


def status_failure(
    status: int, body: str, base_url: str, model: str, headers: Mapping[str, str]
) -> GeneratorError:
    """The error for an answer that is a refusal.

    Args:
        status: HTTP status; 200 for an error inside a stream that began well.
        body: What the server said, as JSON or text, without the key.
        base_url: Address of the interface.
        model: Name of the model.
        headers: Headers of the answer.

    Example:
        >>> print(status_failure(404, '{"error": "no llama9"}', "http://localhost/v1", "llama9", {}))
        http://localhost/v1 knows no model 'llama9', or is no OpenAI-compatible address: no llama9
          try: list the models with `ollama list` or GET http://localhost/v1/models, and check --base-url
    """
    said = _message(body)
    quoted = f": {said}" if said else ""
    if status in (200, 400, 413, 422, 500) and _TOO_LONG.search(said):
        return GeneratorError(
            f"the prompt is longer than {model} takes{quoted}",
            remedy="lower --budget, or give the server a larger context window",
        )
    if status in (401, 403):
        return GeneratorError(
            f"{base_url} refused the key (HTTP {status}){quoted}",
            remedy="set LIKEWISE_API_KEY or OPENAI_API_KEY to a valid key",
        )
    if status == 404:
        return GeneratorError(
            f"{base_url} knows no model {model!r}, or is no OpenAI-compatible address{quoted}",
            remedy=f"list the models with `ollama list` or GET {base_url}/models, and check --base-url",
        )
    if status == 429:
        wait = headers.get("retry-after", "")
        return GeneratorError(
            f"{base_url} takes no more requests now (HTTP 429){quoted}",
            remedy=f"ask again in {wait} seconds"
            if wait.isdecimal()
            else "ask again later, or check the quota",
        )
    if 300 <= status < 400:
        return GeneratorError(
            f"{base_url} redirects to {headers.get('location', 'another address')} (HTTP {status}); "
            "redirects are not followed, so that neither key nor documents go astray",
            remedy="give that address as --base-url if you trust it",
        )
    if status >= 500:
        return GeneratorError(
            f"{base_url} failed (HTTP {status}){quoted}", remedy="look at the server's log, then ask again"
        )
    where = "in its answer" if status == 200 else f"(HTTP {status})"
    return GeneratorError(
        f"{base_url} reports an error {where}{quoted}",
        remedy="check --model and --base-url against the server",
    )


def _message(body: str) -> str:
    """The human part of an error body, on one line."""
    said = body
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if isinstance(value, dict):
        error = value.get("error", value)
        said = str(
            (error.get("message") or error.get("detail") or error) if isinstance(error, dict) else error
        )
    said = " ".join(said.split())
    return said if len(said) <= _LONGEST_QUOTE else said[:_LONGEST_QUOTE] + "…"
