#!/usr/bin/env bash
# Checks style: format, sizes, layers, registration, pages, clang-tidy (see
# check_tidy.py for what is checked when). scripts/lint.sh [FILE...] runs
# clang-tidy on the batches of these files only.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/format.sh --check
for check in sizes layers registration pages torch_cases; do
  python3 "scripts/check_$check.py"
done

# clang-tidy needs the compile commands and the batches, not the objects.
cmake --preset release -B build/lint -DLOCKSTEP_UNITY=ON \
  -DCMAKE_COMPILE_WARNING_AS_ERROR=ON >/dev/null
python3 scripts/check_cuda.py build/lint/compile_commands.json
python3 scripts/check_tidy.py build/lint/compile_commands.json "$@"
