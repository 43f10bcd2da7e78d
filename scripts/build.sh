#!/usr/bin/env bash
# Configures (once) and builds a preset: scripts/build.sh [preset] [target...]
# Warnings are errors here, unlike in a build by cmake alone.
#
#   LOCKSTEP_WERROR  OFF: they are not
#   LOCKSTEP_PREFIX  where scripts/setup.sh unpacked packages
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prefix_env.sh
preset=${1:-release}
shift || true

launcher=()
if command -v ccache >/dev/null; then
  # The precompiled header defeats ccache unless told that it is safe.
  export CCACHE_SLOPPINESS=pch_defines,time_macros
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
options=()
if [ -n "${LOCKSTEP_PREFIX:-}" ]; then
  options=(-DLOCKSTEP_BUILD_PYTHON=OFF) # Python's headers are found where it is installed
fi
if [ ! -e "build/$preset/build.ninja" ]; then
  cmake --preset "$preset" "${launcher[@]}" "${options[@]}" \
    "-DCMAKE_COMPILE_WARNING_AS_ERROR=${LOCKSTEP_WERROR:-ON}" >/dev/null
fi
cmake --build "build/$preset" --parallel "${LOCKSTEP_JOBS:-$(nproc)}" \
  ${1:+--target "$@"}
