# Everything that a fresh machine with Python 3.11+ and make needs. `make` alone lists the targets.

PYTHON ?= python3
# LOCKED=1 installs exactly what the tests passed with before (constraints.txt), into an environment of its own.
VENV   := $(if $(LOCKED),.venv-locked,.venv)
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Python compiles what is imported, when it is, and keeps it, whatever is set elsewhere: to compile everything at once takes longer
# than all the rest.
unexport PYTHONDONTWRITEBYTECODE
LOCK   := $(if $(LOCKED),--constraint constraints.txt)

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all golden lint warm warm-kernels warm-tests browser thorough drafts fuzz load soak bench scale docs pictures site dist constraints vulnerabilities linked keys honest claims additive mixing paper-seeds r acro clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "unround needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A stamp a set of packages: installed again only when pyproject.toml changes.
$(VENV)/.installed: $(BIN)/python pyproject.toml
	@echo "Installing unround into $(VENV) ..."
	$(PIP) install --no-compile $(LOCK) --editable '.[all]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "Installing what the tests need ..."
	$(PIP) install --upgrade pip
	$(PIP) install --no-compile $(LOCK) --group dev
	@touch $@

install: $(VENV)/.installed ## leave a working .venv/bin/unround, all extras included
	@$(BIN)/unround --version

demo: $(VENV)/.installed ## set up, solve two examples, audit a table and a simulated census, and say what to look at
	@$(BIN)/python examples/demo.py

lint: $(VENV)/.installed-dev ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The tests of the explorer need a browser: Debian's, installed where we may; where not, they are skipped, or fail under CI.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "Installing chromium ..." && \
	  { apt-get install -y -q chromium >/dev/null 2>&1 || { apt-get update -q >/dev/null && apt-get install -y -q chromium >/dev/null; }; } || \
	  echo "There is no chromium, and it cannot be installed here: the tests in a browser are skipped (under CI=true they fail)."; }

# What is compiled is kept beside the code: compiled once, while style and types are checked, rather than by every worker.
warm: warm-kernels warm-tests

warm-kernels: $(VENV)/.installed
	@d=$$(mktemp -d); trap 'rm -rf "$$d"' EXIT; $(BIN)/unround audit examples/survey.toml -o "$$d/audit" --quiet >/dev/null

warm-tests: $(VENV)/.installed-dev
	-@$(BIN)/python -m pytest -n0 --collect-only >/dev/null  # what fails is told when it is run

# One worker more than there are processors: at any time, some wait for a browser, for a process of their own or for a kernel.
WORKERS := $(shell expr `getconf _NPROCESSORS_ONLN` + 1)
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
test: $(VENV)/.installed-dev browser ## set up, lint, and run the tests, all but the longest
	@$(MAKE) --no-print-directory -j3 lint warm
	$(PYTEST) -m "not long"

test-all: $(VENV)/.installed-dev browser ## every test: also whether the docs are what the program prints, and the longest ones
	@$(MAKE) --no-print-directory -j3 lint warm
	$(PYTEST)

golden: $(VENV)/.installed-dev ## write tests/golden again: what every command prints; read the difference before you commit it
	UNROUND_GOLDEN=write $(BIN)/python -m pytest -n0 tests/test_golden.py

thorough: $(VENV)/.installed-dev ## the randomised tests against brute force, twenty times as many
	UNROUND_THOROUGH=20 $(BIN)/python -m pytest -n auto tests/test_tree.py tests/test_proofs.py tests/test_solution.py tests/test_linked.py \
	  tests/test_hostile_files.py tests/test_hostile_folders.py tests/test_hostile_text.py tests/test_linked_audit.py tests/test_keys.py tests/test_resume.py tests/test_prior.py \
	  tests/test_describe.py

DRAFTS ?= --chance 100 --small 1000
drafts: $(VENV)/.installed-dev ## are drafts as people make them read and decided right? 190 of them, 100 by chance, and 1,000 small tables (half an hour)
	$(BIN)/python -m tests.drafts.score --judge $(DRAFTS)

# atheris is for this only: neither the package nor its tests need it.
$(VENV)/.installed-fuzz: $(VENV)/.installed-dev
	$(PIP) install --group fuzz
	@touch $@

