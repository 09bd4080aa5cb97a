"""Adapters to the systems of record, where actions have their effects."""
