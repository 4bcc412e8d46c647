"""Makes the tables of `katha.text` from WordNet."""