FUZZ ?= --inputs 1000000
fuzz: $(VENV)/.installed-fuzz ## a million inputs against every reader and parser; FUZZ="--seconds 60 --target equations" for less
	$(BIN)/python -m fuzz $(FUZZ)

LOAD ?=
load: $(VENV)/.installed-dev ## 200 requests a second for a minute against the explorer; none may be lost
	$(BIN)/python -m fuzz.load $(LOAD)

SOAK ?=
soak: $(VENV)/.installed-dev ## an hour of mixed use of the explorer: memory must stay flat, and nothing may be lost
	$(BIN)/python -m fuzz.soak $(SOAK)

bench: $(VENV)/.installed-dev ## speed, as ratios against baselines in the same run; fails where one misses its aim
	$(BIN)/python -m bench

scale: $(VENV)/.installed-dev ## time and memory of audits of up to 61,029 areas (the better part of an hour)
	$(BIN)/python -m bench.scale

docs: $(VENV)/.installed-dev ## write the generated pages again
	$(BIN)/python -m docs.generate

pictures: $(VENV)/.installed-dev browser ## take the README's pictures of report and explorer again, of invented tables
	$(BIN)/python -m docs.report_picture
	$(BIN)/python -m docs.pictures

site: $(VENV)/.installed-dev ## build the documentation as a site that needs no network: site/index.html
	$(BIN)/python -m docs.website

dist: $(VENV)/.installed-dev ## build wheel and sdist into dist/, ready to be uploaded
	rm -rf dist
	$(BIN)/python -m hatchling build

# R itself and the packages of Debian: r-base-core r-cran-testthat r-cran-jsonlite r-cran-processx r-cran-knitr r-cran-rmarkdown pandoc qpdf
r: $(VENV)/.installed ## check the R package as CRAN does, against this unround
	@command -v R >/dev/null || { echo "R is not installed: the R package is not checked (apt-get install r-base-core; see the Makefile)."; exit 0; }; \
	  $(BIN)/python -m tests.r_package

# ACRO needs an older pandas than the tests: an environment of its own.
acro: ## write the folders of tests/acro again, by ACRO's own code
	$(PYTHON) -m venv .venv-acro && .venv-acro/bin/python -m pip --disable-pip-version-check --quiet install 'acro==1.0.2'
	.venv-acro/bin/python tests/acro/make.py

constraints: $(VENV)/.installed-dev ## write constraints.txt and docs/licences.md: what is installed here, and under which licences
	$(BIN)/python -m docs.dependencies

vulnerabilities: $(VENV)/.installed-dev ## ask PyPI whether anything in constraints.txt has a known vulnerability (needs the network)
	$(PIP) install --group vulnerabilities
	$(BIN)/python -m pip_audit --no-deps --disable-pip --requirement constraints.txt

linked: $(VENV)/.installed-dev ## measure again how exact linked posteriors are, for docs/linked.md (some minutes)
	$(BIN)/python -m bench.linked --write

keys: $(VENV)/.installed-dev ## claims about counts that were rounded by keys, compared with the truth (some minutes)
	$(BIN)/python -m bench.keys

honest: $(VENV)/.installed-dev ## are likely claims right as often as they state, and how much is left unsaid? All worlds, for docs/honest.md (some minutes)
	$(BIN)/python -m bench.honest

claims: $(VENV)/.installed-dev ## verified claims about the people of 10,000 areas, compared with the truth (a quarter of an hour)
	$(BIN)/python -m bench.claims

additive: $(VENV)/.installed-dev ## is a table that adds up nearer to the truth? every world under every mechanism (some minutes)
	$(BIN)/python -m bench.additive

mixing: $(VENV)/.installed-dev ## do chains reach every multi-way table? every pattern of exact margins (half an hour)
	$(BIN)/python -m bench.mixing

paper-seeds: $(VENV)/.installed-dev ## the same, after ten censuses of 61,029 areas (a quarter of an hour)
	$(BIN)/python -m docs.generate --fresh

clean: ## remove what the other targets made
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .hypothesis build dist site
