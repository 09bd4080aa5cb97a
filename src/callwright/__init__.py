"""Realtime voice agents that are heard, whole, once and told."""
