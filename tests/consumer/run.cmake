# Builds tests/consumer/project against this build and runs it:
#   cmake -DMODE=package|subdirectory -DSOURCE=... -DBINARY=... -DFOLDER=...
#     -DGENERATOR=... -DCOMPILER=... -DLAUNCHER=... -DCONFIG=... -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out
    ERROR_VARIABLE out WORKING_DIRECTORY "${FOLDER}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
if(MODE STREQUAL "package")
  run("${CMAKE_COMMAND}" --install "${BINARY}" --component ckpt --prefix "${FOLDER}/made")
  # A package that works only where it was installed is none.
  file(RENAME "${FOLDER}/made" "${FOLDER}/moved")
  file(GLOB_RECURSE files "${FOLDER}/moved/lib*/cmake/*")
  foreach(file IN LISTS files)
    file(STRINGS "${file}" lines REGEX "${SOURCE}|${FOLDER}|LibTorch::|/torch/")
    if(lines)
      message(FATAL_ERROR "${file} names this machine or LibTorch: ${lines}")
    endif()
  endforeach()
  run("${FOLDER}/moved/bin/lockstep" ckpt "${SOURCE}/testdata/valid/tiny.pt")
  set(where "-DCMAKE_PREFIX_PATH=${FOLDER}/moved")
else()
  set(where "-DLOCKSTEP_SOURCE=${SOURCE}")
endif()

run("${CMAKE_COMMAND}" -S "${SOURCE}/tests/consumer/project" -B "${FOLDER}/build"
  -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_BUILD_TYPE=${CONFIG}"
  "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
  -DCMAKE_DISABLE_FIND_PACKAGE_LibTorch=ON -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON "${where}")
run("${CMAKE_COMMAND}" --build "${FOLDER}/build")
run("${FOLDER}/build/app" "${SOURCE}/testdata/valid/tiny.pt")
if(NOT output STREQUAL "w float32 [2]\n")
  message(FATAL_ERROR "unexpected output: ${output}")
endif()
run("${FOLDER}/build/app" "${FOLDER}/copy.pt")

# The lines that README.md shows are the ones that were just built.
file(READ "${SOURCE}/README.md" readme)
foreach(line IN ITEMS
    "find_package(Lockstep 0.1 REQUIRED COMPONENTS ckpt)"
    "add_executable(app main.cpp)"
    "target_link_libraries(app PRIVATE lockstep::ckpt)")
  string(FIND "${readme}" "${line}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "README.md lacks the line ${line}")
  endif()
endforeach()
