"""A model that only the hub may have, and no network."""

from __future__ import annotations

import pytest

from likewise.embedder import load_encoder
from likewise.errors import EncoderNotFound


def test_without_a_network_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError

    def unreachable(self: object, repository: str) -> None:
        # What the HTTP library raises when no connection comes about.
        raise HfHubHTTPError.__bases__[0]("Name or service not known")

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)
    with pytest.raises(
        EncoderNotFound, match="cannot get some/model from the hub: Name or service"
    ) as caught:
        load_encoder("some/model")
    assert caught.value.remedy is not None and "check the network" in caught.value.remedy
