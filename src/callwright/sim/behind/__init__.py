"""What is behind the agent of a simulated call: the payment provider, the ledger, and processes that may die.

========== =====================================================================
settings   what a scenario says of it, and what the caller did in an earlier call
backend    the world behind the agent while calls are played
dying      processes that die at a named point
inspection what became of a run: the provider's book, the ledger's rows, the texts
========== =====================================================================
"""
