# make run    sets up .venv and trains the main job (no download of data); ARGS="..." adds to the command line
# make test   sets up .venv with the tools of development, then checks style, types and the tests but for the slow ones
# make test-all   the same with the slow ones, those of tests/slow.txt
# make lint   checks style and types alone;   make smoke   runs the tests of SMOKE alone
# make attack   kills, wrong inputs, odd data, hostile records and load, for ten minutes; ATTACK=--full for hours
# make docs   builds the site of the documentation into build/docs, from docs/ and docstrings; every link is checked
# make pages   the same, and the site of the committed results in build/docs/report, as the forge publishes them; it
#             makes the badge of README.md again
# make dist   builds wheel and sdist, installs each outside the checkout, and trains with it;   make coverage   the
#             tests, and the lines that none of them runs
# make gallery   draws the pictures of docs/gallery.md again
# make clean   removes .venv and caches

VENV ?= .venv
ARGS ?=
ATTACK ?=
DIST ?= $(CURDIR)/build/dist
TESTS ?= -n 3 --dist worksteal
# For a second version of Python or JAX: a few tests of each part that depends on one of them.
SMOKE = \
	tests/test_packaging.py \
	tests/core/test_linalg.py tests/core/test_natural_gradient.py tests/core/test_psi.py tests/core/test_gaussians.py \
	tests/data/test_readers.py \
	tests/methods/test_decoupled.py::test_one_basis_for_both_has_the_bound_of_svi \
	tests/methods/test_gfitc.py::test_gfitc_is_full_ep_on_its_prior_and_so_on_the_gp_itself_where_the_inducing_points_are_the_data \
	tests/methods/test_lbfgs.py \
	tests/methods/test_kernels_in_methods.py::test_regression_with_every_point_inducing_is_exact \
	tests/methods/test_sep.py::test_with_every_point_inducing_it_equals_full_ep \
	tests/train/test_checkpoint.py \
	tests/train/test_loop.py::test_splits_together_are_splits_one_by_one_to_rounding \
	tests/cli/test_run.py::test_help_names_the_main_keys_and_gives_examples \
	tests/cli/test_run.py::test_the_real_thing_from_data_to_record \
	tests/cli/test_sweep.py::test_a_sweep_of_the_real_thing \
	tests/test_estimators.py::test_predictions_follow_the_units_of_inputs_and_targets
# The first Python of at least 3.11; PYTHON=... names another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN = $(VENV)/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: run test test-all attack coverage lint smoke dist docs pages gallery clean

run: $(VENV)/.installed
	$(BIN)/gpbench run $(ARGS)

test: lint
	$(BIN)/pytest $(TESTS) -m "not slow"

test-all: lint
	$(BIN)/pytest $(TESTS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet
	$(BIN)/python scripts/check_names.py gpbench
	$(BIN)/mypy

attack: $(VENV)/.installed-dev
	$(BIN)/python tests/attack $(ATTACK)

coverage: $(VENV)/.installed-dev
	$(BIN)/pytest $(TESTS) -m "not slow" --cov --cov-report=term:skip-covered

smoke: $(VENV)/.installed-dev
	$(BIN)/pytest -n 0 $(SMOKE)

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pages: docs
	rm -rf build/report
	$(BIN)/gpbench report --results shipped --docs ../index.html --out build/report
	cp -R build/report/. build/docs/report
	cp build/report/badge.svg docs/gallery/badge.svg

# From DIST, where no checkout is: the wheel alone trains and lists its methods, then so does the source distribution.
dist: $(VENV)/.installed-dev
	rm -rf $(DIST)
	$(BIN)/hatchling build -d $(DIST) -t sdist -t wheel
	$(PYTHON) -m venv $(DIST)/venv
	cd $(DIST) && for file in *.whl *.tar.gz; do \
		venv/bin/python -m pip install --quiet --disable-pip-version-check -c $(CURDIR)/constraints.txt --force-reinstall \
			$$(venv/bin/python -c 'import numpy' 2>/dev/null && echo --no-deps) $$file && \
		venv/bin/gpbench ls methods >methods.txt && grep -q '^ *sep ' methods.txt && \
		GPBENCH_RESULTS=$(DIST)/results venv/bin/gpbench run dataset=wdbc method=logistic run.again=true || exit 1; \
	done

gallery: $(VENV)/.installed-dev
	$(BIN)/python scripts/gallery.py

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

$(VENV)/.installed-docs: $(VENV)/.installed
	$(INSTALL) -e '.[docs]'
	@touch $@
