"""The table of docs/metrics.md is that of the metrics' cards."""

from __future__ import annotations

from pathlib import Path

from metric_boards import card_row

from katha.eval_bridge.metrics.base import metric_cards

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_every_metric_has_its_row() -> None:
    rows = PAGE.read_text(encoding="utf-8").splitlines()
    named = {row.split("`")[1] for row in rows if row.startswith("| `") and row.count("|") >= 8}
    assert named == set(metric_cards())
    missing = [card.name for card in metric_cards().values() if card_row(card) not in rows]
    assert missing == []
