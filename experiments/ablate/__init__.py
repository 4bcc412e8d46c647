"""A suite of modes over many stories."""
