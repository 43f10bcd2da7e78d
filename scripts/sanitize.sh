#!/usr/bin/env bash
# Runs the parallel tests under a sanitizer: scripts/sanitize.sh address|thread
# What LibTorch itself reports is left out by tests/sanitizers/*.supp, where each
# line has its reason.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  address) preset=asan ;;
  thread) preset=tsan ;;
  *) echo "usage: scripts/sanitize.sh address|thread" >&2; exit 2 ;;
esac
cmake --preset "$preset" >/dev/null
ninja -C "build/$preset" -j "${LOCKSTEP_JOBS:-2}" \
  kernels_test parallel_test sim_test user_test lockstep_sim

lists="$PWD/tests/sanitizers"
export ASAN_OPTIONS="detect_leaks=1:alloc_dealloc_mismatch=0"
export LSAN_OPTIONS="suppressions=$lists/leaks.supp:print_suppressions=0"
export TSAN_OPTIONS="suppressions=$lists/threads.supp:ignore_noninstrumented_modules=0:print_suppressions=0"
for test in kernels parallel sim user; do
  "build/$preset/tests/$test/${test}_test" --gtest_filter="-*Oracle*:*ByHand*:FourCombinations*:SimProcess*"
done
