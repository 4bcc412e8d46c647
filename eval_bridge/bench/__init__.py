"""KathaBench-25K in its released files: checking, counting, dividing; a matcher measured on labelled pairs."""

from katha.eval_bridge.bench.census import Census
from katha.eval_bridge.bench.files import Problem, find_files
from katha.eval_bridge.bench.pairs import measure_file
from katha.eval_bridge.bench.splitting import assign_splits, make_split, save_split
from katha.eval_bridge.bench.validate import Inspection

__all__ = [
    "Census",
    "Inspection",
    "Problem",
    "assign_splits",
    "find_files",
    "make_split",
    "measure_file",
    "save_split",
]
