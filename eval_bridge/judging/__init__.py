"""The judging engine: packets in, typed answers out."""
