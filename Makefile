# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test install format lint types imports unit docs clean

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

install: $(VENV)/installed

demo: install
	$(BIN)/likewise index examples/handbook
	$(BIN)/likewise search --index examples/handbook/.likewise -k 3 "how do I rotate a signing key"
	$(BIN)/likewise context --index examples/handbook/.likewise --budget 500 "what if my laptop is stolen"

test: format lint types imports unit

format: install
	$(BIN)/ruff format --check .

lint: install
	$(BIN)/ruff check .

types: install
	$(BIN)/mypy

imports: install
	$(BIN)/lint-imports

unit: install
	$(BIN)/python -m pytest

docs: install
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/picture.py

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
