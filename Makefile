# make demo   sets up .venv, scores the built-in sample and shows the result
# make test   sets up .venv and runs the test suite
# make check  ruff, mypy and the documentation, warnings being errors
# make lowest runs the suite on the lowest versions that are allowed, on the oldest Python that is here
# make latest runs it on the newest ones, on the newest Python
# make docs   makes anew what docs/ holds of the code's own, and builds the documentation into build/site

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test check lowest latest docs site bench clean

demo: $(VENV)/.installed
	$(BIN)/bench-datasets demo --out demo

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(MAKE) site

lowest latest:
	.ci/versions $@ $(PYTEST_ARGS)

docs: $(VENV)/.installed-dev
	$(BIN)/python docs/hooks.py
	$(MAKE) site

site: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "documentation: build/site/index.html"

bench: $(VENV)/.installed-dev
	$(BIN)/python scripts/benchmark.py

clean:
	rm -rf $(VENV) .venv-lowest .venv-latest demo build dist

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "installing into $(VENV): some minutes the first time"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo "installing into $(VENV), with what tests and documentation need: some minutes the first time"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs]'
	touch $@ $(VENV)/.installed
