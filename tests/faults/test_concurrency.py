"""One process writes and publishes while others read: every view is a whole state, none older than before."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from likewise.index.catalogue import Catalogue
from likewise.index.lock import WriterLock
from likewise.index.snapshot import publish

READER = Path(__file__).with_name("reader_process.py")
VERSIONS = 40


def test_readers_in_other_processes_see_only_whole_states(empty_index, make_document):
    def state(version):
        filler = [make_document(f"filler {version}", [f"filler number {version}"])] if version else []
        return [
            make_document("left", [f"left {version}"]),
            make_document("right", [f"right {version}"]),
            *filler,
        ]

    with WriterLock(empty_index), Catalogue.open(empty_index, mode="write") as catalogue:
        catalogue.apply(state(0))
        readers = [
            subprocess.Popen(
                [sys.executable, READER, str(empty_index)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(3)
        ]
        for reader in readers:
            assert reader.stdout.readline() == "ready\n"
        for version in range(1, VERSIONS + 1):
            catalogue.apply(state(version))
            if version % 3 == 0:
                publish(catalogue, empty_index)
        results = [(reader, *reader.communicate("")) for reader in readers]
    for reader, output, errors in results:
        assert reader.returncode == 0, errors
        report = json.loads(output)
        assert report["last"] == VERSIONS
        assert report["views"] >= report["versions"] >= 1
    # Otherwise the readers only looked before and after, and nothing was tested.
    assert max(json.loads(output)["versions"] for _, output, _ in results) > 2
