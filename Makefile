# `make story` and `make test` work on a fresh machine with Python 3.11+ and make, and nothing else.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Tests start many processes, which would all compile the sources again.
unexport PYTHONDONTWRITEBYTECODE
# A text of your own: `make story STORY=mine.txt` draws it with the key, server or card that is there, else with the stand-in.
STORY    ?=
RECORDED := examples/recorded/the_coat_in_the_barley
OUT      ?= out/$(if $(STORY),$(basename $(notdir $(STORY))),the_coat_in_the_barley)
# The versions that the tests passed with; `make test CONSTRAINTS=` takes the newest.
CONSTRAINTS ?= $(wildcard constraints.txt)
PIP      := $(BIN)/pip install -q $(addprefix -c ,$(CONSTRAINTS))
PACKAGES := app experiments agents compass configs eval_bridge planners prompts renderers

.PHONY: help story desk test test-sketch alone check fast touched measures links docs wheel release lock reader soak bench research clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml
	$(PIP) -e . -e sketch
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(PIP) -e ".[dev]" -e sketch
	@touch $@ $(VENV)/.core

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(PIP) -e ".[docs]" -e sketch
	@touch $@ $(VENV)/.core

story: $(VENV)/.core ## draw one story from recorded replies, or yours: make story STORY=mine.txt
	$(BIN)/katha run $(or $(STORY),$(RECORDED)/story.json --replay $(RECORDED)/board.katha) --out $(OUT)

# The desk, with all that an artist's exports need.
$(VENV)/.artist: $(BIN)/python pyproject.toml
	$(PIP) -e ".[artist]" -e sketch
	@touch $@ $(VENV)/.core

desk: $(VENV)/.artist ## the desk in a browser, with all that exports need
	$(BIN)/katha desk

# mypy cannot rename a path, so it reads a tree of links shaped like the installed package.
links: ## the tree of links that mypy and import-linter read
	@rm -rf .links && mkdir -p .links/katha
	@for entry in src/katha/*; do ln -s ../../$$entry .links/katha/; done
	@for name in $(PACKAGES); do ln -s ../../$$name .links/katha/$$name; done
	@ln -s ../sketch/src/katha_sketch .links/katha_sketch

check: $(VENV)/.dev links ## formatting, lint, types, and which package may import which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=.links $(BIN)/lint-imports

test: check ## make check and every test: what CI runs
	$(BIN)/pytest -n auto tests
	@$(BIN)/python sketch/tests/stamp.py && echo "katha-sketch has not changed since its tests passed." || $(MAKE) test-sketch

# The stand-in's own tests, which run when it changes; that they passed is kept with what they passed on.
test-sketch: $(VENV)/.dev ## the tests of the stand-in alone
	$(BIN)/pytest -n auto sketch/tests && $(BIN)/python sketch/tests/stamp.py --write

# katha without the stand-in, in an environment that has pytest and nothing else.
alone: ## katha without the stand-in, in an environment of its own
	$(PYTHON) -m venv $(VENV)-alone && $(VENV)-alone/bin/pip install -q . pytest
	$(VENV)-alone/bin/python -m pytest -q -c tests/alone/pytest.ini tests/alone

# The unit tests alone: under a minute on two cores.
fast: $(VENV)/.dev ## the unit tests, in about a minute
	$(BIN)/pytest -n auto -m unit

touched: $(VENV)/.dev ## the tests that your change touches
	@tests=$$(PYTHONPATH=. $(BIN)/python .ci/touched.py) && if [ -n "$$tests" ]; then $(BIN)/pytest -n auto $$tests; else echo "No test is touched."; fi

# Both are printed; the first one's exit code says whether a limit of the structure is exceeded.
measures: $(VENV)/.dev ## figures of the code's structure beside their limits
	@$(BIN)/python -m benchmarks.structure; kept=$$?; $(BIN)/python -m benchmarks.measures executed lines && exit $$kept

docs: $(VENV)/.docs links ## the site, strictly
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Both distributions as both kinds of archive, built once; on each of PYTHONS each kind in an environment of its own, used
# from outside the checkout: katha alone says what it can do, and with the stand-in it draws.
PYTHONS ?= $(PYTHON)
wheel: $(BIN)/python ## build both distributions and try them, on each of PYTHONS
	rm -rf dist && $(BIN)/pip install -q "build>=1.3" && $(BIN)/python -m build -o dist . && $(BIN)/python -m build -o dist sketch
	@for python in $(PYTHONS); do for kind in whl tar.gz; do \
		work=$$(mktemp -d) && echo "Trying dist/*.$$kind on $$($$python --version) in $$work" && cp examples/lion_and_mouse.txt $$work/story.txt && \
		$$python -m venv $$work/venv && $$work/venv/bin/pip install -q dist/katha-[0-9]*.$$kind && \
		(cd $$work && export KATHA_CACHE=$$work/cache && venv/bin/katha --help >/dev/null && venv/bin/katha doctor) && \
		$$work/venv/bin/pip install -q dist/katha_sketch-[0-9]*.$$kind && \
		(cd $$work && export KATHA_CACHE=$$work/cache && venv/bin/katha run story.txt --out out && test -s out/report.html) && \
		rm -rf $$work || exit 1; \
	done; done

# What has to hold for a release is checked first; it is tried on every Python that pyproject.toml names.
RELEASE_PYTHONS ?= python3.11 python3.12 python3.13
release: ## check version, changelog and tag, then make wheel on 3.11, 3.12 and 3.13
	$(PYTHON) .ci/release.py && $(MAKE) wheel PYTHONS="$(RELEASE_PYTHONS)"

# The versions that the tests passed with, as pip reads them: `pip install -c constraints.txt`. Made in a new environment.
lock: ## write constraints.txt anew from the newest releases
	@work=$$(mktemp -d) && $(PYTHON) -m venv $$work/venv && $$work/venv/bin/pip install -q -e ".[dev]" -e sketch && \
		{ echo "# Made by make lock, on Python $$($(PYTHON) -c 'import sys; print(*sys.version_info[:2], sep=".")'): the versions that CI installs."; \
		$$work/venv/bin/pip freeze --exclude-editable; } >constraints.txt && rm -rf $$work

reader: $(VENV)/.dev ## train the stand-in's reader further
	cd sketch && $(CURDIR)/$(BIN)/python -m training.reader

# Bad inputs, damaged pictures, kills, a failing server and damaged caches, for MINUTES; counts are printed. PART is one
# of them alone; COUNT how many parts of a cluster are killed.
MINUTES ?= 60
COUNT   ?= 100
soak: $(VENV)/.dev ## bad inputs, kills and failing servers, for MINUTES
	PYTHONPATH=tests/robustness:tests/support:tests/core $(BIN)/python tests/robustness/soak.py --minutes $(MINUTES) --count $(COUNT) $(if $(PART),--part $(PART))

# The figures of docs/research and of the README, from the archives in the repository: no model is called.
research: $(VENV)/.dev ## the figures of docs/research and of the README, from the archives
	$(BIN)/python -m benchmarks.research

bench: $(VENV)/.dev ## the benchmarks
	$(BIN)/python -m benchmarks

clean: ## remove everything that make made
	rm -rf $(VENV) $(VENV)-alone .links build sketch/build dist out site *.egg-info sketch/src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
