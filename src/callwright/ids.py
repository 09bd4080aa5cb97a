"""Names for the identifiers and units that travel through a call.

``call_id`` is the conversation; the wire's ``call_id`` of a function call is a ``ToolCallId`` everywhere else.
"""

from __future__ import annotations

from typing import NewType

CallId = NewType("CallId", str)
ItemId = NewType("ItemId", str)
"""One message, tool call or tool output in the model's conversation; the provider's id, byte for byte."""
ResponseId = NewType("ResponseId", str)
ToolCallId = NewType("ToolCallId", str)
"""The provider's id of a tool call, returned byte for byte."""
MarkId = NewType("MarkId", str)
"""A named point in outgoing audio; returned by a line when reached or when cleared."""
EventId = NewType("EventId", str)
"""Id of an event that this side sends; an error names it."""

Ms = int
"""Milliseconds, a whole number; an instant on the call's clock or a length."""
Samples = int
"""A count of samples of one channel."""
