#!/usr/bin/env bash
# Runs all tests of the release build but the slow ones, then those of the
# torch-free libraries built file by file. Arguments go to ctest, which then runs
# on the release build alone. Slow tests (gigabytes, second builds):
# scripts/test.sh -L slow
set -euo pipefail
cd "$(dirname "$0")/.."

# run BUILD ARGUMENTS...: ctest; what failed is printed again at the end, where
# a log that was cut short still has it.
run() {
  local build=$1
  shift
  ctest --test-dir "build/$build" --output-on-failure -j "$(nproc)" "$@" && return
  awk '/^\[ RUN /{text = ""} {text = text $0 "\n"}
    /^\[  FAILED  \] .* ms\)$/{printf "%s", text}' \
    "build/$build/Testing/Temporary/LastTest.log" | tail -n 200
  return 1
}

labels=(-LE slow)
for argument in "$@"; do
  case $argument in
    -L* | --label*) labels=() ;;
  esac
done
run release "${labels[@]}" "$@"

# In a batch, what a name means can depend on the files before: once without.
if [ $# -eq 0 ]; then
  scripts/build.sh files base_test ckpt_test
  run files -R '^(base|ckpt)_test$'
fi
