"""Story to plan."""
