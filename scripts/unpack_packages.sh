#!/usr/bin/env bash
# Unpacks Debian packages, and what they need that is not installed, into a folder,
# without root: scripts/unpack_packages.sh PREFIX PACKAGE...
# Skips what is there. Sourcing scripts/prefix_env.sh makes programs find it.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
mkdir -p "$1"
prefix=$(realpath "$1")
shift
for program in g++ python3 apt-get dpkg-deb; do
  command -v "$program" >/dev/null || {
    echo "unpack: expected $program on this machine, got none." \
      "Hint: libraries and tools can be unpacked, a compiler and Python cannot" >&2
    exit 1
  }
done
# The machine's own: unpacked ones would look for their parts below /usr.
packages=()
for package in "$@"; do
  case $package in
    build-essential | python3 | git) ;;
    *) packages+=("$package") ;;
  esac
done

done_file=$prefix/.unpacked
if [ "$(cat "$done_file" 2>/dev/null)" = "${packages[*]}" ]; then
  exit 0
fi
# Lists and archives of its own: those of the system are root's.
state=$prefix/.apt
mkdir -p "$state/lists/partial" "$state/archives/partial"
apt=(apt-get -qq -o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$state"
  -o "Dir::Cache::Archives=$state/archives" -o Debug::NoLocking=1)
"${apt[@]}" update
steps=$("${apt[@]}" -s install --no-install-recommends "${packages[@]}")
# Not newer versions, in [], of what is installed: a second C library would be one.
mapfile -t needed < <(awk '$1 == "Inst" && $3 !~ /^\[/ {print $2}' <<<"$steps")
echo "unpack: ${#needed[@]} packages into $prefix"
if [ ${#needed[@]} -gt 0 ]; then
  (cd "$state/archives" && "${apt[@]}" download "${needed[@]}")
  for file in "$state"/archives/*.deb; do
    dpkg-deb -x "$file" "$prefix"
  done
fi
rm -rf "$state"

# Links between packages: one side may be installed, the other one is here.
libraries=$(g++ -print-multiarch)
find "$prefix" -xtype l | while read -r link; do
  target=$(readlink "$link")
  for place in "$prefix$target" "/usr/lib/$libraries/$target" "/lib/$libraries/$target" \
    "$prefix/usr/lib/$libraries/$target" "$prefix/lib/$libraries/$target"; do
    if [ -e "$place" ]; then
      ln -sf "$place" "$link"
      break
    fi
  done
done
echo "${packages[*]}" >"$done_file"
