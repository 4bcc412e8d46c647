"""Questions of a plain text, and what could be wrong answers to them, by rule."""
