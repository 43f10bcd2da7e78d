#!/usr/bin/env bash
# Runs all tests of the release build but the slow ones, then those of the
# torch-free libraries built file by file. Arguments go to ctest, which then runs
# on the release build alone. Slow tests (gigabytes, second builds):
# scripts/test.sh -L slow
set -euo pipefail
cd "$(dirname "$0")/.."
labels=(-LE slow)
for argument in "$@"; do
  case $argument in
    -L* | --label*) labels=() ;;
  esac
done
ctest --test-dir build/release --output-on-failure -j "$(nproc)" \
  "${labels[@]}" "$@"

# In a batch, what a name means can depend on the files before: once without.
if [ $# -eq 0 ]; then
  scripts/build.sh files base_test ckpt_test
  ctest --test-dir build/files --output-on-failure -j "$(nproc)" \
    -R '^(base|ckpt)_test$'
fi
