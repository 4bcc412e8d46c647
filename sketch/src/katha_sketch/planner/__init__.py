"""Plans a story by rules of English: planner `rule`."""
