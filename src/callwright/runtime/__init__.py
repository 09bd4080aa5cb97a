"""The asyncio shell around the core: one call's pump, tool runner, recorder and trace."""
