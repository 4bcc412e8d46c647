"""Evidence packets: what a judge sees, and what it is told."""
