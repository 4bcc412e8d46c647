"""Questions and contrastive variants made from plans, and the checks that they have to pass (Secs. C.5 and C.7)."""

from katha.eval_bridge.building.checks import Built, Rejected, check_questions
from katha.eval_bridge.building.questions import write_questions
from katha.eval_bridge.building.variants import check_variants, rule_variants, write_variants

__all__ = [
    "Built",
    "Rejected",
    "check_questions",
    "check_variants",
    "rule_variants",
    "write_questions",
    "write_variants",
]
