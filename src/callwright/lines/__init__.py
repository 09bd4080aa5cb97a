"""Places where a call's audio comes from and goes to, one file each."""
