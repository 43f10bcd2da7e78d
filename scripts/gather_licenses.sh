#!/usr/bin/env bash
# Gathers the licences of what is linked into a binary, from Debian's packages:
#   scripts/gather_licenses.sh FOLDER [PACKAGE...]
# Writes PACKAGE.txt for each (default: those in the static program `lockstep`), the
# texts of the GPL and LGPL that these name, and VERSIONS.txt: what was linked. Other
# .txt files of FOLDER are removed.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,6p' "$0" >&2; exit 2; }
folder=$1
shift
packages=("$@")
# The package of libstdc++ has the version of the compiler in its name.
library=$(realpath "$("${CXX:-g++}" -print-file-name=libstdc++.a)")
compiler=(libc6-dev "$(dpkg-query -S "$library" | cut -d: -f1)")
if [ ${#packages[@]} -eq 0 ]; then
  packages=(libcli11-dev libdeflate-dev libfmt-dev libpcre2-dev nettle-dev
    nlohmann-json3-dev "${compiler[@]}")
fi
mkdir -p "$folder"
rm -f -- "$folder"/*.txt
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

# Source, its version and package, of an installed package or an unpacked one.
version_of() { # version_of PACKAGE
  local log=${LOCKSTEP_PREFIX:-}/usr/share/doc/$1/changelog.Debian.gz found
  # shellcheck disable=SC2016  # dpkg-query's variables
  found=$(dpkg-query -W -f='${source:Package} ${source:Version}\n' "$1" 2>/dev/null | head -n 1) \
    || found=$(zcat "$log" | sed -n '1s/ (\(.*\)) .*/ \1/p')
  echo "$found $1"
}
{
  echo "What is linked in, from $(. /etc/os-release && echo "$PRETTY_NAME"): source, version, package."
  echo "Debian keeps the sources of each version at https://snapshot.debian.org/package/SOURCE/VERSION/"
  for package in "${packages[@]}" "${compiler[@]}"; do
    version_of "$package"
  done | sort -u
} >"$folder/VERSIONS.txt"
