"""The public test kit: strict scripted model, line conformance suite."""
