"""Calls that are taken by a client which is a program of its own, in any language, by the wall clock.

```
the program ── CALLWRIGHT_MODEL_URL ── local realtime server ── rules model
     └──────── CALLWRIGHT_AUDIO_URL ── audio socket ── line ── scripted caller
```

============ =====================================================================
call         one call from beginning to end
process      the program: started, and gone with whatever it has started
audio_socket the line, behind a WebSocket
wiretap      the session, as far as a call's record has it
quoted       what it said, as people may read it
streamed     which reply the audio is part of that the program hands over
============ =====================================================================
"""
