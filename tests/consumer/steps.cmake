# The steps of run.cmake.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out
    ERROR_VARIABLE out WORKING_DIRECTORY "${FOLDER}/run")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

# A package that works only where it was installed is none.
function(install_and_move)
  run("${CMAKE_COMMAND}" --install "${BINARY}" ${ARGN} --prefix "${FOLDER}/made")
  file(RENAME "${FOLDER}/made" "${FOLDER}/moved")
endfunction()

# Nor is one whose CMake files name the folders of this machine, or a pattern.
function(expect_no_machine pattern)
  file(GLOB_RECURSE files "${FOLDER}/moved/lib*/cmake/*" "${FOLDER}/moved/lib*/*.pc")
  list(FILTER files EXCLUDE REGEX "FindLibTorch")
  foreach(file IN LISTS files)
    if(MODE STREQUAL "package" AND file MATCHES "LockstepConfig.cmake$")
      continue() # says where component torch is
    endif()
    file(STRINGS "${file}" lines REGEX "${SOURCE}|${FOLDER}|${pattern}")
    if(lines)
      message(FATAL_ERROR "${file} names this machine or LibTorch: ${lines}")
    endif()
  endforeach()
endfunction()

# Installed into /usr, lockstep-ckpt.pc calls it so: pkg-config leaves its folders out.
function(expect_plain_prefix)
  set(ENV{DESTDIR} "${FOLDER}/stage")
  run("${CMAKE_COMMAND}" --install "${BINARY}" --component ckpt --prefix /usr)
  unset(ENV{DESTDIR})
  file(GLOB_RECURSE package_file "${FOLDER}/stage/*/lockstep-ckpt.pc")
  file(STRINGS "${package_file}" lines REGEX "^prefix=/usr$|^libdir=\\$\\{prefix\\}/lib")
  list(LENGTH lines count)
  if(NOT count EQUAL 2)
    file(READ "${package_file}" text)
    message(FATAL_ERROR "${package_file}: expected prefix=/usr, got\n${text}")
  endif()
endfunction()

# A program of one file, built without CMake, that writes and reads a checkpoint.
function(compile_round_trip)
  list(JOIN ARGN " " flags)
  string(STRIP "${flags}" flags)
  set(source "${SOURCE}/packaging/conan/test_package/round_trip.cpp")
  run(sh -c "'${COMPILER}' -std=c++20 ${FLAGS} '${source}' -o round_trip ${flags} && ./round_trip")
  if(NOT output MATCHES "epoch.*3")
    message(FATAL_ERROR "round_trip printed ${output}")
  endif()
endfunction()

# Completion scripts and manual pages, where shells and man look: expect_shell_files(SHARE [MORE...])
function(expect_shell_files share)
  foreach(file IN ITEMS bash-completion/completions/lockstep zsh/site-functions/_lockstep
      fish/vendor_completions.d/lockstep.fish man/man1/lockstep.1 ${ARGN})
    file(STRINGS "${share}/${file}" first LIMIT_COUNT 1)
    if(NOT first MATCHES "lockstep|LOCKSTEP")
      message(FATAL_ERROR "${share}/${file} begins with '${first}'")
    endif()
  endforeach()
  run(bash -c "source '${share}/bash-completion/completions/lockstep' && complete -p lockstep")
endfunction()

# Warnings are failures, too.
function(configure source)
  run("${CMAKE_COMMAND}" -S "${source}" -B "${FOLDER}/build" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" "-DCMAKE_CXX_FLAGS=${FLAGS}" ${ARGN})
  if(output MATCHES "CMake [A-Za-z ]*Warning[ ()a-z]* (at|in) ")
    message(FATAL_ERROR "${output}")
  endif()
endfunction()

function(build source)
  configure("${source}" ${ARGN})
  run("${CMAKE_COMMAND}" --build "${FOLDER}/build")
endfunction()

# The programs print what the golden files beside their sources say.
function(expect_sessions)
  set(ENV{PATH} "${FOLDER}/build/bin:$ENV{PATH}")
  set(ENV{TESTDATA} "${SOURCE}/testdata")
  foreach(variable IN ITEMS LOCKSTEP_PLUGIN_PATH LOCKSTEP_SIM_DEVICES
      LOCKSTEP_VISIBLE_DEVICES LD_LIBRARY_PATH)
    unset(ENV{${variable}})
  endforeach()
  foreach(name IN LISTS ARGN)
    set(golden "${SOURCE}/examples/projects/${name}/golden.txt")
    run(sh "${SOURCE}/tests/consumer/sessions.sh" "${golden}")
    if(DEFINED ENV{LOCKSTEP_UPDATE_GOLDEN})
      file(WRITE "${golden}" "${output}")
    endif()
    file(READ "${golden}" expected)
    if(NOT output STREQUAL expected)
      message(FATAL_ERROR "${golden} expects\n${expected}\nbut it is\n${output}")
    endif()
  endforeach()
endfunction()

# Two files of examples/projects differ in so many lines of code.
function(expect_lines_differ old new count)
  set(folder "${SOURCE}/examples/projects")
  run(sh "${SOURCE}/tests/consumer/changed_lines.sh" "${folder}/${old}" "${folder}/${new}")
  if(NOT output STREQUAL "${count}\n")
    message(FATAL_ERROR "${new} changes not ${count} lines of ${old}, but ${output}")
  endif()
endfunction()
