"""Codecs and provider profiles: realtime events to and from JSON text. Pure."""
