"""What is known of models, without network and without importing litellm (MOD-04 to MOD-07)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from opendev.core.errors import OpenDevError
from opendev.llm.catalog import Catalog, ModelInfo, Provider
from opendev.llm.cost import Counts, Price


def test_litellms_table_gives_window_vision_and_prices() -> None:
    info = Catalog().info("anthropic/claude-sonnet-4-5")
    assert info == ModelInfo(
        name="anthropic/claude-sonnet-4-5",
        window=200000,
        max_output=64000,
        vision=True,
        reasoning=True,
        price=Price(input=3, output=15, cached=0.3, written=3.75),
    )


def test_a_name_of_another_provider_is_not_taken_over() -> None:
    assert Catalog().info("openai/claude-sonnet-4-5") == ModelInfo(name="openai/claude-sonnet-4-5")


def test_the_unknown_is_none_and_falls_back() -> None:
    catalog = Catalog()
    assert catalog.info("openai/no-such-model") == ModelInfo(name="openai/no-such-model")
    assert catalog.window("openai/no-such-model", 4711) == 4711
    assert not catalog.has_vision("openai/no-such-model")


def test_prices_of_the_settings_win() -> None:
    catalog = Catalog({"openai/gpt-5": {"input": 1, "output": 2}})
    assert catalog.info("openai/gpt-5").price == Price(input=1, output=2)
    assert catalog.info("openai/gpt-5").window == 272000


@pytest.mark.req("MOD-06")
def test_a_local_models_dev_file_is_read(tmp_path: Path) -> None:
    model = {
        "limit": {"context": 1000, "output": 100},
        "cost": {"input": 1, "output": 2, "cache_read": 0.5},
        "modalities": {"input": ["text", "image"]},
    }
    path = tmp_path / "api.json"
    path.write_text(json.dumps({"mine": {"id": "mine", "models": {"m": model, "bare": {}}}}))
    catalog = Catalog(models_dev=path)
    assert catalog.info("mine/m") == ModelInfo(
        name="mine/m", window=1000, max_output=100, vision=True, price=Price(input=1, output=2, cached=0.5)
    )
    assert catalog.info("mine/bare") == ModelInfo(name="mine/bare")
    path.write_text("{")
    with pytest.raises(OpenDevError, match="OPENDEV_MODELS_DEV_PATH"):
        Catalog(models_dev=path).info("mine/m")


def test_providers_name_their_variables() -> None:
    catalog = Catalog()
    assert catalog.provider("anthropic") == Provider(key="ANTHROPIC_API_KEY", base="ANTHROPIC_BASE_URL")
    assert catalog.provider("new-one") == Provider(key="NEW_ONE_API_KEY", base="NEW_ONE_API_BASE")


def test_litellm_is_not_imported() -> None:
    code = (
        "import sys\nfrom opendev.llm.catalog import Catalog\nfrom opendev.actors.model_service import ModelService\n"
        "ModelService({})\nassert Catalog().info('openai/gpt-5').window\n"
        "sys.exit('litellm' in sys.modules or 'ray' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.req("MOD-07")
def test_cost_is_counts_times_prices() -> None:
    price = Price(input=3, output=15, cached=0.3, written=3.75)
    counts = Counts(input=1000, output=100, cached=600, written=300)
    usage = counts.usage(price)
    assert usage.cost_usd == pytest.approx((100 * 3 + 600 * 0.3 + 300 * 3.75 + 100 * 15) / 1e6)
    assert not usage.estimated
    assert counts.usage(Price(input=3, output=15, assumed=True)).estimated
