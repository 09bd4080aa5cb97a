"""How Hypothesis searches: the same examples in every run; ``--hypothesis-profile=explore`` asks for new ones."""

from hypothesis import settings

settings.register_profile("house", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("house")
