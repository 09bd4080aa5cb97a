"""What was done on the world: operations, their attempts, and who has been told."""
