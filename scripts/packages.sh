#!/usr/bin/env bash
# Makes every package and tries it, by hand (half an hour and root):
#   scripts/packages.sh [prefix|deb|conan|recipes|oci|cross]...
# docs/packages.md says what each one is. All goes into build/packages.
#
#   LOCKSTEP_VCPKG_SCHEMA  docs/vcpkg.schema.json of a clone of vcpkg-tool
#   LOCKSTEP_CONAN_TYPE    build type for Conan (Release)
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$root/build/packages
mkdir -p "$work"
jobs=${LOCKSTEP_JOBS:-$(nproc)}

# Tools from pip, in an environment of their own.
tool() {
  if [ ! -x "$work/venv/bin/$1" ]; then
    [ -x "$work/venv/bin/python" ] || python3 -m venv "$work/venv"
    # shellcheck disable=SC2086  # the variable holds several options
    "$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
      ${LOCKSTEP_PIP_ARGS:-} "${@:2}" >&2
  fi
}

# The shared library in a prefix with a space, moved; a build without a type,
# lib64, DESTDIR, a project around it, and reconfiguring.
try_prefix() {
  local build=$work/shared moved="$work/moved prefix"
  rm -rf "$moved" "$work/stage" "$work/consumer" "$work/outer"
  cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE= -DBUILD_SHARED_LIBS=ON \
    -DCMAKE_INSTALL_LIBDIR=lib64 -DCMAKE_INSTALL_PREFIX=/opt/lockstep \
    -DLOCKSTEP_WITH_TORCH=OFF -DLOCKSTEP_BUILD_TESTS=OFF >/dev/null
  cmake --build "$build" --parallel "$jobs"
  DESTDIR=$work/stage cmake --install "$build" >/dev/null
  mv "$work/stage/opt/lockstep" "$moved"
  "$moved/bin/lockstep" --version
  readelf -d "$moved/lib64/liblockstep-ckpt.so" | grep -E 'SONAME|NEEDED|RUNPATH'
  python3 scripts/check_symbols.py "$moved/lib64/liblockstep-ckpt.so"
  if grep -rl "$root" "$moved"; then
    echo "packages: these files name this folder" >&2
    return 1
  fi
  cmake -G Ninja -S packaging/conan/test_package -B "$work/consumer" \
    "-DLockstep_DIR=$moved/lib64/cmake/Lockstep" -DCMAKE_CXX_STANDARD=23 \
    -DCMAKE_DISABLE_FIND_PACKAGE_{fmt,nlohmann_json,Nettle,PCRE2,libdeflate}=ON >/dev/null
  cmake --build "$work/consumer"
  "$work/consumer/round_trip" "$work/a.pt"
  local flags
  flags=$(PKG_CONFIG_PATH="$moved/lib64/pkgconfig" pkgconf --cflags --libs lockstep-ckpt)
  eval "g++ -std=c++20 packaging/conan/test_package/round_trip.cpp -o '$work/by_pkgconf' $flags"
  LD_LIBRARY_PATH=$moved/lib64 "$work/by_pkgconf" "$work/a.pt"
  cmake -S . -B "$build" -DLOCKSTEP_STATIC_PROGRAM=ON >/dev/null # has no effect there
  cmake --build "$build" --parallel "$jobs" | tail -n 1
  try_subproject
}

# In a project that asks for shared libraries itself, by a folder and by FetchContent.
try_subproject() {
  cat >"$work/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.25)
project(Outer LANGUAGES CXX)
set(BUILD_SHARED_LIBS ON)
set(LOCKSTEP_WITH_TORCH OFF)
include(FetchContent)
FetchContent_Declare(Lockstep SOURCE_DIR "$root" OVERRIDE_FIND_PACKAGE)
find_package(Lockstep REQUIRED)
add_executable(round_trip "$root/packaging/conan/test_package/round_trip.cpp")
target_link_libraries(round_trip PRIVATE lockstep::ckpt lockstep::base)
EOF
  cmake -G Ninja -S "$work" -B "$work/outer" >/dev/null
  cmake --build "$work/outer" --parallel "$jobs" | tail -n 1
  "$work/outer/round_trip" "$work/b.pt"
  if cmake --install "$work/outer" --prefix "$work/none" | grep lockstep; then
    echo "packages: a project around Lockstep installs parts of it" >&2
    return 1
  fi
}

try_deb() {
  scripts/deb.sh "$work/deb"
}

try_conan() {
  tool conan conan
  export CONAN_HOME=$work/conan
  "$work/venv/bin/conan" profile detect --force >/dev/null 2>&1
  local shared
  for shared in False True; do
    "$work/venv/bin/conan" create packaging/conan -nr --build=missing -s compiler.cppstd=20 \
      -s build_type="${LOCKSTEP_CONAN_TYPE:-Release}" -o "lockstep-ckpt/*:shared=$shared"
  done
}

# conda and vcpkg take their packages from hosts of their own: here they are read.
try_recipes() {
  tool check-jsonschema check-jsonschema py-rattler-build
  "$work/venv/bin/python" scripts/check_recipes.py
  if [ -n "${LOCKSTEP_VCPKG_SCHEMA:-}" ]; then
    "$work/venv/bin/check-jsonschema" --schemafile "$LOCKSTEP_VCPKG_SCHEMA" \
      --base-uri "file://$LOCKSTEP_VCPKG_SCHEMA" packaging/vcpkg/lockstep-ckpt/vcpkg.json
  fi
}

# The static program alone in an image, and run in it.
try_oci() {
  scripts/build.sh core lockstep
  mkdir -p "$work/deb/out"
  cp build/core/bin/lockstep "$work/deb/out/"
  scripts/in_debian.sh "$work/deb" '
apt-get install -y -qq --no-install-recommends buildah >/dev/null
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
buildah build -q -f /src/packaging/oci/Containerfile -t lockstep /out
buildah push -q lockstep oci-archive:/out/lockstep.oci.tar:lockstep
container=$(buildah from lockstep)
mounted=$(buildah mount "$container")
find "$mounted" -type f
cp /src/testdata/valid/tiny.pt "$mounted/data/"
chroot "$mounted" /lockstep ckpt /data/tiny.pt
ls -l /out/lockstep.oci.tar
buildah rm "$container" >/dev/null'
}

try_cross() {
  local arch
  for arch in aarch64 s390x; do
    scripts/in_debian.sh "$work/deb" "
dpkg --add-architecture arm64 && dpkg --add-architecture s390x && apt-get update -qq
cd /src && apt-get install -y -qq --no-install-recommends \$(scripts/cross_build.sh packages) >/dev/null
scripts/cross_build.sh $arch /out/cross-$arch"
  done
}

items=("$@")
if [ ${#items[@]} -eq 0 ]; then
  items=(prefix deb conan recipes oci cross)
fi
for item in "${items[@]}"; do
  echo "packages: $item"
  "try_$item"
done
