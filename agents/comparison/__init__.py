"""`katha compare`: several methods over the same stories, plans, questions and judges (Sec. K.3, Tables 53 and 57)."""

from katha.agents.comparison.job import CompareJob, CompareResult
from katha.agents.comparison.methods import Method, cross_methods, read_methods
from katha.agents.comparison.runner import run_comparison

__all__ = ["CompareJob", "CompareResult", "Method", "cross_methods", "read_methods", "run_comparison"]
