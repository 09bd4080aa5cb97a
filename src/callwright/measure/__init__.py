"""Figures from a finished call: trace, recording and the simulator's truth, on one clock. Pure."""
