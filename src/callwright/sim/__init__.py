"""The simulator: virtual loop, local realtime server, scripted caller, simulated lines, scenarios."""
