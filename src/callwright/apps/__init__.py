"""The demo agents, written only on the public API; scenarios and speech are package data."""
