#!/usr/bin/env bash
# Runs all tests of the release build but the slow ones; arguments go to ctest.
# Slow ones (gigabytes, second builds): scripts/test.sh -L slow
set -euo pipefail
cd "$(dirname "$0")/.."
labels=(-LE slow)
for argument in "$@"; do
  case $argument in
    -L* | --label*) labels=() ;;
  esac
done
exec ctest --test-dir build/release --output-on-failure -j "$(nproc)" \
  "${labels[@]}" "$@"
