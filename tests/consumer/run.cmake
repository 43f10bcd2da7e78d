# Builds projects against this build as others would, and runs them:
#   cmake -DMODE=... -DSOURCE=... -DBINARY=... -DFOLDER=... -DGENERATOR=...
#     -DCOMPILER=... -DLAUNCHER=... -DTORCH=...
#     -DSHARED=... -DWITH_TORCH=... -P run.cmake
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/steps.cmake")

file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}/run")

if(MODE STREQUAL "package") # component ckpt alone, on a machine without LibTorch
  install_and_move(--component ckpt)
  expect_no_machine("LibTorch::|/torch/")
  run("${FOLDER}/moved/bin/lockstep" ckpt "${SOURCE}/testdata/valid/tiny.pt")
  expect_shell_files("${FOLDER}/moved/share")
  if(EXISTS "${FOLDER}/moved/share/man/man1/lockstep-train.1")
    message(FATAL_ERROR "component ckpt has the manual page of lockstep-train")
  endif()
  file(GLOB_RECURSE package_file "${FOLDER}/moved/*/lockstep-ckpt.pc")
  run(pkgconf --cflags --libs "${package_file}")
  compile_round_trip(${output})
  expect_plain_prefix()
  build("${SOURCE}/examples/projects/ckpt_only" "-DCMAKE_PREFIX_PATH=${FOLDER}/moved"
    -DCMAKE_DISABLE_FIND_PACKAGE_LibTorch=ON -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON
    "-DCMAKE_RUNTIME_OUTPUT_DIRECTORY=${FOLDER}/build/bin")
  expect_sessions(ckpt_only)
  file(REMOVE_RECURSE "${FOLDER}/build")
  configure("${SOURCE}/tests/consumer/missing" "-DCMAKE_PREFIX_PATH=${FOLDER}/moved")
elseif(MODE STREQUAL "shared") # what the shared library shows, and that it is enough
  run(python3 "${SOURCE}/scripts/check_symbols.py" "${SHARED}")
  cmake_path(GET SHARED PARENT_PATH folder)
  compile_round_trip("-I${SOURCE}" "${SHARED}" "-Wl,-rpath,${folder}")
elseif(MODE STREQUAL "torch") # all of it
  install_and_move()
  expect_no_machine("${TORCH}")
  expect_shell_files("${FOLDER}/moved/share" man/man1/lockstep-train.1)
  # LibTorch as `torch.utils.cmake_prefix_path` says it.
  set(ENV{CMAKE_PREFIX_PATH} "${FOLDER}/moved:${TORCH}/share/cmake")
  build("${SOURCE}/examples/projects")
  expect_sessions(ckpt_only data_parallel_module three_lines training_loop)
  expect_lines_differ(three_lines/original.cpp three_lines/three_lines.cpp 3)
  run("${FOLDER}/moved/bin/lockstep" train --help)
  file(REMOVE_RECURSE "${FOLDER}/build")
  configure("${SOURCE}/tests/consumer/missing" -DCMAKE_DISABLE_FIND_PACKAGE_LibTorch=ON)
elseif(MODE STREQUAL "find") # where LibTorch is looked for
  configure("${SOURCE}/tests/consumer/find" "-DMODULES=${SOURCE}/cmake")
elseif(MODE STREQUAL "headers") # each one alone, as strictly as users compile
  install_and_move()
  build("${SOURCE}/tests/consumer/headers" "-DLIBTORCH_ROOT=${TORCH}"
    "-DCMAKE_PREFIX_PATH=${FOLDER}/moved" "-DHEADERS=${FOLDER}/moved/include")
elseif(MODE STREQUAL "subdirectory") # the sources in a folder of a project
  build("${SOURCE}/tests/consumer/subdirectory" "-DLOCKSTEP_SOURCE=${SOURCE}"
    "-DWITH_TORCH=${WITH_TORCH}" "-DLIBTORCH_ROOT=${TORCH}")
  expect_sessions(ckpt_only)
  if(WITH_TORCH)
    expect_sessions(data_parallel_module)
  endif()
endif()
