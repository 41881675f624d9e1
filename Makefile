# Two commands for a newcomer: `make demo` and `make test`. Both create .venv on first use.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# pytest compiles each test file for its assertions; kept, that is done once and not by every worker of every run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast test-soak check

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info[:2] == (3, 11) else "OpenDev needs Python 3.11; this is " + sys.version.split()[0] + ". Call make with PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,web]'
	@touch $@

demo: $(VENV)/.ready
	@$(BIN)/opendev swarm demo

test: $(VENV)/.ready
	@$(BIN)/python -m pytest -q -n 3 --dist loadgroup -m 'not live and not net and not soak'

test-fast: $(VENV)/.ready
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m 'not live and not net and not ray and not slow and not soak'

test-soak: $(VENV)/.ready
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m soak

check: $(VENV)/.ready
	@scripts/check
