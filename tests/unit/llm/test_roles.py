"""The fallbacks of the model roles over all configurations (MOD-01, MOD-02)."""

import itertools

import pytest
from opendev.core.chat import Role
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.llm.roles import model_for

OPTIONAL = (Role.THINKING, Role.CRITIQUE, Role.VISION, Role.COMPACT)
CONFIGURATIONS = [
    {Role.ACTION: "p/action", **{role: f"p/{role.value}" for role in chosen}}
    for size in range(len(OPTIONAL) + 1)
    for chosen in itertools.combinations(OPTIONAL, size)
]


def blind(_model: str) -> bool:
    return False


def sees(_model: str) -> bool:
    return True


@pytest.mark.req("MOD-02")
@pytest.mark.parametrize("models", CONFIGURATIONS, ids=lambda m: "+".join(m))
def test_every_role_falls_back_as_specified(models: dict[Role, str]) -> None:
    action = "p/action"
    thinking = models.get(Role.THINKING, action)
    assert model_for(Role.ACTION, models, sees) == action
    assert model_for(Role.THINKING, models, sees) == thinking
    assert model_for(Role.CRITIQUE, models, sees) == models.get(Role.CRITIQUE, thinking)
    assert model_for(Role.COMPACT, models, sees) == models.get(Role.COMPACT, action)
    assert model_for(Role.VISION, models, sees) == models.get(Role.VISION, action)
    if Role.VISION in models:
        assert model_for(Role.VISION, models, blind) == models[Role.VISION]
    else:
        with pytest.raises(OpenDevError, match="No vision model: p/action"):
            model_for(Role.VISION, models, blind)


@pytest.mark.req("MOD-01")
def test_without_any_model_the_error_says_how_to_set_one() -> None:
    with pytest.raises(OpenDevError, match="OPENDEV_MODEL") as caught:
        model_for(Role.ACTION, {}, sees)
    assert caught.value.info.kind is ErrorKind.CONFIG
