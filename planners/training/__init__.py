"""Teaching a language model to plan: stories in, transition-aware plans out, as a LoRA adapter."""
