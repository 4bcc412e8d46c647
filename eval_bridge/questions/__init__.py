"""Questions: built from transitions, halved, given options, written by models."""
