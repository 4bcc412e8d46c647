"""The matcher `lemma-set`: whether an answer in other words means what an accepted one means."""
