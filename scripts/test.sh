#!/usr/bin/env bash
# Runs all tests of the release build; arguments go to ctest.
set -euo pipefail
cd "$(dirname "$0")/.."
exec ctest --test-dir build/release --output-on-failure -j "$(nproc)" "$@"
