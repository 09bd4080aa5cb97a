"""The call's state machines. Pure and synchronous: time is an argument, effects are commands."""
