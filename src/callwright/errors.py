"""Every exception that Callwright raises, in one tree.

```
CallwrightError
├── UsageError            you did something that can be put right before the call; says where and what to do
│   ├── DeclarationError  an agent, tool or spoken argument is declared wrongly (file and line)
│   └── ScenarioError     a scenario or rules file is wrong (file, line and column)
├── IllegalTransition     a state machine was given an event that its table does not allow; nothing changed
├── ProtocolError         abstract: the realtime protocol was broken
│   ├── LocalProtocolError   we were about to send what the provider cannot take
│   └── RemoteProtocolError  the provider sent what the protocol does not allow
├── ConnectionFailed      the model could not be reached or refused the session
├── LineFailed            the line broke, or could not be opened
├── AudioFormatError      an audio format is unknown, or bytes do not fit it
├── Refuse                an action is not to be done; raised by its function, with a reason for the model
├── LedgerError           the ledger's store cannot be opened, read or written
└── SimulationError       abstract: a simulated world cannot go on
    ├── DeadlockError     nothing is left to wait for, but the work is not done
    ├── OutsideWorldError something reached for a socket, a file descriptor or a child process in virtual time
    └── ScriptError       a strict script met something that it does not expect
```

The message of every error names the place, what was expected and what to do.
"""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """The end of a message about an extra that is not installed."""
    return f"pip install 'callwright[{extra}]', or in a clone: make setup EXTRAS={extra}"


class CallwrightError(Exception):
    """The root of all errors raised here."""


class UsageError(CallwrightError):
    """Wrong use that can be corrected before a call; the command line exits with 2."""


class DeclarationError(UsageError):
    """An agent, tool or spoken argument is declared wrongly; the message begins with file and line."""


class ScenarioError(UsageError):
    """A scenario or rules file is wrong; the message begins with ``file:line:column``."""


class IllegalTransition(CallwrightError):
    """An event that a machine's table does not allow in its present state; nothing has changed."""

    def __init__(self, machine: str, state: str, event: str) -> None:
        super().__init__(f"{machine}: {event} is not allowed in state {state}")
        self.machine = machine
        self.state = state
        self.event = event

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.machine, self.state, self.event), self.__dict__


class ProtocolError(CallwrightError):
    """The realtime protocol was broken; raised only as one of its two subclasses."""


class LocalProtocolError(ProtocolError):
    """This side was about to send something that the provider cannot take."""


class RemoteProtocolError(ProtocolError):
    """The provider sent something that the protocol does not allow."""


class ConnectionFailed(CallwrightError):
    """The model could not be reached, or refused the session.

    ``is_final`` says that another try would fare no better: a key that is wrong, for instance. ``status`` is the HTTP
    status that the handshake was answered with, ``retry_after_s`` when the server says that another try makes sense;
    None where there is none.
    """

    def __init__(
        self, reason: str, *, is_final: bool = False, status: int | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(reason)
        self.is_final = is_final
        self.status = status
        self.retry_after_s = retry_after_s


class LineFailed(CallwrightError):
    """The line could not be opened, or broke."""


class AudioFormatError(CallwrightError):
    """An audio format is unknown, or bytes do not fit it."""


class Refuse(CallwrightError):
    """Raised by a tool's or action's function: it is not done; the message is the reason, which the model is told."""


class LedgerError(CallwrightError):
    """The ledger's store cannot be opened, read or written, or is not fit to dispatch from."""


class SimulationError(CallwrightError):
    """A simulated world cannot go on."""


class DeadlockError(SimulationError):
    """Nothing is left to wait for in virtual time, but the work is not done."""


class OutsideWorldError(SimulationError):
    """Something reached outside the simulated world, for example for a socket."""


class ScriptError(SimulationError):
    """A strict script met an event that it does not expect, or ended with steps left over."""
