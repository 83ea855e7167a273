"""A folder with titles, sections and prose in two languages, indexed with the hash encoder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from likewise.index.index import Index
from likewise.index.settings import ChunkSettings

GUIDE = {
    "keys.md": """# Rotating signing keys

Every release is signed by the build machine before it leaves the company network.
The vault hands out a fresh signature request to each worker on a regular schedule.

## Who may revoke them

The duty officer calls the security team and records the reason in the bulletin.
Nobody else may remove an entry from the list of trusted certificates in production.

## Storing the backups offline

Tapes are carried to a bunker each Friday by two people who sign a paper form.
The bunker has no network connection and only three persons know its address.
""",
    "holidays.md": """# Asking for a holiday

Tell your manager at least three weeks before you want to travel somewhere warm.
The calendar shows which colleagues in your group are already away in that month.

## When illness strikes

Send a message before nine in the morning so that meetings can be moved in time.
A note from a doctor is only needed from the fourth day of absence onwards.
""",
    "zh/金鑰.md": """# 簽署金鑰的輪替

發行版本離開公司網路之前，一律由建置主機完成簽章。
保險庫按照固定的時程，把新的簽章請求交給每一個工作節點。

## 誰可以撤銷憑證

值班主管先打電話通知資安團隊，再把原因登記在公告欄上。
除此之外，任何人都不得從正式環境的信任清單中移除項目。
""",
    "generic-a.md": "# Overview of everything\n\nThis page says very little about the lower shelf.\n",
    "generic-b.md": "# Overview of everything\n\nThis page says very little about the upper shelf.\n",
}


@pytest.fixture(scope="session")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder; its index is in `.likewise`."""
    folder = tmp_path_factory.mktemp("guide")
    for name, text in GUIDE.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    with Index.open(folder / ".likewise", encoder="hash") as index:
        index.sync([folder], chunking=ChunkSettings(target_tokens=40))
    return folder


@pytest.fixture
def guide_index(guide: Path) -> Iterator[Index]:
    """The open index of the folder."""
    with Index.open(guide / ".likewise") as index:
        yield index
