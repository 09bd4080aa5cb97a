# Everything that a clone needs: `make test`, `make demo`. Works with GNU make from 3.81 on and with BSD make.
# What is installed comes from requirements.lock, by hash; see scripts/setup for how.

PY = .venv/bin/python
READY = .venv/.ready

.PHONY: help setup test demo check format lock clean

help:
	@echo 'make setup             create .venv and install everything into it (the others do it when needed); EXTRAS=mic,local, too'
	@echo 'make test              run all tests, offline'
	@echo 'make demo              play a demo; DEMO=name picks one, REAL=1 plays it on the wall clock, HOLD=700 on hold'
	@echo 'make check             lint, formatting, types, layers and house rules'
	@echo 'make format            format the code and sort its imports'
	@echo 'make lock              resolve the dependencies anew and write requirements.lock'
	@echo 'make clean             remove the environment, caches and output'

$(READY): pyproject.toml requirements.lock scripts/setup
	@sh scripts/setup
	@touch $(READY)

setup: $(READY)
	@sh scripts/setup check
	@[ -z "$${EXTRAS:-}" ] || sh scripts/setup extras

test: $(READY)
	@$(PY) -m pytest

demo: $(READY)
	@.venv/bin/callwright demo $(DEMO) $${REAL:+--real-time} $${HOLD:+--hold $$HOLD}

check: $(READY)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(PY) -m mypy tests/declare/example.py
	@.venv/bin/lint-imports --no-logo --no-cache
	@$(PY) -m pytest -q tests/test_tidy.py

format: $(READY)
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

lock:
	@sh scripts/setup lock

clean:
	rm -rf .venv .uv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist out
