# The order in which FindLibTorch.cmake looks. Three folders pass for LibTorch:
# `one` and `two` have the version that is asked for, `other` has another.
set(minor_of_one 13)
set(minor_of_two 13)
set(minor_of_other 99)
foreach(name IN ITEMS one two other)
  set(${name} "${CMAKE_BINARY_DIR}/${name}/.venv/lib/python3.11/site-packages/torch")
  file(WRITE "${${name}}/include/torch/headeronly/version.h"
    "#define TORCH_VERSION_MAJOR 2\n"
    "#define TORCH_VERSION_MINOR ${minor_of_${name}}\n"
    "#define TORCH_VERSION_PATCH 0\n")
endforeach()

# A python3 that imports torch from the folder in PYTHON_TORCH.
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/python/python3"
  CONTENT "#!/bin/sh\necho \"$PYTHON_TORCH\"\n")
file(CHMOD "${CMAKE_BINARY_DIR}/python/python3"
  PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
set(ENV{PATH} "${CMAKE_BINARY_DIR}/python:$ENV{PATH}")

# expect(folder NAME value ... [ENV NAME value ...]): with these variables set,
# this folder is taken.
function(expect folder)
  cmake_parse_arguments(arg "" "" "ENV" ${ARGN})
  set(names LIBTORCH_ROOT CMAKE_PREFIX_PATH PYTHON_TORCH)
  foreach(name IN LISTS names)
    set(ENV{${name}} "")
  endforeach()
  while(arg_ENV)
    list(POP_FRONT arg_ENV name value)
    set(ENV{${name}} "${value}")
  endwhile()
  while(arg_UNPARSED_ARGUMENTS)
    list(POP_FRONT arg_UNPARSED_ARGUMENTS name value)
    set(${name} "${value}")
  endwhile()
  find_package(LibTorch 2.13...<2.14 QUIET)
  if(NOT LibTorch_ROOT STREQUAL folder)
    message(SEND_ERROR "${ARGN}: expected ${folder}, got ${LibTorch_ROOT}")
  endif()
  if(folder IN_LIST good AND NOT LibTorch_FOUND OR LibTorch_FOUND AND NOT folder IN_LIST good)
    message(SEND_ERROR "${ARGN}: found is '${LibTorch_FOUND}'")
  endif()
endfunction()
set(good "${one}" "${two}")

expect("LibTorch_ROOT-NOTFOUND")
expect("${one}" LIBTORCH_ROOT "${one}")
expect("${one}" ENV LIBTORCH_ROOT "${one}")
expect("${one}" CMAKE_PREFIX_PATH "${one}")
expect("${one}" CMAKE_PREFIX_PATH "${one}/share/cmake")
expect("${one}" ENV CMAKE_PREFIX_PATH "/nowhere:${one}/share/cmake")
expect("${one}" CMAKE_SOURCE_DIR "${CMAKE_BINARY_DIR}/one")
expect("${one}" PROJECT_SOURCE_DIR "${CMAKE_BINARY_DIR}/one")
expect("${one}" ENV PYTHON_TORCH "${one}")
# What find_package(Torch) of the project has set comes first, python3 last.
expect("${one}" TORCH_INSTALL_PREFIX "${one}" LIBTORCH_ROOT "${two}")
expect("${one}" LIBTORCH_ROOT "${one}" CMAKE_PREFIX_PATH "${two}")
expect("${one}" CMAKE_PREFIX_PATH "${one}" PROJECT_SOURCE_DIR "${CMAKE_BINARY_DIR}/two")
expect("${one}" CMAKE_PREFIX_PATH "${one}" LibTorch_BESIDE "${two}")
expect("${one}" LibTorch_BESIDE "${one}" PROJECT_SOURCE_DIR "${CMAKE_BINARY_DIR}/two")
expect("${one}" LibTorch_BESIDE "${one}/include/.." PROJECT_SOURCE_DIR "${CMAKE_BINARY_DIR}/two")
expect("${one}" PROJECT_SOURCE_DIR "${CMAKE_BINARY_DIR}/one" ENV PYTHON_TORCH "${two}")
# Another version is no reason to look on: it is what the user named.
expect("${other}" LIBTORCH_ROOT "${other}" CMAKE_PREFIX_PATH "${one}")
