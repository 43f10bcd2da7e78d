#!/usr/bin/env bash
# Builds the part without LibTorch for another processor and runs its tests under
# qemu-user: scripts/cross_build.sh aarch64|s390x [FOLDER] [TARGET...]
# s390x is big-endian. FOLDER is build/cross-ARCH; without targets all that is
# needed for the tests of base and ckpt and the replay of the fuzz targets.
#
#   LOCKSTEP_NATIVE  a `lockstep` of this machine: its digests of all test files
#                    must be those of the other processor's
#   LOCKSTEP_CROSS_FLAGS  for the compiler (-O1 -DNDEBUG)
#
# Needs Debian packages, which `scripts/cross_build.sh packages` lists (after
# dpkg --add-architecture arm64 and s390x).
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  aarch64) debian=arm64 ;;
  s390x) debian=s390x ;;
  packages)
    echo cmake ninja-build python3 libcli11-dev nlohmann-json3-dev \
      g++-aarch64-linux-gnu g++-s390x-linux-gnu qemu-user-static \
      {libfmt-dev,libdeflate-dev,nettle-dev,libpcre2-dev,libgtest-dev,libgmock-dev}:{arm64,s390x}
    exit ;;
  *) sed -n '2,13p' "$0" >&2; exit 2 ;;
esac
arch=$1
folder=${2:-build/cross-$arch}
targets=("${@:3}")
if [ ${#targets[@]} -eq 0 ]; then
  targets=(lockstep base_test ckpt_test ckpt_fuzz)
fi

# Headers of PCRE2 and others are the machine's own, libraries those of $debian.
cmake -G Ninja -S . -B "$folder" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS_RELEASE="${LOCKSTEP_CROSS_FLAGS:--O1 -DNDEBUG}" \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$arch" \
  -DCMAKE_CXX_COMPILER="$arch-linux-gnu-g++" \
  -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-$arch-static" \
  -DLOCKSTEP_WITH_TORCH=OFF -DLOCKSTEP_BUILD_EXAMPLES=OFF >/dev/null
cmake --build "$folder" --parallel "${LOCKSTEP_JOBS:-$(nproc)}" --target "${targets[@]}"

# What PROGRAM... says of every test file: tensors' digests, or the error.
digests() {
  for file in testdata/valid/*; do
    echo "$file"
    "$@" ckpt digest "$file" 2>&1 || true
  done
}
program=$folder/bin/lockstep
if [ -e "$program" ]; then
  echo "cross_build: $debian: $(od -An -tx1 -N20 "$program" | tr -d '\n')"
  "qemu-$arch-static" "$program" ckpt testdata/valid/dataparallel.pt
  if [ -n "${LOCKSTEP_NATIVE:-}" ]; then
    digests "$LOCKSTEP_NATIVE" >"$folder/native.txt"
    digests "qemu-$arch-static" "$program" >"$folder/cross.txt"
    diff "$folder/native.txt" "$folder/cross.txt"
    echo "cross_build: $(wc -l <"$folder/native.txt") lines of digests are equal"
  fi
fi
tests=$(IFS='|'; echo "${targets[*]}")
ctest --test-dir "$folder" --output-on-failure -R "^(${tests/ckpt_fuzz/fuzz\\..*})\$"
