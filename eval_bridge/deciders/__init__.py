"""The models behind the matching rules `nli`, `embedding` and `llm`."""
