# Every target sets up what it needs in .venv. Nothing outside this folder is changed.
#
#   make demo        the MiniLM job on the simulated ring: table, report.html, trace.json
#   make test        lint, types, IR text, behaviour, and the demo on one sentence
#   make test-full   the same with the full counts of generated inputs, and reports in headless Chromium, which it needs
#   make docs        the generated tables of docs/
#   make clean       remove what the targets made

PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV ?= .venv

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: demo test test-full docs clean
.DELETE_ON_ERROR:

demo: $(VENV)/demo.stamp
	HF_HUB_OFFLINE=1 $(BIN)/python examples/minilm_demo.py

test: $(VENV)/test.stamp
	$(BIN)/python -m tests.run_steps

test-full: $(VENV)/test.stamp
	KTIR_TEST_SCALE=1 $(BIN)/python -m tests.run_steps

docs: $(VENV)/test.stamp
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) report.html trace.json build *.egg-info

# torch comes first and alone, so that TORCH decides which build of it is used.
$(VENV)/torch.stamp: Makefile
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ktir needs Python 3.11 or later; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	@echo "installing $(TORCH)"
	$(PIP) $(TORCH)
	@touch $@

$(VENV)/demo.stamp: $(VENV)/torch.stamp pyproject.toml constraints.txt
	@echo "installing ktir and what the demo needs"
	$(PIP) -c constraints.txt setuptools
	$(PIP) -c constraints.txt --no-build-isolation -e '.[demo]'
	@touch $@

$(VENV)/test.stamp: $(VENV)/demo.stamp
	@echo "installing what the tests need"
	$(PIP) -c constraints.txt --no-build-isolation -e '.[test]'
	@touch $@
