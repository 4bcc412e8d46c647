"""Methods as stars of their measures, and the correlations that VCMS prints, against SciPy and by hand."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from katha.app.reports.metrics_page import polar_charts, relative_scores
from katha.eval_bridge.people.agreement import fisher_z, kendall_tau, rank_agreement
from katha.schema.metrics import MetricCell, MetricColumn, MetricRow, MetricTable


def column(name: str, better: str) -> MetricColumn:
    told = {"metric": name, "part": "p", "mode": "paper", "title": name, "about": "", "level": "board"}
    return MetricColumn.model_validate({"name": name, **told, "average": "macro", "better": better})


def table(**methods: list[float | None]) -> MetricTable:
    columns = [column(*item) for item in (("a", "higher"), ("b", "lower"), ("c", "neither"), ("d", "higher"))]
    rows = [
        MetricRow(method=name, boards=1, cells={"abcd"[at]: MetricCell(value=value) for at, value in enumerate(values)})
        for name, values in methods.items()
    ]
    return MetricTable(columns=columns, rows=rows)


def test_a_ray_is_the_share_of_the_best_method() -> None:
    found = relative_scores(table(one=[2.0, 4.0, 9.0, -1.0], two=[4.0, 1.0, 1.0, 0.5], three=[None, 2.0, 1.0, 0.25]))
    assert found == (["a", "b", "d"], {"one": [0.5, 0.25, 0.0], "two": [1.0, 1.0, 1.0], "three": [None, 0.5, 0.5]})


def test_a_star_reaches_as_far_as_its_shares() -> None:
    names, stars = polar_charts(table(one=[2.0, 4.0, 9.0, 1.0], two=[4.0, 1.0, 1.0, 1.0]))
    assert names == ["a", "b", "d"]
    corners = [tuple(map(float, corner.split(","))) for corner in stars[0].outline.split()]
    assert [math.hypot(x - 100, y - 100) for x, y in corners] == pytest.approx([45.0, 22.5, 90.0], abs=0.1)
    assert stars[0].alt == "one: a 50%, b 25%, d 100% of the best method's"
    assert polar_charts(table(one=[1.0, 1.0, 1.0, 1.0]))[1] == []


def test_the_correlations_are_scipy_s() -> None:
    draw = random.Random(4)
    judge = [float(draw.randint(0, 5)) for _ in range(30)]
    human = [value + draw.randint(-2, 2) for value in judge]
    found = rank_agreement(judge, human)
    assert found.kendall == pytest.approx(stats.kendalltau(judge, human).statistic)
    assert found.pearson == pytest.approx(stats.pearsonr(judge, human).statistic)
    assert found.spearman == pytest.approx(stats.spearmanr(judge, human).statistic)
    assert found.pearson is not None
    assert found.pearson_z == pytest.approx(0.5 * math.log((1 + found.pearson) / (1 - found.pearson)))
    assert fisher_z(1.0) is fisher_z(None) is None
    assert kendall_tau([1.0, 1.0], [1.0, 2.0]) is None
