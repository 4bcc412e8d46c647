"""Makes the tables of `katha_sketch.english` from WordNet and from a sentence encoder."""
