"""Address and key of a server, checked before anything is sent. Opens no connection and shows no key."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from likewise.errors import UsageError

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def checked_url(base_url: str) -> str:
    """The address without a trailing slash or method; `/v1` is added to one without a path.

    Raises:
        UsageError: It is no http or https address, or has a password or a query in it.

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
    if parts.username is not None or parts.query or parts.fragment:
        # Such an address may hold a secret, so the message does not repeat it.
        raise UsageError(
            f"expected an address without user, password or query, found one at {parts.hostname}",
            remedy="give the address alone, and the key in LIKEWISE_API_KEY",
        )
    return url if parts.path else f"{url}/v1"


def is_loopback(url: str) -> bool:
    """Whether an address stays on this machine."""
    return urlsplit(url).hostname in LOOPBACK


def key_from_environment(url: str) -> str:
    """The key that the environment holds for an address, or "".

    `LIKEWISE_API_KEY` goes wherever the user points. `OPENAI_API_KEY` is often set for other programs, so it
    is never sent over the network unencrypted.
    """
    own = os.environ.get("LIKEWISE_API_KEY", "").strip()
    if own:
        return own
    shared = os.environ.get("OPENAI_API_KEY", "").strip()
    return shared if url.startswith("https:") or is_loopback(url) else ""


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
