#!/usr/bin/env bash
# Installs what Lockstep builds with: Debian packages (scripts/apt-packages.txt)
# and the torch wheel in .venv (scripts/requirements.txt). Skips what is there.
#
#   LOCKSTEP_PIP_ARGS  extra options for pip, for example a find-links folder
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=$(grep -v '^#' scripts/apt-packages.txt | awk '{print $1}')
missing=()
if command -v dpkg-query >/dev/null; then
  for package in $wanted; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' \
      || missing+=("$package")
  done
else
  echo "setup: not a Debian system; install these by hand: $(echo $wanted)" >&2
fi
if [ ${#missing[@]} -gt 0 ]; then
  sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    sudo=(sudo)
    echo "setup: sudo is needed to install ${#missing[@]} Debian packages"
  fi
  echo "setup: installing ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

stamp=.venv/.lockstep-requirements
if ! cmp -s scripts/requirements.txt "$stamp"; then
  [ -x .venv/bin/python ] || python3 -m venv .venv
  echo "setup: installing the torch wheel into .venv"
  # shellcheck disable=SC2086  # the variable holds several options
  .venv/bin/python -m pip install --quiet --disable-pip-version-check \
    ${LOCKSTEP_PIP_ARGS:-} -r scripts/requirements.txt
  cp scripts/requirements.txt "$stamp"
fi
