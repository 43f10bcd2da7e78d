#!/usr/bin/env bash
# Loads and runs damaged programs of torch.export, for MINUTES (10) from a SEED (1):
# scripts/fuzz_programs.sh [MINUTES] [SEED]
# Files that crash stay in build/fuzz-programs.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release program_outcomes >&2
mkdir -p build/fuzz-programs
.venv/bin/python tests/oracle/program_fuzz.py build/release/tests/program/program_outcomes \
  build/fuzz-programs "${2:-1}" "${1:-10}m"
