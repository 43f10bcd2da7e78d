#!/usr/bin/env bash
# Builds and tests everything against several versions of LibTorch, each with
# the Python of the same wheel as oracle: scripts/torch_matrix.sh [VERSION...]
# Ends with a line per version; the status says whether all passed. A CUDA wheel
# takes 5 GB of disk and needs no GPU here. Logs: build/torch-VERSION/*.log.
#
#   LOCKSTEP_PIP_ARGS       extra options for pip
#   LOCKSTEP_MATRIX_VENVS   folder with virtual environments named by version, to
#                           use instead of making build/torch-VERSION/venv
#   LOCKSTEP_JOBS           compilers and tests at once
set -euo pipefail
cd "$(dirname "$0")/.."
versions=("$@")
if [ ${#versions[@]} -eq 0 ]; then
  versions=(2.11.0 2.12.1 2.13.0 2.14.1 2.15.0)
fi
jobs=${LOCKSTEP_JOBS:-$(nproc)}
if command -v ccache >/dev/null; then
  export CCACHE_SLOPPINESS=pch_defines,time_macros
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

# The virtual environment of a version; made if it is not there.
environment() {
  local venv=$PWD/build/torch-$1/venv
  if [ -n "${LOCKSTEP_MATRIX_VENVS:-}" ]; then
    venv=$LOCKSTEP_MATRIX_VENVS/$1
  elif [ ! -e "$venv/.complete" ]; then
    # shellcheck disable=SC2086  # the variable holds several options
    python3 -m venv "$venv" \
      && sed "s/^torch==.*/torch==$1/" scripts/requirements.txt \
      | "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        ${LOCKSTEP_PIP_ARGS:-} -r /dev/stdin >&2 \
      && touch "$venv/.complete" || return 1
  fi
  echo "$venv"
}

build() {
  cmake --preset release -B "$1" "-DLIBTORCH_ROOT=$2" -DLOCKSTEP_BUILD_BENCH=OFF \
    && cmake --build "$1" --parallel "$jobs"
}

# Builds and tests one version; prints its line of the table.
try_version() {
  local folder=build/torch-$1 venv root wheel status=0
  printf '%-8s' "$1"
  mkdir -p "$folder"
  if ! venv=$(environment "$1") || ! root=$("$venv/bin/python" -c \
      'import os, torch; print(os.path.dirname(torch.__file__))'); then
    echo "cannot be installed"
    return 1
  fi
  wheel=$("$venv/bin/python" -c 'import torch
print("CUDA " + torch.version.cuda if torch.version.cuda else "CPU")')
  printf '%-9s wheel  ' "$wheel"
  if ! build "$folder" "$root" >"$folder/build.log" 2>&1; then
    echo "does not build"
    return 1
  fi
  ctest --test-dir "$folder" --output-on-failure -j "$jobs" -LE slow \
    >"$folder/test.log" 2>&1 || status=$?
  grep "tests passed" "$folder/test.log" || echo "no test ran"
  return "$status"
}

failures=0
table=()
for version in "${versions[@]}"; do
  echo "torch_matrix: LibTorch $version" >&2
  line=$(try_version "$version") || failures=$((failures + 1))
  table+=("$line")
done
printf '%s\n' "${table[@]}"
exit $((failures > 0))
