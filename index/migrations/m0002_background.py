"""Format 2: the distribution of the vectors, kept with the snapshot that it was computed from.

Little-endian float32, as vectors are stored; `sha256` is that of both, mean first. Forgotten with its
snapshot.
"""

from __future__ import annotations

STATEMENTS: tuple[str, ...] = (
    """
    CREATE TABLE background (
        generation INTEGER PRIMARY KEY,
        count      INTEGER NOT NULL,
        mean       BLOB NOT NULL,
        covariance BLOB NOT NULL,
        sha256     TEXT NOT NULL
    )
    """,
)
