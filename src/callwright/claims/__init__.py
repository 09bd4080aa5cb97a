"""Pure: what a sentence claims about an action, and the numbers in it."""
