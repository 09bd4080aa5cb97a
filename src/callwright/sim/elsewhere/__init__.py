"""The server's side of a call where the server is not ours: what the wire shows of it, read on each connection.

```
client  <── tap <── server      every message both ways, on the call's clock
             │
             └── replies: ids, audio, whole text, tool      truncates, refused ones among them
                 turns of the caller, tools and outputs     interruptions that were told
close   ──> tap ──> retrieve what was cut ── its text ── closed
```

What crosses no wire is not known, and said to be so: what the model's ear got, and what history holds of a reply that
was cut, or of a turn of the caller's, and that the server gives no text of. When words lie in a reply is estimated.

======= =============================================================
book    the server's side of a whole call, and the tap
session what one connection's messages tell
history the conversation of one session
placing where the words of a reply lie in its audio
======= =============================================================
"""
