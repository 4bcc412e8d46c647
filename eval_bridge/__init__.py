"""The KathaTrace protocol: questions, evidence packets, judges, matching and scores."""
