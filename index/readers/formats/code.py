"""Source code and configuration: the file itself, with cuts before top-level definitions.

No grammar is used: definitions are told by how their first line begins at the left margin, which works for
code that does not compile and for languages without a parser here. Comments and decorators right above a
definition belong to it.
"""

from __future__ import annotations

import re

from likewise.index.readers.base import Reader, Source
from likewise.index.readers.decoding import decode
from likewise.index.readers.lines import Line, split_lines
from likewise.index.records import Extraction, Span

_C_LIKE = (
    r"(?:export|default|public|private|protected|internal|static|final|abstract|sealed|open|data|async|override"
    r"|virtual|inline|extern|unsafe|pub(?:\([^)]*\))?|const|constexpr|declare|partial|readonly|suspend|template"
    r"|typedef)\b[^=;]*[({:;<]?|(?:class|struct|enum|union|interface|trait|impl|fn|func|function|type|mod|module"
    r"|namespace|object|record|protocol|extension|using|let|var|val|fun|macro_rules!|actor|companion|contract)\b"
    r"|[A-Za-z_][\w:<>,*&\[\] .?]*\([^;]*$"
)
_HASH, _SLASHES, _DASHES = r"#", r"//|/\*|\*", r"--"

# Family: how a definition begins, and how a comment or decorator above it does.
_FAMILIES = {
    "python": (r"(?:async\s+def|def|class)\b|if __name__", r"#|@"),
    "ruby": (r"(?:def|class|module|describe|context)\b", _HASH),
    "shell": (r"(?:function\s+[\w:-]+|[\w:-]+\s*\(\))", _HASH),
    "c-like": (_C_LIKE, rf"{_SLASHES}|@|#\[|\[|///"),
    "sql": (r"(?:CREATE|ALTER|INSERT|SELECT|WITH|UPDATE|DELETE|DROP|GRANT)\b", _DASHES),
    "lisp": (r"\(", r";"),
    "haskell": (r"(?:module|data|type|newtype|class|instance|import)\b|[a-z_][\w']*\s*::", r"--|\{-"),
    "lua": (r"(?:local\s+)?function\b|[\w.]+\s*=\s*function", _DASHES),
    "perl": (r"(?:sub|package)\b", _HASH),
    "elixir": (r"(?:defmodule|def|defp|defmacro|-module|-spec|[a-z]\w*\()", r"#|@|%"),
    "r": (r"[\w.]+\s*(?:<-|=)\s*function", _HASH),
    "julia": (r"(?:function|struct|mutable|module|macro|abstract)\b|[\w!]+\([^)]*\)\s*=", rf'{_HASH}|"""|@'),
    "section": (r"\[", r"[#;]"),
    "key": (r"[^\s#\-][^:]*:(?:\s|$)|---", _HASH),
    "makefile": (r"[^\s#:=]+[^:=]*:(?!=)|define\b", _HASH),
    "tex": (r"\\(?:part|chapter|section|subsection|begin\{document\}|appendix)", r"%"),
    "css": (r"[^\s}/][^{}]*[{,]\s*$|@", r"/\*|\*|//"),
    "docker": (r"FROM\b", _HASH),
    "markup": (r"<\w", r"<!--"),
    "other": (r"(?!)", r"(?!)"),
}
_COMPILED = {
    name: (re.compile(start, re.I if name == "sql" else 0), re.compile(above))
    for name, (start, above) in _FAMILIES.items()
}

