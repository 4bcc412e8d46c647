"""KathaBench-25K in its released files: checking, counting, dividing; a matcher measured on labelled pairs."""
