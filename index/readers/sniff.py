"""What kind of file some bytes are, whatever their name says.

Only signatures are looked at; nothing is parsed beyond the directory of a zip archive. Names are hints: a PDF
called `notes.txt` is a PDF, and a photograph called `notes.txt` is not text.
"""

from __future__ import annotations

from likewise.index.readers.base import Unreadable

# (offset, signature, kind). The kinds that no reader claims are refused by name, see `family`.
_SIGNATURES = (
    (0, b"{\\rtf", "rtf"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole"),
    (0, b"\x89PNG\r\n\x1a\n", "png"),
    (0, b"\xff\xd8\xff", "jpeg"),
    (0, b"GIF87a", "gif"),
    (0, b"GIF89a", "gif"),
    (0, b"II*\0", "tiff"),
    (0, b"MM\0*", "tiff"),
    (8, b"WEBP", "webp"),
    (0, b"\x1f\x8b", "gzip"),
    (0, b"BZh", "bzip2"),
    (0, b"\xfd7zXZ\0", "xz"),
    (0, b"(\xb5/\xfd", "zstandard"),
    (0, b"7z\xbc\xaf'\x1c", "7z"),
    (0, b"Rar!\x1a\x07", "rar"),
    (257, b"ustar", "tar"),
    (0, b"SQLite format 3\0", "sqlite"),
    (0, b"\x7fELF", "elf"),
    (0, b"\xca\xfe\xba\xbe", "class"),
    (0, b"\0asm", "wasm"),
    (0, b"ID3", "mp3"),
    (4, b"ftyp", "mp4"),
    (0, b"OggS", "ogg"),
    (0, b"fLaC", "flac"),
    (8, b"WAVE", "wav"),
    (0, b"wOFF", "font"),
    (0, b"wOF2", "font"),
    (0, b"\0\1\0\0\0", "font"),
    (0, b"OTTO\0", "font"),
    (0, b"PAR1", "parquet"),
    (0, b"\x93NUMPY", "numpy"),
)

_FAMILIES = {
    "rtf": "Rich Text Format document",
    "doc": "Word 97-2003 document",
    "ppt": "PowerPoint 97-2003 presentation",
    "xls": "Excel 97-2003 workbook",
    "msg": "Outlook message",
    "ole": "OLE compound file",
    "pptx": "PowerPoint presentation",
    "xlsx": "Excel workbook",
    "xlsb": "Excel binary workbook",
    "visio": "Visio drawing",
    "iwork": "Apple iWork document",
    "odt": "OpenDocument text document",
    "ods": "OpenDocument spreadsheet",
    "odp": "OpenDocument presentation",
    "opendocument": "OpenDocument file",
    "epub": "EPUB book",
    "eml": "e-mail message",
    "zip": "zip archive",
    "png": "PNG image",
    "jpeg": "JPEG image",
    "gif": "GIF image",
    "tiff": "TIFF image",
    "webp": "WebP image",
    "svg": "SVG image",
    "gzip": "gzip archive",
    "bzip2": "bzip2 archive",
    "xz": "xz archive",
    "zstandard": "Zstandard archive",
    "7z": "7-Zip archive",
    "rar": "RAR archive",
    "tar": "tar archive",
    "sqlite": "SQLite database",
    "elf": "ELF program",
    "class": "compiled program",
    "wasm": "WebAssembly program",
    "mp3": "MP3 audio",
    "mp4": "MPEG-4 media",
    "ogg": "Ogg media",
    "flac": "FLAC audio",
    "wav": "WAV audio",
    "font": "font",
    "parquet": "Parquet table",
    "numpy": "NumPy array",
    "pdf": "PDF",
    "docx": "Word document",
    "binary": "binary file",
}

# Text by its bytes, but not text that a person would read as it stands; refused unless a reader claims the
# suffix.
SUFFIX_KINDS = {".eml": "eml", ".mht": "eml", ".mhtml": "eml", ".mbox": "eml", ".svg": "svg"}


def family(kind: str) -> str:
    """The name of a kind for a sentence.

    Example:
        >>> family("xlsx")
        'Excel workbook'
    """
    return _FAMILIES.get(kind, kind)


def sniff(data: bytes) -> str:
    """The kind of a binary format, or "" where the bytes may be text.

    Example:
        >>> sniff(b"%PDF-1.7 ..."), sniff(b"# Notes")
        ('pdf', '')
    """
    # Readers of PDF accept junk before the header, but only at the start of a line: this sentence would not
    # do.
    start = data[:1024]
    if start.startswith(b"%PDF-") or b"\n%PDF-1." in start or (b"%PDF-1." in start and b"\0" in start):
        return "pdf"
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(data)
    for offset, signature, kind in _SIGNATURES:
        if data.startswith(signature, offset):
            return _ole_kind(data) if kind == "ole" else kind
    return ""


def _zip_kind(data: bytes) -> str:
    from likewise.index.readers.package import Package

    try:
        package = Package(data)
        declared = package.read("mimetype")[:100].decode("ascii", "replace") if "mimetype" in package else ""
    except Unreadable:
        return "zip"  # damaged: a reader chosen by suffix says so, otherwise it is refused as an archive
    names = package.names
    if declared == "application/epub+zip":
        return "epub"
    if declared.startswith("application/vnd.oasis.opendocument."):
        flavour = declared.rpartition(".")[2].removesuffix("-template")
        return {"text": "odt", "spreadsheet": "ods", "presentation": "odp"}.get(flavour, "opendocument")
    folders = {name.partition("/")[0].lower() for name in names}
    if "[content_types].xml" in folders:
        if "xl/workbook.bin" in names:
            return "xlsb"
        for folder, kind in (("word", "docx"), ("xl", "xlsx"), ("ppt", "pptx"), ("visio", "visio")):
            if folder in folders:
                return kind
    if any(name.endswith(".iwa") for name in names) or "buildVersionHistory.plist" in names:
        return "iwork"
    return "zip"


def _ole_kind(data: bytes) -> str:
    """Which program an OLE compound file is from, told by the stream names in its directory."""

    def has(stream: str) -> bool:
        return stream.encode("utf-16-le") in data

    if has("EncryptedPackage"):
        return "encrypted-ooxml"
    streams = (
        ("WordDocument", "doc"),
        ("PowerPoint Document", "ppt"),
        ("Workbook", "xls"),
        ("__substg1.0", "msg"),
    )
    return next((kind for stream, kind in streams if has(stream)), "ole")
