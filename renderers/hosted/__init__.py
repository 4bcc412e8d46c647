"""Image services behind an API: `openai` (GPT Image) and `gemini` (Nano Banana), through the vendors' own SDKs."""
