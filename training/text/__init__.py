"""Makes the tables of `katha.text` from WordNet and from a sentence encoder."""
