"""Why a call has no figures. It counts as a failure, and nothing of it is taken for zero.

A call that did not try what it was meant to is void. One that broke off, or came to its limit, before that could be
seen is censored: what it would have come to is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callwright.measure.goodbye import AGENT, hung_up_on

if TYPE_CHECKING:
    from callwright.measure.hearing import HeardCall
    from callwright.sim.record import CallerLine


_CENSORED = "CENSORED"


def is_censored(reason: str) -> bool:
    """Whether a call with this reason broke off; one that did not is void."""
    return reason.startswith(_CENSORED)


def void_reason(call: HeardCall) -> str | None:
    """Why this call is void or censored; None if it is neither."""
    record = call.record
    faults = [f"the call broke off: {record.error}"] if record.error else []
    if record.is_elsewhere and record.session_ready_ms is None and not record.error:
        faults.append("the server opened no session")
    faults += filter(None, [script_fault(call)])
    faults += [f"{what} never had an occasion" for what in record.unfired]
    kind = _CENSORED if record.error else "VOID"
    return f"{kind} {record.scenario} seed {record.seed}: {'; '.join(faults)}" if faults else None


def script_fault(call: HeardCall) -> str | None:
    """What of the caller's script did not happen; None if all of it did."""
    for number, line in enumerate(call.record.caller_lines, 1):
        if line.is_interruption and not line.overlapped_ms:
            what = f"{_ended(call, line)}, trigger {_seconds(line.started_ms)}"
            return f"line {number} overlapped 0 ms of speech ({what})"
    if call.record.unspoken and not hung_up_on(call):  # who is hung up on while he speaks is not to blame
        ended = "the agent hung up" if call.record.ended_by == AGENT else "call ended"
        return f"{call.record.unspoken[0]} never came ({ended} {_seconds(call.record.ended_ms)})"
    return None


def _ended(call: HeardCall, line: CallerLine) -> str:
    """When the last audible reply before a line ended."""
    bounds = ((reply.played.first_audible_ms, reply.played.last_audible_ms) for reply in call.replies)
    ends = [end for start, end in bounds if start is not None and end is not None and start < line.started_ms]
    return f"reply ended {_seconds(max(ends))}" if ends else "no reply was heard"


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.2f} s"
