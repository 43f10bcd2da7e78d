#!/usr/bin/env bash
# Makes every package and tries it, by hand (an hour and root):
#   scripts/packages.sh [prefix|static|deb|conan|wheels|fresh|noroot|recipes|oci|cross]...
# docs/packages.md says what each one is. All goes into build/packages. fresh: the
# wheels (of build/wheels, for Python 3.11 and 3.12) in a bare Debian 12 and 13; noroot:
# what a user builds there.
#
#   LOCKSTEP_PTH           a checkpoint that each package reads (a published one of
#                          ../shared/real_files if that is there, else one of testdata)
#   LOCKSTEP_WHEELS        a folder of wheels that pip takes in bare systems, too
#   LOCKSTEP_VCPKG_SCHEMA  docs/vcpkg.schema.json of a clone of vcpkg-tool
#   LOCKSTEP_CONAN_TYPE    build type for Conan (Release)
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$root/build/packages
mkdir -p "$work"
jobs=${LOCKSTEP_JOBS:-$(nproc)}
pth=$root/testdata/valid/dataparallel.pt
for file in "$root"/../shared/real_files/alexnet_lpips_py2_2018.pth "${LOCKSTEP_PTH:-}"; do
  [ ! -f "$file" ] || pth=$(realpath "$file")
done
export LOCKSTEP_PTH=$pth

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
  "$moved/bin/lockstep" ckpt "$pth"
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
  "$work/consumer/round_trip" "$work/a.pt" "$pth"
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

# The static libraries, as the README installs them.
try_static() {
  rm -rf "$work/static" "$work/static-consumer"
  scripts/build.sh core lockstep lockstep_ckpt lockstep_shell_files
  cmake --install build/core --component ckpt --prefix "$work/static" >/dev/null
  "$work/static/bin/lockstep" ckpt "$pth"
  cmake -G Ninja -S examples/projects/ckpt_only -B "$work/static-consumer" \
    "-DCMAKE_PREFIX_PATH=$work/static" >/dev/null
  cmake --build "$work/static-consumer"
  "$work/static-consumer/ckpt_only" "$pth" "$work/copy.pt"
}

# The wheels, tried in bare virtual environments of this machine.
try_wheels() {
  scripts/python_package.sh
  scripts/torch_package.sh
}

# as_user RELEASE FOLDER PACKAGES COMMAND: in a bare Debian with these packages, as a
# user who is not root, in a home of this call's own; /out has the wheels.
as_user() {
  local folder=$work/$2 wheel
  mkdir -p "$folder/out/wheels"
  cp "$pth" "$folder/out/model.pth"
  for wheel in build/wheels/*.whl "${LOCKSTEP_WHEELS:-/nowhere}"/*.whl; do
    [ ! -f "$wheel" ] || cp -u "$wheel" "$folder/out/wheels"
  done
  printf 'set -euo pipefail\ncd\n%s\n' "$4" >"$folder/out/command.sh"
  LOCKSTEP_DEBIAN=$1 scripts/in_debian.sh "$folder" "
apt-get update -qq
apt-get install -y -qq --no-install-recommends $3 >/dev/null
userdel -rf someone 2>/dev/null || true
useradd -m someone
runuser -u someone -- env HOME=/home/someone PATH=/usr/bin:/bin LANG=C.UTF-8 \
  LOCKSTEP_PIP_ARGS='${LOCKSTEP_PIP_ARGS:-}' LOCKSTEP_JOBS=$jobs LOCKSTEP_PTH=/out/model.pth \
  bash /out/command.sh"
}

# as_user's environment `env` with the wheels, and none of an index by their names.
env_with_wheels='
python3 -m venv env
pip() { env/bin/pip "$@" --quiet --disable-pip-version-check; }
pip install $LOCKSTEP_PIP_ARGS --find-links /out/wheels numpy \
  "$(grep "^torch==" /src/scripts/requirements.txt)"
pip install --no-index --find-links /out/wheels lockstep-torch
'

# pip installs the wheels where no compiler and no -dev package is.
try_fresh() {
  local release
  for release in bookworm trixie; do
    echo "packages: the wheels in Debian $release"
    as_user "$release" "wheels-$release" "python3 python3-venv dataset-fashion-mnist" "$env_with_wheels"'
LOCKSTEP_DEMO=1 /src/scripts/try_torch_wheel.sh env'
  done
}

# A user builds the demo, and a C++ program with the wheel.
try_noroot() {
  as_user bookworm noroot "g++ git make python3 python3-venv ca-certificates" "$env_with_wheels"'
pip install $LOCKSTEP_PIP_ARGS --find-links /out/wheels cmake ninja
export PATH=$HOME/env/bin:$PATH
cmake -G Ninja -S /src/examples/projects/training_loop -B loop \
  -DCMAKE_PREFIX_PATH="$(python -m lockstep.cmake)"
cmake --build loop
loop/training_loop'
  as_user bookworm noroot-build "g++ git make python3 ca-certificates" '
git config --global --add safe.directory "*" # /src belongs to root
git clone -q /src project
cd project
export LOCKSTEP_PREFIX=$HOME/.local/lockstep LOCKSTEP_PIP_ARGS="$LOCKSTEP_PIP_ARGS --find-links /out/wheels"
make demo
build/release/bin/lockstep ckpt "$LOCKSTEP_PTH"'
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

# The static program with its licences in an image, and run in it. The bare system is
# that of try_deb, whose packages lie in out itself.
try_oci() {
  local image=$work/deb/out/image
  scripts/build.sh core lockstep
  mkdir -p "$image"
  cp build/core/bin/lockstep "$image"
  scripts/gather_licenses.sh "$image/licenses"
  cp LICENSE packaging/oci/THIRD_PARTY.md "$image/licenses"
  scripts/in_debian.sh "$work/deb" '
apt-get update -qq
apt-get install -y -qq --no-install-recommends buildah >/dev/null
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
version=$(sed -n "s/.*kVersion = \"\(.*\)\";/\1/p" /src/lockstep/base/version.h)
buildah build -q --build-arg "VERSION=$version" -f /src/packaging/oci/Containerfile -t lockstep /out/image
buildah push -q lockstep oci-archive:/out/image/lockstep.oci.tar:lockstep
buildah inspect --format "{{.OCIv1.Config.Labels}}" --type image lockstep
container=$(buildah from lockstep)
mounted=$(buildah mount "$container")
find "$mounted" -type f
cp /src/testdata/valid/tiny.pt "$mounted/data/"
chroot "$mounted" /lockstep ckpt /data/tiny.pt
ls -l /out/image/lockstep.oci.tar
buildah rm "$container" >/dev/null'
}

# The static program of this machine says what the digests of the test files are.
try_cross() {
  local arch
  scripts/build.sh core lockstep
  for arch in aarch64 s390x; do
    scripts/in_debian.sh "$work/deb" "
dpkg --add-architecture arm64 && dpkg --add-architecture s390x && apt-get update -qq
cd /src && apt-get install -y -qq --no-install-recommends \$(scripts/cross_build.sh packages) >/dev/null
LOCKSTEP_NATIVE=/src/build/core/bin/lockstep scripts/cross_build.sh $arch /out/cross-$arch"
  done
}

items=("$@")
if [ ${#items[@]} -eq 0 ]; then
  items=(prefix static deb conan wheels fresh noroot recipes oci cross)
fi
for item in "${items[@]}"; do
  echo "packages: $item"
  "try_$item"
done
