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

program=${SCAN_PROGRAM:-}
if [ -z "$program" ]; then
  sudo=()
  [ "$(id -u)" -eq 0 ] || sudo=(sudo)
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends build-essential cmake ninja-build git libcli11-dev \
    libfmt-dev nlohmann-json3-dev libdeflate-dev nettle-dev libpcre2-dev >/dev/null
  cmake -S "$root" -B "$root/build/scan" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DLOCKSTEP_WITH_TORCH=OFF -DLOCKSTEP_BUILD_TESTS=OFF >/dev/null
  cmake --build "$root/build/scan" --target lockstep
  program=$root/build/scan/bin/lockstep
fi

read -r -a paths <<<"${SCAN_PATHS:-.}"
sarif=${SCAN_SARIF:-lockstep-scan.sarif}
# First in words for the log; its status is the status of both.
status=0
"$program" ckpt scan "${paths[@]}" || status=$?
"$program" ckpt scan --sarif "${paths[@]}" >"$sarif" || [ $? -eq $status ]
{
  echo "sarif=$sarif"
  echo "status=$status"
} >>"$output"
case $status in
  0) ;;
  1) [ "$SCAN_FAIL_ON" = never ] || exit 1 ;;
  3) [ "$SCAN_FAIL_ON" != unreadable ] || exit 3 ;;
  *) exit $status ;;
esac
