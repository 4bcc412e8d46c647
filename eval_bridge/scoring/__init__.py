"""From answers to scores."""
