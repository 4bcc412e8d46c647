"""Pages made from files alone: one frame, one number format, one question table, one board strip."""
