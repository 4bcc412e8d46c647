"""Bodies, faces and signs of the sketch: the rigs that draw every animal and person of the vocabulary."""
