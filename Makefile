# Everything runs in a virtual environment inside the checkout; `make PYTHON=python3.13 test` picks
# another Python.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed

.PHONY: demo test check format lint types bench bench-server bench-http load soak clean

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

# The development server: its start, reloads and durable sends.
bench-server: $(READY)
	$(BIN)/python -m tests.benchmarks.dev_server

# Its HTTP beside the JavaScript runtime's, which is in NODE, a folder in which `npm install wrangler`
# was run; without it, or without node, only its own.
bench-http: $(READY)
	$(BIN)/python -m tests.benchmarks.http_speed $(NODE)

# A minute of 500 requests a second: errors, latencies, memory.
load: $(READY)
	$(BIN)/python -m tests.benchmarks.load

# The property tests with many more examples, the planted bugs' twins under all pairs of faults, and
# a server that is killed a hundred times.
soak: $(READY)
	$(BIN)/python -m pytest --hypothesis-profile=soak \
		tests/queues/test_broker_properties.py tests/sweeping/test_bugs.py
	EMULATOR_CRASH_ROUNDS=100 $(BIN)/python -m pytest -s tests/server/test_crash_campaign.py

clean:
	rm -rf $(VENV) build dist
