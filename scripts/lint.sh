#!/usr/bin/env bash
# Checks style: format, sizes, layers, test registration, clang-tidy.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/format.sh --check
