"""What is known of a model: window, output limit, abilities, price. From settings, configs/models.toml, models.dev, litellm's table."""

import json
import tomllib
from collections.abc import Mapping
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen, JsonObject
from .cost import Price
from .provider_cache import cached_provider

_MODELS_TOML = Path(__file__).parent.parent / "configs" / "models.toml"
_TABLE = "model_prices_and_context_window_backup.json"  # litellm's own, part of its wheel


class ModelInfo(Frozen):
    """One model. ``window`` and ``max_output`` in tokens, None where nobody knows (then MOD-05: start anyway)."""

    name: str
    window: int | None = None
    max_output: int | None = None
    vision: bool = False
    reasoning: bool = False
    price: Price | None = None


class Provider(Frozen):
    """Names of the environment variables that hold a provider's key and base URL."""

    key: str = ""
    base: str = ""


class Catalog:
    """Looks models up without any network (MOD-06). ``models_dev`` is a local file in the format of models.dev; without one,
    ``cache`` is the folder of the provider cache, however old it is (MOD-05)."""

    def __init__(
        self,
        prices: Mapping[str, JsonObject] | None = None,
        models_dev: Path | None = None,
        cache: Path | None = None,
    ) -> None:
        self._prices = {name: Price.model_validate(price) for name, price in (prices or {}).items()}
        self._models_dev = models_dev
        self._cache = cache

    def info(self, model: str) -> ModelInfo:
        """What is known of ``model`` (provider/NAME); unknown fields are None."""
        found = self._ours(model) or self._from_models_dev(model) or self._from_table(model)
        info = found or ModelInfo(name=model)
        price = self._prices.get(model)
        return info if price is None else info.model_copy(update={"price": price})

    def window(self, model: str, fallback: int) -> int:
        """The context window in tokens, or ``fallback`` when nobody knows it."""
        return self.info(model).window or fallback

    def has_vision(self, model: str) -> bool:
        """Whether the model is known to see images; the unknown does not."""
        return self.info(model).vision

    def provider(self, name: str) -> Provider:
        """The variables of a provider; an unlisted one follows the usual spelling NAME_API_KEY, NAME_API_BASE."""
        listed = cast("dict[str, JsonObject]", self._file.get("providers", {})).get(name)
        if listed is not None:
            return Provider.model_validate(listed)
        stem = name.upper().replace("-", "_")
        return Provider(key=f"{stem}_API_KEY", base=f"{stem}_API_BASE")

    @property
    def listed(self) -> frozenset[str]:
        """Providers whose key is always needed (unless they have a base URL of their own)."""
        return frozenset(cast("dict[str, JsonObject]", self._file.get("providers", {})))

    @cached_property
    def _file(self) -> JsonObject:
        return tomllib.loads(_MODELS_TOML.read_text(encoding="utf-8"))

    @cached_property
    def _table(self) -> str:
        """litellm's table as text (3.5 MB of JSON); importing litellm for it would cost seconds (ray.md)."""
        spec = find_spec("litellm")
        if spec is None or spec.origin is None:
            return ""
        try:
            return (Path(spec.origin).parent / _TABLE).read_text("utf-8")
        except (OSError, ValueError):
            return ""  # a later litellm may keep it elsewhere: start without capability data

    def _row(self, key: str) -> JsonObject | None:
        """One row, parsed alone: the whole table takes 60 ms at every start."""
        head = f"\n    {json.dumps(key)}: "
        at = self._table.rfind(head + "{")  # of a key that stands there twice the last counts, as in JSON
        try:
            return json.JSONDecoder().raw_decode(self._table, at + len(head))[0] if at >= 0 else None
        except ValueError:
            return None

    @cached_property
    def _dev(self) -> dict[str, JsonObject]:
        if self._models_dev is None:
            return {}
        try:
            loaded: Any = json.loads(self._models_dev.read_bytes())
        except (OSError, ValueError) as error:
            raise OpenDevError(
                ErrorKind.CONFIG,
                f"The model catalogue {self._models_dev} cannot be read: {error}.",
                "Correct or unset OPENDEV_MODELS_DEV_PATH.",
            ) from error
        return cast("dict[str, JsonObject]", loaded) if isinstance(loaded, dict) else {}

    def _ours(self, model: str) -> ModelInfo | None:
        row = cast("dict[str, JsonObject]", self._file.get("models", {})).get(model)
        return None if row is None else ModelInfo.model_validate({"name": model, **row})

    def _from_models_dev(self, model: str) -> ModelInfo | None:
        provider, _, name = model.partition("/")
        if self._models_dev is None and self._cache is not None:
            known = cached_provider(self._cache, provider)
        else:
            known = self._dev.get(provider, {})
        row = cast("dict[str, JsonObject]", known.get("models", {})).get(name)
        if not isinstance(row, dict):
            return None
        limit, cost, modalities = (_part(row, name) for name in ("limit", "cost", "modalities"))
        rates = [_rate(cost.get(name)) for name in ("input", "output", "cache_read", "cache_write")]
        sees = modalities.get("input")
        return ModelInfo(
            name=model,
            window=_count(limit.get("context")),
            max_output=_count(limit.get("output")),
            vision=isinstance(sees, list) and "image" in sees,
            reasoning=row.get("reasoning") is True,
            price=_price(*rates),
        )

    def _from_table(self, model: str) -> ModelInfo | None:
        provider, _, name = model.partition("/")
        row = self._row(model)
        if row is None:
            row = self._row(name)
            if row is None or row.get("litellm_provider") != provider:
                return None
        return ModelInfo(
            name=model,
            window=_count(row.get("max_input_tokens") or row.get("max_tokens")),
            max_output=_count(row.get("max_output_tokens")),
            vision=bool(row.get("supports_vision")),
            reasoning=bool(row.get("supports_reasoning")),
            price=_price(
                _million(row.get("input_cost_per_token")),
                _million(row.get("output_cost_per_token")),
                _million(row.get("cache_read_input_token_cost")),
                _million(row.get("cache_creation_input_token_cost")),
            ),
        )


def _part(row: JsonObject, name: str) -> JsonObject:
    """An object inside of a row that came over the network: it may be anything."""
    value = row.get(name)
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _rate(value: Any) -> float | None:
    """US dollars per million tokens."""
    return float(value) if isinstance(value, int | float) and value >= 0 else None


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None


def _million(value: Any) -> float | None:
    return value * 1_000_000 if isinstance(value, int | float) else None


def _price(
    read: float | None, write: float | None, cached: float | None, stored: float | None
) -> Price | None:
    if read is None or write is None:
        return None
    return Price(input=read, output=write, cached=cached, written=stored)
