#!/usr/bin/env bash
# What action.yml runs: scans $SCAN_PATHS, writes SARIF to $SCAN_SARIF.
#
#   SCAN_PROGRAM  a lockstep that is installed; empty: built from this repository
#   SCAN_FAIL_ON  found, unreadable (also found) or never
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
output=${GITHUB_OUTPUT:-/dev/null}
case ${SCAN_FAIL_ON:=unreadable} in
  found | unreadable | never) ;;
  *) echo "scan: fail-on is '$SCAN_FAIL_ON', expected found, unreadable or never" >&2
     exit 2 ;;
esac
# To the end of all lines: read returns 1 there.
read -r -d '' -a paths <<<"${SCAN_PATHS:-.}" || true
if [ ${#paths[@]} -eq 0 ]; then
  echo "scan: paths names no file and no folder" >&2
  exit 2
fi
sarif=${SCAN_SARIF:-lockstep-scan.sarif}
# The repository may hold a link of that name, which would lead out of it.
folder=$(dirname -- "$sarif")
if [ -L "$sarif" ] || [ -d "$sarif" ] || [ ! -d "$folder" ] || [ ! -w "$folder" ]; then
  echo "scan: the file of 'sarif' cannot be written: expected a name that is no link and no" \
    "folder, in a folder that is there" >&2
  exit 4
fi
scratch=$(mktemp -d -- "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/lockstep-scan.XXXXXX")
part=$scratch/scan.sarif
# Names of files and in pickles are not to be commands to the runner.
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
echo "::stop-commands::$token"
trap 'rm -rf -- "$scratch"; printf "\n::%s::\n" "$token"' EXIT

program=${SCAN_PROGRAM:-}
if [ -z "$program" ]; then
  sudo=()
  [ "$(id -u)" -eq 0 ] || sudo=(sudo)
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends build-essential cmake ninja-build git libcli11-dev \
    libfmt-dev nlohmann-json3-dev libdeflate-dev nettle-dev libpcre2-dev >/dev/null
  # Prints what is too old itself: CMake, fmt or nlohmann_json.
  if ! cmake -S "$root" -B "$root/build/scan" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DLOCKSTEP_WITH_TORCH=OFF -DLOCKSTEP_BUILD_TESTS=OFF >/dev/null; then
    echo "scan: the build needs Debian 12, Ubuntu 24.04 or newer; 'program' names a lockstep that is there" >&2
    exit 5
  fi
  cmake --build "$root/build/scan" --target lockstep || exit 5
  program=$root/build/scan/bin/lockstep
fi

# First in words for the log; its status is the status of both.
status=0
"$program" ckpt scan -- "${paths[@]}" 2>&1 || status=$?
echo "status=$status" >>"$output"
case $status in
  0 | 1 | 3) ;;
  *) exit $status ;; # nothing was scanned
esac
again=0
# shellcheck disable=SC2069  # what it says of files goes to the log
"$program" ckpt scan --sarif -- "${paths[@]}" 2>&1 >"$part" || again=$?
if [ $again -ne $status ] || [ ! -s "$part" ]; then
  echo "scan: for SARIF the scan ended with status $again, before with $status" >&2
  exit 4
fi
mv -T -- "$part" "$sarif"
echo "sarif=$sarif" >>"$output"
case $status in
  1) [ "$SCAN_FAIL_ON" = never ] || exit 1 ;;
  3) [ "$SCAN_FAIL_ON" != unreadable ] || exit 3 ;;
esac
