"""The command line, one file per command; nothing here is imported before it is needed."""
