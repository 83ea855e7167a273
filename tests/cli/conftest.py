"""A small folder in three languages, indexed once, and a way to run commands in it."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from likewise.cli.main import cli

DOCUMENTS = {
    "keys.md": """# Signing keys

Keys are kept in the vault and never leave it.

## Rotation

Rotate the signing key once a year. Create the new key first, then retire the old one.

## Revocation

A revoked key is listed in the bulletin. Call the duty officer before you revoke anything.
""",
    "backups.md": """# Backups

Backups run every night at two. They are kept for thirty days.

## Restoring

To restore a backup, stop the service, copy the archive, and start the service again.
""",
    "zh/金鑰.md": """# 簽署金鑰

金鑰存放在保險庫中，絕不離開。

## 輪替

簽署金鑰每年輪替一次。先建立新的金鑰，再停用舊的金鑰。
""",
    "zh/备份.md": """# 备份

备份每天凌晨两点运行，保留三十天。

## 恢复

恢复备份时，先停止服务，再复制归档，最后启动服务。
""",
    "notes.txt": "Lunch is at noon. The canteen closes at two.\n",
    "empty.txt": "",
}

Run = Callable[..., Result]


def write_documents(folder: Path) -> None:
    for name, text in DOCUMENTS.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with its index; not to be changed."""
    folder = tmp_path_factory.mktemp("handbook")
    write_documents(folder)
    result = CliRunner().invoke(cli, ["index", str(folder), "--encoder", "hash"])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def handbook(indexed: Path, tmp_path: Path) -> Path:
    """A copy of the folder with its index, to be changed at will."""
    return Path(shutil.copytree(indexed, tmp_path / "handbook"))


@pytest.fixture
def run(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in the indexed folder, with standard output and error apart."""
    for name in ("LIKEWISE_INDEX", "LIKEWISE_BASE_URL", "LIKEWISE_MODEL", "LIKEWISE_LOCAL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    # An error that nobody foresaw shows its traceback.
    monkeypatch.setenv("LIKEWISE_DEBUG", "1")
    monkeypatch.chdir(indexed)

    def invoke(*arguments: str, **options: object) -> Result:
        return CliRunner().invoke(cli, list(arguments), prog_name="likewise", **options)  # type: ignore[arg-type]

    return invoke


class _Chat(BaseHTTPRequestHandler):
    """Answers every chat with the server's `reply`, word by word, as server-sent events."""

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, ChatServer)
        length = int(self.headers["Content-Length"])
        server.requests.append(json.loads(self.rfile.read(length)))
        if server.status != 200:
            self.send_error(server.status, "no such model")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        words = server.reply.split(" ")
        for position, word in enumerate(words):
            piece = word if position == len(words) - 1 else word + " "
            self._event({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, value: object) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class ChatServer(ThreadingHTTPServer):
    """A server with the OpenAI chat protocol on a free port of this machine."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Chat)
        self.reply = "Rotate the signing key once a year [1]."
        self.status = 200
        self.requests: list[dict[str, object]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    server = ChatServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
