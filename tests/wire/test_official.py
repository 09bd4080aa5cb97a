"""The check against the official package fails where it must; all other checks lean on it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from tests.wire.official import assert_official_client, assert_official_server

TRUNCATE = {"type": "conversation.item.truncate", "item_id": "i", "content_index": 0, "audio_end_ms": 1}


def test_a_missing_field_fails():
    with pytest.raises(ValidationError, match="content_index"):
        assert_official_client({name: value for name, value in TRUNCATE.items() if name != "content_index"})


def test_a_field_that_the_official_package_does_not_declare_fails():
    with pytest.raises(AssertionError, match="heard_ms"):
        assert_official_client(TRUNCATE | {"heard_ms": 1})


def test_an_undeclared_field_deep_inside_fails():
    session = {"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcm", "rate": 24000, "bits": 16}}}}
    with pytest.raises(AssertionError, match=r"session\.audio\.input\.format.*bits"):
        assert_official_client({"type": "session.update", "session": session})


def test_an_event_of_the_other_direction_fails():
    with pytest.raises(AssertionError, match="truncate"):
        assert_official_server(TRUNCATE | {"event_id": "e"})


def test_a_content_type_of_an_older_spelling_fails():
    item = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "a"}]}
    with pytest.raises(ValidationError):
        assert_official_client({"type": "conversation.item.create", "item": item})