# Language: its family and its suffixes.
_LANGUAGES: dict[str, tuple[str, str]] = {
    "python": ("python", ".py .pyi .pyw .pyx .pxd"),
    "cython": ("python", ".pxi"),
    "javascript": ("c-like", ".js .mjs .cjs .jsx"),
    "typescript": ("c-like", ".ts .mts .cts .tsx"),
    "java": ("c-like", ".java"),
    "kotlin": ("c-like", ".kt .kts"),
    "scala": ("c-like", ".scala .sc"),
    "groovy": ("c-like", ".groovy .gradle"),
    "c": ("c-like", ".c .h"),
    "c++": ("c-like", ".cc .cpp .cxx .hh .hpp .hxx .ipp .inl"),
    "cuda": ("c-like", ".cu .cuh"),
    "c#": ("c-like", ".cs"),
    "objective-c": ("c-like", ".m .mm"),
    "go": ("c-like", ".go"),
    "rust": ("c-like", ".rs"),
    "swift": ("c-like", ".swift"),
    "dart": ("c-like", ".dart"),
    "php": ("c-like", ".php"),
    "zig": ("c-like", ".zig"),
    "solidity": ("c-like", ".sol"),
    "protobuf": ("c-like", ".proto"),
    "graphql": ("c-like", ".graphql .gql"),
    "vue": ("markup", ".vue .svelte"),
    "ruby": ("ruby", ".rb .rake .gemspec"),
    "shell": ("shell", ".sh .bash .zsh .fish .ksh"),
    "powershell": ("c-like", ".ps1 .psm1 .psd1"),
    "batch": ("other", ".bat .cmd"),
    "sql": ("sql", ".sql .ddl"),
    "lisp": ("lisp", ".el .lisp .lsp .cl .scm .ss .rkt .clj .cljs .cljc .edn"),
    "haskell": ("haskell", ".hs .lhs .elm .purs"),
    "ocaml": ("c-like", ".ml .mli .fs .fsi .fsx"),
    "lua": ("lua", ".lua"),
    "perl": ("perl", ".pl .pm .t"),
    "elixir": ("elixir", ".ex .exs .erl .hrl"),
    "r": ("r", ".r"),
    "julia": ("julia", ".jl"),
    "nim": ("python", ".nim"),
    "fortran": ("other", ".f .f90 .f95 .for"),
    "assembly": ("other", ".asm .s"),
    "toml": ("section", ".toml"),
    "ini": ("section", ".ini .cfg .conf .properties .editorconfig"),
    "yaml": ("key", ".yaml .yml"),
    "makefile": ("makefile", ".mk .mak"),
    "cmake": ("elixir", ".cmake"),
    "terraform": ("c-like", ".tf .tfvars .hcl"),
    "nix": ("other", ".nix"),
    "tex": ("tex", ".tex .sty .cls .bib .ltx"),
    "css": ("css", ".css .scss .sass .less"),
    "xml": ("markup", ".xml .xsd .xsl .xslt .rss .atom .opml .plist .wsdl .xaml .resx .po"),
    "diff": ("other", ".diff .patch"),
    "vim": ("other", ".vim"),
}
_NAMES = {
    "makefile": "makefile", "gnumakefile": "makefile", "dockerfile": "docker", "containerfile": "docker",
    "jenkinsfile": "groovy", "rakefile": "ruby", "gemfile": "ruby", "vagrantfile": "ruby", "podfile": "ruby",
    "justfile": "makefile", "cmakelists.txt": "cmake", "go.mod": "other",
}  # fmt: skip
_SUFFIXES = {suffix: name for name, (_, suffixes) in _LANGUAGES.items() for suffix in suffixes.split()}
_SHEBANG = re.compile(r"#!\s*\S*?(?:env\s+(?:-\S+\s+)*)?([a-z]+)[\d.]*(?:\s|$)")
_INTERPRETERS = {"python": "python", "bash": "shell", "sh": "shell", "zsh": "shell", "node": "javascript",
                 "ruby": "ruby", "perl": "perl", "lua": "lua"}  # fmt: skip

_DECLARED = (
    re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)"),  # PEP 263, Emacs and vim
    re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([-\w.]+)"),
    re.compile(rb"@charset\s+\"([-\w.]+)\""),
)
_NAME_CHARACTERS = 200


def _read(source: Source) -> Extraction:
    decoded = decode(source.data, declared=_declared(source.data), strict=source.kind == "unknown")
    language = _language(source, decoded.text)
    family = _LANGUAGES[language][0] if language in _LANGUAGES else language
    return Extraction(
        text=decoded.text,
        reader="",
        breaks=_breaks(split_lines(decoded.text), *_COMPILED.get(family, _COMPILED["other"])),
        verbatim=(Span(0, len(decoded.text)),) if decoded.text else (),
        metadata={"code": language} if language != "other" else {},
        encoding=decoded.encoding,
        lossy=decoded.lossy,
    )


def _breaks(lines: list[Line], definition: re.Pattern[str], above: re.Pattern[str]) -> tuple[int, ...]:
    breaks: list[int] = []
    head: int | None = None  # where the comments and decorators right above begin
    for line in lines:
        # Only the beginning of a line tells, and minified code has lines of megabytes.
        content = line.text[:_NAME_CHARACTERS]
        if not content.strip():
            head = None
        elif above.match(content):
            head = line.start if head is None else head
        elif content[0] in " \t":
            # The second line of a decorator or comment goes on with it.
            continue
        else:
            if definition.match(content):
                breaks.append(line.start if head is None else head)
            head = None
    return tuple(offset for offset in breaks if offset)


def _language(source: Source, text: str) -> str:
    if source.name in _NAMES:
        return _NAMES[source.name]
    if source.suffix in _SUFFIXES:
        return _SUFFIXES[source.suffix]
    shebang = _SHEBANG.match(text[:200])
    return _INTERPRETERS.get(shebang[1], "other") if shebang else "other"


def _declared(data: bytes) -> str:
    for line in data[:1000].splitlines()[:3]:
        for pattern in _DECLARED:
            if match := pattern.search(line):
                return match[1].decode("ascii")
    return ""


READER = Reader(
    name="code",
    version=1,
    read=_read,
    suffixes=frozenset(_SUFFIXES),
    names=frozenset(_NAMES),
)
