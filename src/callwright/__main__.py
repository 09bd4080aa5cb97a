"""``python -m callwright`` is the command line."""

from callwright.cli.main import main

main(prog_name="callwright")
