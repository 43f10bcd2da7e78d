#!/usr/bin/env bash
# Times clean builds, without ccache, against the budgets of the project:
# the torch-free part within 60 s, everything within 480 s on two slow cores.
#   scripts/timings.sh              builds both (minutes)
#   scripts/timings.sh core         builds the torch-free part only
#   scripts/timings.sh log FOLDER   shows the last build in FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."

# clean_build PRESET BUDGET: one line with the wall seconds.
clean_build() {
  local folder=build/timings/$1 start seconds verdict=ok
  rm -rf "$folder"
  start=$(date +%s.%N)
  cmake --preset "$1" -B "$folder" >/dev/null
  CCACHE_DISABLE=1 cmake --build "$folder" --parallel "${LOCKSTEP_JOBS:-$(nproc)}" \
    >"$folder/output.txt" || { tail -40 "$folder/output.txt" >&2; exit 1; }
  seconds=$(echo "$(date +%s.%N) $start" | awk '{printf "%.0f", $1 - $2}')
  [ "$seconds" -le "$2" ] || verdict="over the budget"
  printf '%-8s %4s s wall, budget %3s s: %s\n' "$1" "$seconds" "$2" "$verdict"
}

case ${1:-all} in
  log) python3 scripts/timings.py "$2" ;;
  core)
    clean_build core 60
    python3 scripts/timings.py build/timings/core
    ;;
  all)
    clean_build core 60
    clean_build release 480
    python3 scripts/timings.py build/timings/core build/timings/release
    ;;
  *)
    echo "timings: unknown argument '$1'; expected core, log FOLDER or nothing" >&2
    exit 2
    ;;
esac
