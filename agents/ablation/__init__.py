"""A suite of modes over many stories: every distinct frame drawn once, every distinct question asked once."""

from katha.agents.ablation.job import AblationJob, AblationResult
from katha.agents.ablation.runner import run_ablation

__all__ = ["AblationJob", "AblationResult", "run_ablation"]
