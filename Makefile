# Two commands do everything on a machine that has Python (3.11 or newer) and make:
#   make demo    learn digits with nothing set, beside methods of scikit-learn
#   make test    the whole test suite, with linting, types and coverage
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Two processes share the cores, so each keeps to one thread.
ALONE := OMP_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1
# The loops are compiled while other packages are installed; installing ours need not do it before.
INSTALL = HATCH_BUILD_NO_HOOKS=1 $(BIN)/pip install --quiet --no-compile --disable-pip-version-check
# Tests that run a second time without machine code, so that coverage sees the loops.
INTERPRETED = $(shell grep -rl --include='*.py' 'mark.interpreted' tests)
# Compiled bytecode is kept: without it every new process compiles all of scikit-learn again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test docs clean

demo: $(VENV)/.demo
	$(BIN)/pistol demo --picture demo.png

test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pistol warmup
	$(BIN)/coverage erase
	$(BIN)/mypy & types=$$!; \
	$(ALONE) $(BIN)/pytest -n 2 --dist loadscope --no-loadscope-reorder --cov --cov-report= && wait $$types
	$(ALONE) NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n 2 --cov --cov-append --cov-report= -m interpreted $(INTERPRETED)
	$(BIN)/coverage report --include='lab/*' --fail-under=95 --skip-covered & lab=$$!; \
	$(BIN)/coverage report --include='src/*' --fail-under=95 --skip-covered && wait $$lab

docs: $(VENV)/.test
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) docs/_build docs/api/generated .coverage .coverage.*

$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pistol needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml lab/pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[cli]' --editable ./lab
	touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml lab/pyproject.toml
	$(INSTALL) --editable .
	$(INSTALL) --editable '.[test]' --editable './lab[bench]' & rest=$$!; \
	$(BIN)/python -c 'import pistol; pistol.warmup()' && wait $$rest
	touch $@ $(VENV)/.demo
