"""The encoder of an index: loaded when first needed, and never one that its vectors do not come from."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.embedder import encoder_identity, load_encoder
from likewise.errors import EncoderMismatch, EncoderNotFound
from likewise.index.records import Json
from likewise.index.stored import Meta, stored_encoder

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder


class EncoderSlot:
    """Holds an encoder or the name of one.

    Args:
        given: An encoder, its name, or None for the one that the index was made with.
        folder: The index folder, for messages.
    """

    def __init__(self, given: TextEncoder | str | None, folder: Path) -> None:
        self._given = given
        self._folder = folder
        self._loaded: TextEncoder | None = None if isinstance(given, str) else given
        self._mutex = threading.Lock()

    def name(self, meta: Meta) -> str:
        """Name of the encoder, without loading it; "" for a new index and the default encoder."""
        if self._given is None:
            return self._found_again(str(stored_encoder(meta).get("name", "")))
        return self._given if isinstance(self._given, str) else self._given.name

    def _found_again(self, stored: str) -> str:
        """The stored name, or where an encoder inside the index folder is since the folder was moved."""
        path = Path(stored)
        if path.is_absolute() and not path.is_dir() and (self._folder / path.name).is_dir():
            return str(self._folder / path.name)
        return stored

    def lasting_name(self, encoder: TextEncoder) -> str:
        """Name under which the encoder is found again, from whatever working directory."""
        name = self._given if isinstance(self._given, str) else encoder.name
        return str(Path(name).absolute()) if Path(name).is_dir() else name

    def ready(self, fingerprint: str) -> TextEncoder | None:
        """The encoder, if it is loaded and has this fingerprint."""
        loaded = self._loaded
        return loaded if loaded is not None and loaded.fingerprint == fingerprint else None

    def is_settled(self, meta: Meta) -> bool:
        """Whether the encoder is the index's as far as can be told without loading it."""
        stored = stored_encoder(meta)
        if not stored or self._given is None:
            return True
        if self._loaded is not None:
            return self._loaded.fingerprint == stored.get("fingerprint")
        return self._given == stored.get("name")

    def load(self, meta: Meta) -> TextEncoder:
        """The encoder, whether or not it is the index's.

        Raises:
            EncoderError: It cannot be found or loaded.
        """
        with self._mutex:
            stored = stored_encoder(meta)
            # Another process may have given the index another encoder since this one was loaded.
            follow = self._given is None and bool(stored) and self._loaded is not None
            if self._loaded is None or (follow and self._loaded.fingerprint != stored.get("fingerprint")):
                self._loaded = load_encoder(self.name(meta) or None)
            return self._loaded

    def checked(self, meta: Meta) -> TextEncoder:
        """The encoder, if the vectors of the index come from it.

        Raises:
            EncoderMismatch: They come from another one.
            EncoderError: It cannot be found or loaded.
        """
        stored = stored_encoder(meta)
        self._refuse_unseen(stored)
        encoder = self.load(meta)
        if not stored or encoder.fingerprint == stored.get("fingerprint"):
            return encoder
        name = stored.get("name")
        if name in (encoder.name, self.lasting_name(encoder)):
            raise EncoderMismatch(
                f"the encoder {name} is not the same as when the index {self._folder} was made",
                remedy="restore the model, or embed everything anew: likewise index --reembed",
            )
        raise self._made_with(name, encoder.name)

    def _refuse_unseen(self, stored: Mapping[str, Json]) -> None:
        """Refuse an encoder that is not on this machine and has another name than the index's.

        It is fetched only to take the other one's place, which is not done here.
        """
        given = self._given
        if not stored or not isinstance(given, str) or self._loaded or given == stored.get("name"):
            return
        try:
            encoder_identity(given)
        except EncoderNotFound:
            raise self._made_with(stored.get("name"), given) from None

    def _made_with(self, name: object, other: str) -> EncoderMismatch:
        return EncoderMismatch(
            f"the index {self._folder} was made with the encoder {name}, not with {other}",
            remedy=f"use {name}, or embed everything anew: likewise index --encoder {other} --reembed",
        )
