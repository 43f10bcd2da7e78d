# Finds LibTorch in a torch wheel or in an unpacked LibTorch folder.
#
# Search order: what find_package(Torch) of this project found, LIBTORCH_ROOT
# (variable, then environment), CMAKE_PREFIX_PATH (a LibTorch folder, or what
# torch.utils.cmake_prefix_path says), the folders of LibTorch_BESIDE, a .venv of the
# project, the torch of python3. Defines LibTorch::torch_cpu and LibTorch::c10.
#
# find_package(Torch) is not used: with a CUDA wheel it stops unless a full
# CUDA toolkit is installed, which building Lockstep does not need.

set(_LibTorch_prefixes "")
cmake_path(CONVERT "$ENV{CMAKE_PREFIX_PATH}" TO_CMAKE_PATH_LIST _LibTorch_environment)
foreach(_LibTorch_prefix IN LISTS CMAKE_PREFIX_PATH _LibTorch_environment)
  list(APPEND _LibTorch_prefixes "${_LibTorch_prefix}")
  string(REGEX REPLACE "/share/cmake/?$" "" _LibTorch_root "${_LibTorch_prefix}")
  list(APPEND _LibTorch_prefixes "${_LibTorch_root}")
endforeach()
set(_LibTorch_venvs "")
foreach(_LibTorch_folder IN ITEMS "${CMAKE_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}")
  file(GLOB _LibTorch_found "${_LibTorch_folder}/.venv/lib/python3*/site-packages/torch")
  list(APPEND _LibTorch_venvs ${_LibTorch_found})
endforeach()
# Not cached: after a wrong one was found, naming another must help.
set(_LibTorch_header include/torch/headeronly/version.h)
find_path(LibTorch_ROOT ${_LibTorch_header} NO_CACHE NO_DEFAULT_PATH
  HINTS "${TORCH_INSTALL_PREFIX}" "${LIBTORCH_ROOT}" "$ENV{LIBTORCH_ROOT}"
    ${_LibTorch_prefixes} ${LibTorch_BESIDE} ${_LibTorch_venvs})
if(NOT LibTorch_ROOT)
  # Where the package would be imported from; importing it takes seconds.
  execute_process(COMMAND python3 -c
    "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE _LibTorch_python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_path(LibTorch_ROOT ${_LibTorch_header} NO_CACHE NO_DEFAULT_PATH
    HINTS "${_LibTorch_python_torch}")
endif()

set(LibTorch_VERSION "")
if(LibTorch_ROOT)
  cmake_path(NORMAL_PATH LibTorch_ROOT)
  string(REGEX REPLACE "/$" "" LibTorch_ROOT "${LibTorch_ROOT}")
  file(STRINGS "${LibTorch_ROOT}/include/torch/headeronly/version.h" _LibTorch_lines
    REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" _LibTorch_numbers "${_LibTorch_lines}")
  string(REPLACE ";" "." LibTorch_VERSION "${_LibTorch_numbers}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_ROOT
  VERSION_VAR LibTorch_VERSION
  HANDLE_VERSION_RANGE
  REASON_FAILURE_MESSAGE
    "Install the torch wheel (Lockstep's own scripts/setup.sh does), or pass -DLIBTORCH_ROOT=<folder with include/ and lib/>.")

if(LibTorch_FOUND AND NOT TARGET LibTorch::torch_cpu)
  foreach(_LibTorch_lib c10 torch_cpu)
    add_library(LibTorch::${_LibTorch_lib} SHARED IMPORTED)
    set_target_properties(LibTorch::${_LibTorch_lib} PROPERTIES
      IMPORTED_LOCATION "${LibTorch_ROOT}/lib/lib${_LibTorch_lib}.so")
    target_include_directories(LibTorch::${_LibTorch_lib} SYSTEM INTERFACE
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
      "SHELL:-Wl,--no-as-needed \"${LibTorch_ROOT}/lib/libtorch_cuda.so\" \"${LibTorch_ROOT}/lib/libc10_cuda.so\" -Wl,--as-needed"
      "-Wl,-rpath-link,${LibTorch_ROOT}/lib"
      "-Wl,--allow-shlib-undefined")
  endif()
endif()
foreach(_LibTorch_name IN ITEMS environment folder found header lines numbers prefixes python_torch
    root venvs)
  unset(_LibTorch_${_LibTorch_name})
endforeach()
