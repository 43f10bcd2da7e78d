#!/usr/bin/env bash
# Benchmarks against Python in one run; arguments go to bench/run.py.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python bench/run.py "$@"
