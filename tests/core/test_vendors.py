"""The data of vendors' models against the lists in their own SDKs."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
import yaml

from benchmarks import vendors
from katha.configs import load_config

TODAY = date(2026, 11, 30)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_every_model_and_every_end_that_the_sdk_lists_is_known(provider: str) -> None:
    found = vendors.lacking(provider, load_config("providers.yaml")[provider], TODAY)
    assert found == vendors.Lacking((), (), {}), "python -m benchmarks.vendors --write"


def test_the_lists_are_read() -> None:
    text, pictures, ends = vendors.sdk_models("openai")
    assert {"gpt-6-luna", "gpt-4o"} <= set(text)
    assert "gpt-image-2" in pictures
    assert ends["gpt-5.4-nano"] == date(2027, 4, 1)
    assert len(ends) > 40
    assert vendors.sdk_models("anthropic")[2]["claude-opus-4-5"] == date(2027, 1, 22)


def test_what_is_missing_is_written_with_its_price_and_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = vendors.PROVIDERS.read_text("utf-8").splitlines(keepends=True)
    file, prices = tmp_path / "providers.yaml", tmp_path / "prices.json"
    cut = ("      gpt-5.4-mini:", "    gpt-5.1: {date", "      claude-opus-4-8:")
    file.write_text("".join(line for line in lines if not line.startswith(cut)), "utf-8")
    prices.write_text(
        '{"gpt-5.4-mini": {"input_cost_per_token": 7.5e-7, "cache_read_input_token_cost": 7.5e-8, '
        '"output_cost_per_token": 4.5e-6}}'
    )
    vendors.main(["--file", str(file), "--prices", str(prices), "--write"])
    assert "openai.text: gpt-5.4-mini" in capsys.readouterr().out
    data, before = yaml.safe_load(file.read_text("utf-8")), load_config("providers.yaml")
    for provider in ("anthropic", "openai"):
        assert vendors.lacking(provider, data[provider], TODAY) == vendors.Lacking((), (), {})
    told = data["openai"]["text"]["models"]["gpt-5.4-mini"]
    assert told["price"] == before["openai"]["text"]["models"]["gpt-5.4-mini"]["price"]
    assert told["read"] >= TODAY
    assert data["openai"]["ends"]["gpt-5.1"]["date"] == date(2027, 4, 1)
    assert data["anthropic"]["text"]["models"]["claude-opus-4-8"]["price"] is None


def test_every_section_of_prices_has_its_day_and_source() -> None:
    for provider in ("anthropic", "openai", "gemini"):
        told = load_config("providers.yaml")[provider]["text"]["read"]
        assert told["date"] >= date(2026, 11, 1)
        assert told["source"]
