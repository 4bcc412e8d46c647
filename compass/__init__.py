"""The Semantic Compass (Secs. B.5 and B.6): score candidates, find the weakest transition, decide on one bridge."""
