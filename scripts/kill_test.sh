#!/usr/bin/env bash
# Kills runs at random moments and compares what is left in the end with runs
# that nobody killed: scripts/kill_test.sh [KILLS [SEED]]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release kill_run >&2
exec .venv/bin/python tests/train/kill/kill_test.py \
  build/release/tests/train/kill/kill_run "${1:-200}" ${2:+"$2"}
