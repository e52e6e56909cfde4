# Two commands need nothing else: `make figures` and `make test`. Both make .venv and install into it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: figures test check bench clean

figures: $(VENV)/installed
	$(BIN)/posviz batch figures/figures.toml --force

test: check
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2 --dist loadfile

check: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# torch first and pinned, so that nothing else pulls in another build of it.
$(VENV)/installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) torch
	$(INSTALL) --editable .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(INSTALL) --editable '.[dev,cluster,offload]'
	touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .ruff_cache .mypy_cache
