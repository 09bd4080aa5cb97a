"""Calls without samples: the same core, runtime and server session at a fraction of the cost, for sweeps.

What makes samples dear is left out at its two ends, and nothing in between:

========= ============================================================================================
told      speech as numbers: a frame of the caller's is one constant value that names its place in a line
line      a line that works out when a piece plays instead of playing it, and the caller at its far end
script    when the caller speaks
books     the provider behind the agent
gathering frames of one instant sent as one message
call      one call from beginning to end
========= ============================================================================================

Frames go up and replies come down as bytes on the same wire, so holding, pacing, cutting and the rule of turns are
those of a whole call. There is no noise, no echo and no codec here, nor a recording of the call.
"""

from callwright.sim.behind.backend import Books
from callwright.sim.quick.books import QuickProvider
from callwright.sim.quick.call import QuickCall, QuickResult, play_quick
from callwright.sim.quick.line import QuickLine
from callwright.sim.quick.told import ToldSpeech, spoken_line

__all__ = ["Books", "QuickCall", "QuickLine", "QuickProvider", "QuickResult", "ToldSpeech", "play_quick", "spoken_line"]
