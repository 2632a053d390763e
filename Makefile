# Each target works on a fresh clone; what is there already is not installed or pulled again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
SAMPLE := $(VENV)/sample/warehouse.sqlite
DOCS := lynx_dspy/datasets/sample/docs
COMPILED := artifacts/qwen2.5-coder-0.5b/sample

.PHONY: demo test check bench models services clean
.DELETE_ON_ERROR:

demo: models
	@$(BIN)/lynx sample --out $(SAMPLE) >/dev/null
	@sh bench/demo.sh $(BIN)/lynx $(SAMPLE) $(DOCS) $(COMPILED)

test: $(VENV)/.dev models
	$(BIN)/python -m pytest

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: models
	$(BIN)/python -m bench.overhead

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; this is " + sys.version.split()[0] + ". Set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

# PyTorch by itself and first: a range resolved later would bring CUDA libraries of several GB.
$(VENV)/.run: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet "$$(grep '^torch==' constraints.txt)"
	$(PIP) install --quiet -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(PIP) install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

models: $(VENV)/.run
	@$(BIN)/lynx model pull

# Servers that tests start for themselves; without them those tests are skipped. Root and Debian only.
services:
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql mariadb-server chromium

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
