# make run    sets up .venv and trains the main job (no download of data); ARGS="..." adds to the command line
# make test   sets up .venv with the tools of development, then checks style, types and every test
# make picture   draws docs/banana.png again;   make clean   removes .venv and caches

VENV ?= .venv
ARGS ?=
TESTS ?= -n 2 --dist worksteal
# The first Python of at least 3.11; PYTHON=... names another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN = $(VENV)/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: run test picture clean

run: $(VENV)/.installed
	$(BIN)/gpbench run $(ARGS)

test: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pytest $(TESTS)

picture: $(VENV)/.installed
	$(BIN)/python scripts/picture.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist

# The stamps make `make` install again only when what is installed has changed.
$(VENV)/.installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "gpbench needs Python 3.11 or later: make PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(INSTALL) -e '.[dev]'
	@touch $@
