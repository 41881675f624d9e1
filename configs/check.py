"""Every problem of every settings file at once, also of values that a later layer hides (issue E)."""

from .environment import Environment
from .layers import default_values, file_layer, idle_variables
from .load import Files, Loaded, resolve, validate
from .problem import Problem


def check_settings(
    files: Files, environment: Environment
) -> tuple[Loaded | None, tuple[Problem, ...], tuple[str, ...]]:
    """The configuration, None when it is not valid; what is wrong; and what is only worth knowing."""
    loaded, problems = resolve(files, environment)
    found = list(problems)
    for name, file in (("user", files.user), ("project", files.project)):
        layer = file_layer(name, file)
        _, alone = validate({**default_values(), **layer.values}, (layer,))
        found += [problem for problem in alone if problem.place == str(file.path)]
    warnings = (*(loaded.warnings if loaded else ()), *idle_variables(environment))
    return loaded, tuple(dict.fromkeys(found)), warnings
