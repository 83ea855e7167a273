"""What every encoder asks of its input. Must stay free of imports that cost start-up time."""

from __future__ import annotations

from collections.abc import Iterable

from likewise.errors import UsageError


def as_texts(texts: Iterable[str]) -> list[str]:
    r"""The texts as a list, each fit for a tokenizer.

    A lone surrogate is no character and has no UTF-8 form, so tokenizers refuse the string that holds one.
    Each becomes U+FFFD: still one code point, so that character spans stay true.

    Raises:
        UsageError: `texts` is a single string, or holds something that is not a string.

    Example:
        >>> as_texts(["plain", "half \ud83d emoji"])
        ['plain', 'half � emoji']
        >>> as_texts("a string")
        Traceback (most recent call last):
        ...
        likewise.errors.UsageError: expected a list of texts, found one string
          try: pass [text] instead of text
    """
    if isinstance(texts, str):
        raise UsageError("expected a list of texts, found one string", remedy="pass [text] instead of text")
    checked = list(texts)
    for position, text in enumerate(checked):
        if not isinstance(text, str):
            raise UsageError(f"expected texts, found {type(text).__name__} at position {position}")
        try:
            # Strict encoding is the cheapest test there is: one pass in C.
            text.encode("utf-8")
        except UnicodeEncodeError:
            checked[position] = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    return checked
