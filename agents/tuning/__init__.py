"""`katha tune`: measure validation stories once, choose the compass's settings on them, and freeze them."""

from katha.agents.tuning.tune import TuneJob, TuneResult, tune

__all__ = ["TuneJob", "TuneResult", "tune"]
