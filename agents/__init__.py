"""The state machine that turns one story into a repaired storyboard, and the calls that run it."""
