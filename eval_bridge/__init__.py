"""The KathaTrace protocol: questions, evidence packets, judges, matching and scores."""

from katha.eval_bridge.answer_log import AnswerLog, answer_line, iter_answers, read_answers
from katha.eval_bridge.asking import AnswerCache, OnAnswer, Retry, answer_key, ask, judge_name
from katha.eval_bridge.images import MAX_PIXELS, CleanImage, clean_image
from katha.eval_bridge.instructions import (
    REPORTING_VARIANT,
    STEERING_VARIANT,
    UNCLEAR,
    AnswersFormat,
    judge_prompt,
    prompt_hashes,
    prompt_sha256,
    reply_schema,
    require_variant,
    variants,
)
from katha.eval_bridge.matching import RULES, Verdict, match, match_text, require_rule
from katha.eval_bridge.matching_report import MatchingReport, measure_pairs
from katha.eval_bridge.normal import normalise
from katha.eval_bridge.options import assign_roles, chance_level, fill_options, prepare_questions
from katha.eval_bridge.packets import (
    LeakageReport,
    evidence_sha256,
    make_packet,
    packet_sha256,
    scan_packet,
    secrets_of,
)
from katha.eval_bridge.questions import build_questions
from katha.eval_bridge.scores import Recoverability, recoverability, score

__all__ = [
    "MAX_PIXELS",
    "REPORTING_VARIANT",
    "RULES",
    "STEERING_VARIANT",
    "UNCLEAR",
    "AnswerCache",
    "AnswerLog",
    "AnswersFormat",
    "CleanImage",
    "LeakageReport",
    "MatchingReport",
    "OnAnswer",
    "Recoverability",
    "Retry",
    "Verdict",
    "answer_key",
    "answer_line",
    "ask",
    "assign_roles",
    "build_questions",
    "chance_level",
    "clean_image",
    "evidence_sha256",
    "fill_options",
    "iter_answers",
    "judge_name",
    "judge_prompt",
    "make_packet",
    "match",
    "match_text",
    "measure_pairs",
    "normalise",
    "packet_sha256",
    "prepare_questions",
    "prompt_hashes",
    "prompt_sha256",
    "read_answers",
    "recoverability",
    "reply_schema",
    "require_rule",
    "require_variant",
    "scan_packet",
    "score",
    "secrets_of",
    "variants",
]
