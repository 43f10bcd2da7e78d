#!/usr/bin/env bash
# Formats all C++ files, or checks them: scripts/format.sh [--check]
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[ "${1:-}" = --check ] && mode=(--dry-run --Werror)
git ls-files -z --cached --others --exclude-standard '*.h' '*.cpp' \
  | xargs -0 -r clang-format-16 "${mode[@]}"
