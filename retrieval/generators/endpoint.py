"""Address and key of a server, checked before anything is sent. Opens no connection and shows no key."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from likewise.errors import UsageError

KEY_VARIABLES = ("LIKEWISE_API_KEY", "OPENAI_API_KEY")
"""Environment variables that may hold the key; the first one that is set wins."""


def checked_url(base_url: str) -> str:
    """The address without a trailing slash or method; `/v1` is added to one without a path.

    Raises:
        UsageError: It is no http or https address.

    Example:
        >>> checked_url("http://localhost:11434/")
        'http://localhost:11434/v1'
    """
    url = base_url.strip().rstrip("/").removesuffix("/chat/completions")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(
            f"expected an http or https address, found {base_url!r}",
            remedy="--base-url http://localhost:11434/v1",
        )
    return url if parts.path else f"{url}/v1"


def key_from_environment() -> str:
    """The key that the environment holds, or ""."""
    return next((key for name in KEY_VARIABLES if (key := os.environ.get(name, "").strip())), "")


def checked_key(key: str) -> str:
    """The key, fit for a header.

    Raises:
        UsageError: It holds line ends or other characters that no header may have.
    """
    if not key.isascii() or not key.isprintable():
        # The key itself must not be shown, not even a wrong one.
        raise UsageError(
            "expected an API key of printable ASCII characters, found others in it",
            remedy="copy the key again, without quotes or line ends",
        )
    return key
