# Finds LibTorch in a torch wheel or in an unpacked LibTorch folder.
#
# Search order: LIBTORCH_ROOT (variable, then environment), CMAKE_PREFIX_PATH,
# the project's .venv. Defines LibTorch::torch_cpu and LibTorch::c10.
#
# find_package(Torch) is not used: with a CUDA wheel it stops unless a full
# CUDA toolkit is installed, which building Lockstep does not need.

file(GLOB _venv "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
find_path(LibTorch_ROOT include/torch/headeronly/version.h
  HINTS "${LIBTORCH_ROOT}" "$ENV{LIBTORCH_ROOT}" ${CMAKE_PREFIX_PATH} ${_venv}
  NO_DEFAULT_PATH)

set(LibTorch_VERSION "")
if(LibTorch_ROOT)
  file(STRINGS "${LibTorch_ROOT}/include/torch/headeronly/version.h" _lines
    REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" _numbers "${_lines}")
  string(REPLACE ";" "." LibTorch_VERSION "${_numbers}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_ROOT
  VERSION_VAR LibTorch_VERSION
  HANDLE_VERSION_RANGE
  REASON_FAILURE_MESSAGE
    "Run scripts/setup.sh, or pass -DLIBTORCH_ROOT=<folder with include/ and lib/>.")

if(LibTorch_FOUND AND NOT TARGET LibTorch::torch_cpu)
  foreach(_lib c10 torch_cpu)
    add_library(LibTorch::${_lib} SHARED IMPORTED)
    set_target_properties(LibTorch::${_lib} PROPERTIES
      IMPORTED_LOCATION "${LibTorch_ROOT}/lib/lib${_lib}.so")
    target_include_directories(LibTorch::${_lib} SYSTEM INTERFACE
      "${LibTorch_ROOT}/include"
      "${LibTorch_ROOT}/include/torch/csrc/api/include")
  endforeach()
  target_link_libraries(LibTorch::torch_cpu INTERFACE LibTorch::c10)
  # Set on every torch target alike: they change declarations.
  target_compile_definitions(LibTorch::torch_cpu INTERFACE
    USE_DISTRIBUTED USE_C10D_GLOO USE_RPC)
  target_compile_features(LibTorch::c10 INTERFACE cxx_std_20)
  # A CUDA wheel registers its devices when libtorch_cuda is loaded; nothing
  # names a symbol of it, so keep the linker from dropping it.
  if(EXISTS "${LibTorch_ROOT}/lib/libtorch_cuda.so")
    target_link_options(LibTorch::torch_cpu INTERFACE
      "SHELL:-Wl,--no-as-needed ${LibTorch_ROOT}/lib/libtorch_cuda.so -Wl,--as-needed"
      "-Wl,-rpath-link,${LibTorch_ROOT}/lib"
      "-Wl,--allow-shlib-undefined")
  endif()
endif()
mark_as_advanced(LibTorch_ROOT)
