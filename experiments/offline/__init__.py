"""What is counted from answers that are there already: scores, robustness, the tables of evaluators."""
