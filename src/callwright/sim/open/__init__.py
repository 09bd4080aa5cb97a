"""The local server for free speech: it hears what anybody says, and answers in words that nobody recorded.

```
caller's audio ── session (turns, history, pacing) ── HearWords ── recogniser, in a process of its own
                                                   └─ MakeReply ── thinker ─┬─ rules and recorded lines of a demo
                                                                            └─ chat endpoint ── sentences ── voice
```

The session is the one that simulated calls have; what it cannot have at once are its errands. Nothing here is needed
for a simulated call, and no test needs the packages of the extra ``local``.

========== ==============================================================
senses     what a recogniser, a thinker and a voice are
peer       a session whose errands are run on the event loop
messages   a conversation as a chat endpoint takes it; pure
chat       a chat endpoint as the thinker
thoughts   what a model thinks and does not say; pure
sentences  a text that comes in pieces, as sentences that can be spoken
recorded   rules and recorded lines as the thinker
workers    recogniser and voice of the extra, each in a process of its own
timing     where the words of a sentence lie in its sound; pure
sessions   the sessions, and what they share
========== ==============================================================
"""
