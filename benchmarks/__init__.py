"""Benchmarks: `python -m benchmarks [NAME ...]` prints one JSON object a line, each with a ratio against a named
baseline measured in the same run. They are never timed tests."""
