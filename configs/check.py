"""Every problem of every settings file at once, also of values that a later layer hides (issue E)."""

from dataclasses import replace

from .environment import Environment
from .layers import default_values, file_layer, idle_variables
from .load import Files, Resolved, resolve, validate


def check_settings(files: Files, environment: Environment) -> Resolved:
    """What ``resolve`` finds, with the faults of each file alone, in order of place and line, and variables that set nothing."""
    found = resolve(files, environment)
    problems = [*found.problems]
    for name, file in (("user", files.user), ("project", files.project)):
        layer = file_layer(name, file)
        _, alone = validate({**default_values(), **layer.values}, (layer,))
        problems += [problem for problem in alone if problem.place == str(file.path)]
    problems.sort(key=lambda problem: (problem.place, problem.line))
    warnings = (*found.warnings, *idle_variables(environment))
    return replace(found, problems=tuple(dict.fromkeys(problems)), warnings=warnings)
