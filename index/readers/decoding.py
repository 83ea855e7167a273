"""Bytes of a text file to characters: byte order mark, UTF-8, what the file declares, then detection.

The order matters: bytes that are valid UTF-8 hardly ever are anything else, whatever a stale declaration
says, and detection is a guess. Nothing is dropped: what cannot be decoded becomes U+FFFD and is counted.
Line ends are left as they are, so that an offset in the text is a place in the decoded file; a byte order
mark is not part of the text.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from likewise.index.readers.base import Unreadable
from likewise.index.records import DocumentState

_BOMS = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# How the 7-bit encodings (ISO-2022, HZ) switch to two bytes a character; to UTF-8 they look like plain ASCII.
_SHIFTS = (b"\x1b$", b"\x1b(", b"\x0e", b"~{")
# Where git looks for a NUL to call a file binary.
_BINARY_WINDOW = 8000
# C0 controls that occur in text: tab, line feed, vertical tab, form feed, carriage return, escape, backspace.
_CONTROLS = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f]")
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_MAX_CONTROLS = 0.01
_MAX_UNDECODED = 0.1


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded file.

    Attributes:
        text: The characters, line ends as in the file.
        encoding: Python's name of the codec.
        lossy: Characters that were replaced by U+FFFD.
    """

    text: str
    encoding: str
    lossy: int = 0


def decode(data: bytes, *, declared: str = "", strict: bool = False) -> Decoded:
    r"""Decode a text file.

    Args:
        data: The whole file.
        declared: Encoding that the file names itself (an HTML charset, a coding cookie), or "".
        strict: Refuse a file that does not decode cleanly, for files that only might be text.

    Raises:
        Unreadable: The bytes are not text.

    Example:
        >>> decode("鍵".encode("utf-8"))
        Decoded(text='鍵', encoding='utf-8', lossy=0)
        >>> decode(b"caf\xe9 au lait", declared="latin-1").text
        'café au lait'
    """
    decoded = _decode(data, declared)
    _refuse_binary(decoded, strict=strict)
    return decoded


def _decode(data: bytes, declared: str) -> Decoded:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _replacing(data[len(bom) :], encoding)
    if b"\0" in data[:_BINARY_WINDOW]:
        # Text that holds NUL bytes is UTF-16 or UTF-32 without a mark, or not text.
        return _replacing(data, _detect_wide(data))
    if data.isascii() and any(sign in data for sign in _SHIFTS):
        seven_bit = _detect(data)
        if seven_bit.lower().startswith(("iso2022", "iso-2022", "hz")):
            return _replacing(data, seven_bit)
    try:
        return _without_nul(Decoded(data.decode("utf-8"), "utf-8"))
    except UnicodeDecodeError:
        pass
    mostly_utf8 = _replacing(data, "utf-8")
    beyond_ascii = len(mostly_utf8.text) - len(mostly_utf8.text.encode("ascii", "ignore"))
    if mostly_utf8.lossy * 10 <= beyond_ascii - mostly_utf8.lossy:
        # A few broken bytes, or a cut in the middle of a character: legacy encodings never look like this.
        return mostly_utf8
    codec = _known_codec(declared)
    if codec and (as_declared := _replacing(data, codec)).lossy <= len(data) * _MAX_UNDECODED:
        return as_declared
    return _replacing(data, _detect(data))


def _replacing(data: bytes, encoding: str) -> Decoded:
    try:
        return _without_nul(Decoded(data.decode(encoding), encoding))
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
        return _without_nul(Decoded(text, encoding, text.count("\ufffd")))


def _without_nul(decoded: Decoded) -> Decoded:
    """U+0000 and lone surrogates replaced one to one: neither survives storage, and places stay the same."""
    text, lossy = decoded.text, decoded.lossy
    if nuls := text.count("\0"):
        text, lossy = text.replace("\0", "\ufffd"), lossy + nuls
    text, lone = _LONE_SURROGATES.subn("\ufffd", text)
    return Decoded(text, decoded.encoding, lossy + lone)


def _known_codec(name: str) -> str:
    """Python's codec for a declared name, or "" for a name that is unknown or not a text encoding."""
    try:
        info = codecs.lookup(name.strip().strip("\"'"))
    except (LookupError, ValueError, UnicodeError):
        return ""
    # A document in ASCII-compatible bytes that declares UTF-16 was transcoded on the way: HTML says ignore
    # it.
    if info.name.startswith(("utf-16", "utf-32", "utf-7")) or not getattr(info, "_is_text_encoding", True):
        return ""
    # Browsers read these as their Windows supersets, and so do the people who wrote the files.
    return {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}.get(
        info.name, info.name
    )


def _detect(data: bytes) -> str:
    import chardet
    from chardet.enums import EncodingEra

    era = EncodingEra.MODERN_WEB | EncodingEra.LEGACY_ISO | EncodingEra.LEGACY_REGIONAL
    found = chardet.detect(data, encoding_era=era, prefer_superset=True, compat_names=False)["encoding"]
    if found is None:
        raise Unreadable(DocumentState.UNSUPPORTED, "is a binary file, not text")
    return found


def _detect_wide(data: bytes) -> str:
    """UTF-16 or UTF-32 without a byte order mark."""
    encoding = _detect(data)
    if not encoding.lower().replace("_", "-").startswith(("utf-16", "utf-32")):
        raise Unreadable(DocumentState.UNSUPPORTED, "is a binary file, not text (it holds NUL bytes)")
    return encoding


def _refuse_binary(decoded: Decoded, *, strict: bool) -> None:
    characters = len(decoded.text)
    if decoded.lossy > (0 if strict else characters * _MAX_UNDECODED):
        raise Unreadable(
            DocumentState.UNSUPPORTED,
            f"is not text: {decoded.lossy:,} of {characters:,} characters fail in {decoded.encoding}",
        )
    controls = sum(1 for _ in _CONTROLS.finditer(decoded.text[:1_000_000]))
    if controls > min(characters, 1_000_000) * _MAX_CONTROLS:
        raise Unreadable(
            DocumentState.UNSUPPORTED, "is a binary file, not text (it holds control characters)"
        )
