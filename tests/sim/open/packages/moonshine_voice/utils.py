"""Where the models of the stand-in would lie."""

from pathlib import Path


def get_assets_path() -> Path:
    return Path("assets")
