#!/usr/bin/env bash
# Gathers the licences of what is linked into a binary, from Debian's packages:
#   scripts/gather_licenses.sh FOLDER [PACKAGE...]
# Writes PACKAGE.txt for each (default: those in the static program `lockstep`), and
# the texts of the GPL and LGPL that these name.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
folder=$1
shift
packages=("$@")
if [ ${#packages[@]} -eq 0 ]; then
  # The package of libstdc++ has the version of the compiler in its name.
  library=$(realpath "$("${CXX:-g++}" -print-file-name=libstdc++.a)")
  packages=(libcli11-dev libdeflate-dev libfmt-dev libpcre2-dev nettle-dev
    nlohmann-json3-dev libc6-dev "$(dpkg-query -S "$library" | cut -d: -f1)")
fi
mkdir -p "$folder"
for package in "${packages[@]}"; do
  # Those that scripts/unpack_packages.sh unpacked lie below LOCKSTEP_PREFIX.
  text=usr/share/doc/$package/copyright
  for root in "${LOCKSTEP_PREFIX:-}" ""; do
    [ ! -f "$root/$text" ] || break
  done
  [ -f "$root/$text" ] || { echo "gather_licenses: there is no /$text" >&2; exit 1; }
  cp -L --no-preserve=mode "$root/$text" "$folder/$package.txt"
done
for name in GPL-2 GPL-3 LGPL-2 LGPL-2.1 LGPL-3; do
  cp --no-preserve=mode "/usr/share/common-licenses/$name" "$folder/$name.txt"
done
