#!/usr/bin/env bash
# Installs what Lockstep builds with: Debian packages (scripts/apt-packages.txt)
# and the torch wheel in .venv (scripts/requirements.txt). Skips what is there.
#
#   LOCKSTEP_PREFIX    folder to unpack the packages into, instead of installing
#                      them: for people without root (docs/packages.md)
#   LOCKSTEP_PIP_ARGS  extra options for pip, for example a find-links folder
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=$(grep -v '^#' scripts/apt-packages.txt | awk '{print $1}')
missing=()
if [ -n "${LOCKSTEP_PREFIX:-}" ]; then
  # shellcheck disable=SC2046  # a word for each package
  scripts/unpack_packages.sh "$LOCKSTEP_PREFIX" \
    $(sed -n '2,${/^#/q; p}' scripts/apt-packages.txt | awk '{print $1}')
elif command -v dpkg-query >/dev/null; then
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
    if ! command -v sudo >/dev/null; then
      echo "setup: expected root or sudo, got neither. Hint: with LOCKSTEP_PREFIX=FOLDER" \
        "the packages are unpacked there, without root" >&2
      exit 1
    fi
  fi
  echo "setup: installing ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# A Python without ensurepip (Debian's python3-venv) makes an environment without pip;
# its wheel is then in the prefix.
make_venv() {
  if python3 -c 'import ensurepip' 2>/dev/null; then
    python3 -m venv .venv
  else
    local wheel
    if ! wheel=$(ls "${LOCKSTEP_PREFIX:-}"/usr/share/python-wheels/pip-*.whl 2>/dev/null); then
      echo "setup: $(command -v python3) cannot make an environment with pip: expected its" \
        "module ensurepip. Hint: install python3-venv, or put another python3 first in PATH" >&2
      exit 1
    fi
    python3 -m venv --without-pip .venv
    .venv/bin/python "$wheel/pip" install --quiet --no-index \
      --find-links "$(dirname "$wheel")" pip
  fi
}

stamp=.venv/.lockstep-requirements
if ! cmp -s scripts/requirements.txt "$stamp"; then
  [ -x .venv/bin/pip ] || make_venv
  echo "setup: installing the torch wheel into .venv"
  # shellcheck disable=SC2086  # the variable holds several options
  .venv/bin/python -m pip install --quiet --disable-pip-version-check \
    ${LOCKSTEP_PIP_ARGS:-} -r scripts/requirements.txt
  cp scripts/requirements.txt "$stamp"
fi
