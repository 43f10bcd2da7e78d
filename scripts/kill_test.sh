#!/usr/bin/env bash
# Kills runs at random moments, then ranks of jobs a quarter as often, and compares
# what is left in the end with runs that nobody killed:
#   scripts/kill_test.sh [KILLS [SEED [RUNS]]]
# RUNS: names with commas between, all unless said otherwise. Those with data of
# one's own: folder,folder-replicas,masks,values; with a net that Python exported:
# program,program-replicas; with steps that are made again: memory,memory-replicas,
# memory-sim
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release kill_run lockstep lockstep-train >&2
kills=${1:-200}
seed=${2:-$RANDOM}
.venv/bin/python tests/train/kill/kill_test.py \
  build/release/tests/train/kill/kill_run "$kills" "$seed" ${3:+"$3"}
exec .venv/bin/python tests/train/kill/ranks_kill_test.py \
  build/release/bin/lockstep build/release/tests/train/kill/kill_run \
  "$(((kills + 3) / 4))" "$seed"
