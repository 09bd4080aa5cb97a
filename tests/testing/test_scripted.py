"""The scripted model is strict: what its script does not say is a failure, at once and by number."""

import pytest

from callwright.audio.formats import PCMU_8K
from callwright.errors import ScriptError
from callwright.testing.scripted import ScriptedModel, Step, after, close, emit, expect
from callwright.wire.client import (
    ConversationItemTruncate,
    InputAudioBufferAppend,
    ResponseCreate,
    SessionUpdate,
)
from callwright.wire.codec import encode, encode_append
from callwright.wire.objects import Audio, AudioInput, Session, WireFormat
from callwright.wire.server import SessionCreated

PCMU_UPDATE = SessionUpdate(session=Session(audio=Audio(input=AudioInput(format=WireFormat(type="audio/pcmu")))))
UPDATE = SessionUpdate(session=Session(instructions="Be kind."))
CUT = ConversationItemTruncate(item_id="item_1", content_index=0, audio_end_ms=700)
DONE = {"type": "response.done"}


def connected(*steps: Step) -> ScriptedModel:
    model = ScriptedModel(*steps)
    model.connect(0)
    return model


def test_a_script_is_played_step_by_step_and_on_time():
    greeting = SessionCreated(session=Session())
    model = connected(emit(greeting), expect("session.update"), after(50), emit(DONE), close(4410))
    assert model.outgoing() == [encode(greeting)]
    assert model.next_deadline_ms() is None
    model.receive(encode(UPDATE), 100)
    assert (model.outgoing(), model.next_deadline_ms(), model.closing) == ([], 150, None)
    model.tick(150)
    assert model.outgoing() == [b'{"type":"response.done"}']
    assert model.closing == (4410, "")
    model.finish()


def test_an_event_that_is_not_expected_fails_at_once_with_its_step():
    model = connected(expect("session.update"), emit(DONE), expect("response.create"))
    model.receive(encode(UPDATE), 0)
    with pytest.raises(ScriptError, match=r"step 3 of 3 expects response.create; the client sent .*truncate.*item_1"):
        model.receive(encode(CUT), 10)
    with pytest.raises(ScriptError, match="step 3"):
        model.finish()  # whoever swallowed it hears of it again


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"audio_end_ms": 701}, r"step 1 of 1 expects .*truncate: .*\.audio_end_ms: expected 701, got 700"),
        ({"why": "x"}, r"\.why: expected 'x', got nothing"),
    ],
)
def test_a_field_that_differs_fails_with_both_values(fields, told):
    with pytest.raises(ScriptError, match=told):
        connected(expect("conversation.item.truncate", **fields)).receive(encode(CUT), 0)


def test_fields_are_compared_inside_objects_and_may_be_anything():
    wanted = {"audio": {"input": {"format": {"type": "audio/pcmu"}}}}
    model = connected(expect("session.update", session=wanted), expect("conversation.item.truncate", audio_end_ms=...))
    model.receive(encode(PCMU_UPDATE), 0)
    model.receive(encode(CUT), 0)
    model.finish()


def test_steps_left_over_fail_at_the_end():
    model = connected(expect("session.update"), emit(DONE))
    with pytest.raises(ScriptError, match=r"step 1 of 2 expects session\.update; nothing more came"):
        model.finish()
    model = connected(after(50), emit(DONE))
    with pytest.raises(ScriptError, match="step 1 of 2 waits 50 ms"):
        model.finish()


def test_an_event_after_the_last_step_fails():
    with pytest.raises(ScriptError, match="after the last of 0 steps; the client sent"):
        connected().receive(encode(ResponseCreate()), 0)


def test_an_expected_event_may_come_during_the_wait_before_it():
    model = connected(after(50), expect("response.create"), emit(DONE))
    model.receive(encode(ResponseCreate()), 20)
    assert model.outgoing() == []
    model.tick(50)
    assert len(model.outgoing()) == 1
    model.finish()


def test_an_event_before_the_server_has_spoken_fails():
    model = connected(after(50), emit(DONE), expect("response.create"))
    with pytest.raises(ScriptError, match="step 2 of 3 emits"):
        model.receive(encode(ResponseCreate()), 20)


def test_the_callers_audio_is_passed_over_and_counted():
    model = connected(expect("session.update"), expect("response.create"))
    model.receive(encode(PCMU_UPDATE), 0)
    for at_ms in range(0, 100, 20):
        model.receive(encode_append(PCMU_8K.silence(20)), at_ms)
    model.receive(encode(ResponseCreate()), 100)
    assert model.audio_ms == 100
    model.finish()


def test_audio_that_is_expected_is_not_passed_over():
    model = connected(expect("input_audio_buffer.append"), expect("response.create"))
    model.receive(encode(InputAudioBufferAppend(audio=b"\x00\x00")), 0)
    model.receive(encode(ResponseCreate()), 0)
    model.finish()


def test_what_no_server_takes_fails():
    with pytest.raises(ScriptError, match=r"no server takes: .*truncate.*audio_end_ms"):
        connected(expect("conversation.item.truncate")).receive(
            b'{"type":"conversation.item.truncate","item_id":"x","content_index":0}', 0
        )


def test_bytes_are_emitted_as_they_are():
    assert connected(emit(b"{not json")).outgoing() == [b"{not json"]


def test_nothing_counts_after_the_close():
    model = connected(close(1011, "broken"))
    model.receive(encode(ResponseCreate()), 0)
    model.disconnect(10)
    assert model.closing == (1011, "broken")
    model.finish()
