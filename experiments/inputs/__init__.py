"""The stories that an experiment reads, and evaluation sets that are built of them."""
