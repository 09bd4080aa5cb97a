"""A simulated model that answers by rules, and what is in the files that it answers by.

========= =====================================================
model     the model: history in, what it says or calls out
rulebook  a rules file, read
phrases   what is understood: words in any order
arguments where the arguments of a tool call come from
========= =====================================================
"""

from callwright.sim.rules.model import RulesModel
from callwright.sim.rules.rulebook import BEHAVIORS, line_of, spoken_arguments

__all__ = ["BEHAVIORS", "RulesModel", "line_of", "spoken_arguments"]
