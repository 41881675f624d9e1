"""The catalogue of models and when it is fetched: never by a recipe, only for a model that nothing local knows (MOD-05, C-20)."""

import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..core.errors import OpenDevError
from ..llm.catalog import Catalog
from ..llm.convert import provider_of
from ..llm.provider_cache import ProviderCache
from ..store.atomic import write_atomic
from .project import Project

MODELS_DEV = "OPENDEV_MODELS_DEV_PATH"  # a local file in the format of models.dev (MOD-06)
NO_REMOTE = "OPENDEV_DISABLE_REMOTE_MODELS"
BLOCK_S = 3.0  # how long a start waits for the very first fetch


def open_catalog(project: Project) -> Catalog:
    """What is known of models: the settings' prices, ours, the user's models.dev file or the cache, litellm's table."""
    prices = {name: price.model_dump(mode="json") for name, price in project.config.prices.items()}
    return Catalog(prices, local_file(project), project.layout.cache())


def local_file(project: Project) -> Path | None:
    """The catalogue file that the user named; it stands in for the fetched one."""
    path = project.environment.get(MODELS_DEV)
    return Path(path) if path else None


def open_cache(project: Project) -> ProviderCache:
    """The provider cache; without an address where the user forbade the network or named a file of his own."""
    forbidden = project.environment.get(NO_REMOTE).lower() not in ("", "0", "false", "no")
    url = "" if forbidden or local_file(project) else project.config.catalog.url
    return ProviderCache(project.layout.cache(), url, project.clock, write_atomic)


def keep_current(project: Project, models: Iterable[str]) -> threading.Thread | None:
    """Fetch the catalogue if one of ``models`` needs it: in the background, or for a short wait when there is none at all.

    The thread, when one was started; whatever it meets, work goes on with what is known.
    """
    cache = open_cache(project)
    if not cache.may_fetch or cache.fresh or not any(_needs_it(project, model) for model in set(models)):
        return None
    return renew(cache)


def renew(cache: ProviderCache) -> threading.Thread:
    """Fetch in the background; without any cache the caller waits for it, but not long (C-20)."""

    def fetch() -> None:
        with suppress(OpenDevError):  # stale data, or none, has to do
            cache.refresh()

    thread = threading.Thread(target=fetch, name="catalogue", daemon=True)
    first = cache.age_s is None
    thread.start()
    if first:
        thread.join(BLOCK_S)
    return thread


def _needs_it(project: Project, model: str) -> bool:
    """Nothing on this machine knows the model, and its provider is the public one: of a server of the user's own (a base URL
    is set) a public catalogue knows nothing."""
    local = Catalog()
    base = local.provider(provider_of(model)).base
    return local.info(model).window is None and not project.environment.get(base)
