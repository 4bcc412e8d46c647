"""For the tests of plug-ins: contract tests that any plug-in can run, and scripted doubles of all three kinds.

A contract test needs no test framework: it raises `ContractError` (an `AssertionError`) that lists everything the
plug-in breaks, and returns the names of the checks that it passed.
"""

from katha.eval_bridge.judges.scripted import ScriptedJudge
from katha.testing.contracts import ContractError, check_judge, check_planner, check_renderer, sample_requests
from katha.testing.doubles import ScriptedPlanner, ScriptedRenderer, picture

__all__ = [
    "ContractError",
    "ScriptedJudge",
    "ScriptedPlanner",
    "ScriptedRenderer",
    "check_judge",
    "check_planner",
    "check_renderer",
    "picture",
    "sample_requests",
]
