"""Teaching a language model to plan: stories in, transition-aware plans out, as a LoRA adapter."""

from katha.planners.training.settings import TrainSettings, load_settings, preset_names

__all__ = ["TrainSettings", "load_settings", "preset_names"]
