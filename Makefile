# Everything runs in a virtual environment inside the checkout; `make PYTHON=python3.13 test` picks
# another Python.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed

.PHONY: demo test check format lint types bench soak clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(READY)

# The main job: a duplicate mail under a lost ack, and the version that is safe.
demo: $(READY)
	$(BIN)/python examples/signup/demo.py

test: $(READY)
	$(BIN)/python -m pytest

format: $(READY)
	$(BIN)/ruff format --check .

lint: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

check: format lint types test

# Prints figures; nothing fails by the clock.
bench: $(READY)
	$(BIN)/python -m tests.benchmarks

# The property tests with many more examples.
soak: $(READY)
	$(BIN)/python -m pytest tests/queues/test_broker_properties.py --hypothesis-profile=soak

clean:
	rm -rf $(VENV) build dist
