#!/usr/bin/env bash
# Runs a command as root in a bare Debian that is kept in FOLDER/root:
#   scripts/in_debian.sh FOLDER COMMAND
# This repository is /src there, read-only, and FOLDER/out is /out. The first call
# makes it (debootstrap, 400 MB) with the package source of this machine,
# or with deb.debian.org.
#
#   LOCKSTEP_DEBIAN  the release (bookworm)
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,8p' "$0" >&2; exit 2; }
repo=$(realpath "$(dirname "$0")/..")
mkdir -p "$1/out"
folder=$(realpath "$1")
root=$folder/root

first_mirror() {
  local found
  found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null \
    | grep -E '^(deb |URIs:)' | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1) || true
  echo "${found:-http://deb.debian.org/debian}"
}

if [ ! -e "$root/.made" ]; then
  rm -rf --one-file-system "$root"
  debootstrap --variant=minbase --include=ca-certificates \
    "${LOCKSTEP_DEBIAN:-bookworm}" "$root" "$(first_mirror)" >"$folder/debootstrap.log"
  for file in /etc/apt/apt.conf.d /etc/ssl/certs /usr/local/share/ca-certificates; do
    if [ -e "$file" ]; then
      rm -rf "${root:?}$file" # its links lead out of it
      mkdir -p "$(dirname "$root$file")"
      cp -aL "$file" "$root$file"
    fi
  done
  mkdir -p "$root/src" "$root/out"
  touch "$root/.made"
fi
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"

# Mounts are this call's own, and end with it.
exec unshare --mount --propagation private bash -c '
  set -e
  root=$1 repo=$2 out=$3
  mount --bind "$root" "$root" # programs there expect / to be a mount
  mount --bind "$repo" "$root/src"
  mount -o remount,ro,bind "$root/src"
  mount --bind "$out" "$root/out"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive chroot "$root" /bin/bash -euo pipefail -c "$4"
' in_debian "$root" "$repo" "$folder/out" "$2" </dev/null
