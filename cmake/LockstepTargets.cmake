# How every target of the project is declared.
#
#   lockstep_library(NAME ckpt HEADERS ... SOURCES ... PUBLIC ... PRIVATE ...)
#   lockstep_library(NAME tensor TORCH ...)       # sees LibTorch and the PCH
#   lockstep_library(NAME optim TORCH EXACT ...)  # and rounds as Python does
#   lockstep_sources(ckpt HEADERS ... SOURCES ...)  # in a folder below ckpt
#   lockstep_program(NAME lockstep SOURCES ... PRIVATE ...)
#   lockstep_test(NAME ckpt_test LABELS core SOURCES ... PRIVATE ...)
#   lockstep_test_entry(NAME slow_test OF ckpt_test LABELS slow FILTER ...)
#
# PUBLIC and PRIVATE name the project's own libraries lockstep::NAME and mean the
# static ones, which show everything: what others link by that name can be a
# shared one.
include(GNUInstallDirs)
include(LockstepProgram)

add_library(lockstep_options INTERFACE)
target_compile_features(lockstep_options INTERFACE cxx_std_20)
target_include_directories(lockstep_options INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
if(PROJECT_IS_TOP_LEVEL) # a project around this one has its own taste
  target_compile_options(lockstep_options INTERFACE
    $<BUILD_INTERFACE:-Wall -Wextra -Wpedantic -Wshadow>)
endif()
if(PROJECT_IS_TOP_LEVEL OR SKBUILD) # SKBUILD: the wheel of python/
  # Errors name the files of the sources, not the folder of this build.
  target_compile_options(lockstep_options INTERFACE
    $<BUILD_INTERFACE:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns falsely inside std::string (GCC bug 105651).
  target_compile_options(lockstep_options INTERFACE $<BUILD_INTERFACE:-Wno-restrict>)
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

option(LOCKSTEP_HARDENING "Compile and link as distributions do, with checks of the stack and of the C library" OFF)
# Torch targets fit for a shared library. A precompiled header serves only what is
# compiled as it was: programs, too, which CMake gives -fPIE.
set(LOCKSTEP_TORCH_PIC OFF)
if(BUILD_SHARED_LIBS OR CMAKE_POSITION_INDEPENDENT_CODE)
  set(LOCKSTEP_TORCH_PIC ON)
endif()

# LibTorch's headers cost half a minute per file; precompiled once, they serve
# every torch target (all share the same flags). Tests and examples have their own:
# with GoogleTest, and not optimised, since their time goes into the library.
function(lockstep_torch_pch)
  set(_source "${PROJECT_BINARY_DIR}/torch_pch.cpp")
  file(CONFIGURE OUTPUT "${_source}" CONTENT "// Owner of a precompiled header.\n")
  foreach(target IN ITEMS lockstep_torch_pch lockstep_torch_test_pch)
    add_library(${target} OBJECT EXCLUDE_FROM_ALL "${_source}")
    target_link_libraries(${target} PRIVATE lockstep_options LibTorch::torch_cpu)
    target_precompile_headers(${target} PRIVATE <torch/torch.h>)
    if(LOCKSTEP_TORCH_PIC)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
  endforeach()
  if(LOCKSTEP_BUILD_TESTS)
    target_link_libraries(lockstep_torch_test_pch PRIVATE GTest::gmock)
    target_precompile_headers(lockstep_torch_test_pch PRIVATE <gmock/gmock.h>)
  endif()
  target_compile_options(lockstep_torch_test_pch PRIVATE -O0)
  lockstep_harden(lockstep_torch_pch)
endfunction()

# Files of a target are compiled in batches: headers (with LibTorch, loading the
# precompiled one) and what the compiler makes of them are then paid for once.
# Names in the anonymous namespaces of a batch must differ.
function(_lockstep_unity target torch)
  get_target_property(type ${target} TYPE)
  if(NOT LOCKSTEP_UNITY
      OR (LOCKSTEP_UNITY STREQUAL "PROGRAMS" AND NOT type STREQUAL "EXECUTABLE"))
    return()
  endif()
  if(torch)
    set(files 16) # instantiating LibTorch's templates is half of a batch of 6
  elseif(type STREQUAL "EXECUTABLE")
    set(files 0) # all: CLI11's and GoogleTest's headers cost more than the code
  else()
    set(files 36) # four equal parts of ckpt
  endif()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # In a batch GCC takes the files' own anonymous namespaces for a header's.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    # A batch fits into memory: collecting garbage before 1 GB costs a seventh
    # of the time (units: KiB).
    target_compile_options(${target} PRIVATE --param=ggc-min-heapsize=1000000)
  endif()
endfunction()

function(_lockstep_flags target torch)
  target_link_libraries(${target} PUBLIC lockstep_options)
  if(torch)
    target_link_libraries(${target} PUBLIC LibTorch::torch_cpu Threads::Threads)
    if(LOCKSTEP_TORCH_PIC)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
    if(arg_LABELS OR arg_EXAMPLE)
      target_precompile_headers(${target} REUSE_FROM lockstep_torch_test_pch)
    else()
      target_precompile_headers(${target} REUSE_FROM lockstep_torch_pch)
    endif()
  else()
    target_compile_options(${target} PRIVATE -Wconversion)
  endif()
  list(TRANSFORM arg_PUBLIC REPLACE "^lockstep::" "lockstep_")
  list(TRANSFORM arg_PRIVATE REPLACE "^lockstep::" "lockstep_")
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  if(arg_LABELS OR arg_EXAMPLE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    lockstep_harden(${target})
  endif()
endfunction()

function(lockstep_library)
  cmake_parse_arguments(arg "TORCH;EXACT" "NAME" "HEADERS;SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target lockstep_${arg_NAME})
  add_library(${target} STATIC)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${arg_NAME})
  if(NOT BUILD_SHARED_LIBS)
    add_library(lockstep::${arg_NAME} ALIAS ${target})
  endif()
  target_sources(${target}
    PRIVATE ${arg_SOURCES}
    PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${arg_HEADERS})
  _lockstep_flags(${target} ${arg_TORCH})
  _lockstep_unity(${target} ${arg_TORCH})
  if(arg_EXACT)
    # Every operation rounds: where a processor has one for a * b + c, compilers
    # use it, and the last bit is another than Python's. Kernels want that.
    target_compile_options(${target} PRIVATE -ffp-contract=off)
  endif()
  if(arg_TORCH)
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_TORCH_LIBRARIES ${target})
  endif()
  if(LOCKSTEP_TORCH_PIC OR NOT arg_TORCH)
    # Fit for a shared library, here or in a project that links it. Calls within
    # a file stay direct, as they are in a program.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  endif()
endfunction()

# Adds the files of a folder to a library that a folder above declared.
function(lockstep_sources name)
  cmake_parse_arguments(arg "" "" "HEADERS;SOURCES" ${ARGN})
  target_sources(lockstep_${name}
    PRIVATE ${arg_SOURCES}
    PUBLIC FILE_SET HEADERS FILES ${arg_HEADERS})
endfunction()

# EXAMPLE: compiled like a test, not optimised.
function(lockstep_program)
  cmake_parse_arguments(arg "TORCH;EXAMPLE" "NAME" "SOURCES;PRIVATE" ${ARGN})
  add_executable(${arg_NAME} ${arg_SOURCES})
  if(arg_EXAMPLE AND LOCKSTEP_BUILD_TESTS) # as the precompiled header
    target_compile_options(${arg_NAME} PRIVATE
      $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_OPTIONS>)
  endif()
  _lockstep_flags(${arg_NAME} ${arg_TORCH})
  _lockstep_unity(${arg_NAME} ${arg_TORCH})
  set_target_properties(${arg_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  if(NOT arg_TORCH)
    # Starts in about a millisecond: nothing to load, nothing to look up, and
    # of the libraries what is used.
    _lockstep_static_options(options)
    target_link_options(${arg_NAME} PRIVATE ${options} -Wl,--gc-sections)
  endif()
endfunction()

# One ctest entry per binary: a torch binary needs most of a second to start.
# FILTER: GoogleTest's, of the tests that are no entry of their own.
function(lockstep_test)
  cmake_parse_arguments(arg "TORCH" "NAME;FILTER" "LABELS;SOURCES;PRIVATE" ${ARGN})
  add_executable(${arg_NAME} ${arg_SOURCES})
  _lockstep_flags(${arg_NAME} ${arg_TORCH})
  _lockstep_unity(${arg_NAME} ${arg_TORCH})
  target_link_libraries(${arg_NAME} PRIVATE GTest::gmock_main)
  target_compile_definitions(${arg_NAME} PRIVATE
    LOCKSTEP_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    LOCKSTEP_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(NOT arg_FILTER)
    set(arg_FILTER "*") # an empty one would choose no test
  endif()
  lockstep_test_entry(NAME ${arg_NAME} OF ${arg_NAME} LABELS ${arg_LABELS}
    FILTER "${arg_FILTER}")
endfunction()

# A limit ends tests that hang. It is far from what a test takes, also on a
# machine that is busy with other work.
set(LOCKSTEP_TEST_TIMEOUT 2700) # seconds

# What tests of LibTorch run in. OpenMP's threads sleep while they wait: spinning
# ones take the processor from those they wait for where other work runs, too.
# CUDA devices are hidden but from tests with the label cuda: the others name the
# CPU, or simulated devices, which do not start beside CUDA's, or take the best
# that is there.
function(lockstep_test_environment)
  cmake_parse_arguments(arg "CUDA" "" "TESTS" ${ARGN})
  set(variables "OMP_WAIT_POLICY=PASSIVE")
  if(NOT arg_CUDA)
    list(APPEND variables "CUDA_VISIBLE_DEVICES=")
  endif()
  set_tests_properties(${arg_TESTS} PROPERTIES ENVIRONMENT "${variables}"
    TIMEOUT ${LOCKSTEP_TEST_TIMEOUT})
endfunction()

# A ctest entry for some tests of a binary: they may run beside its others.
function(lockstep_test_entry)
  cmake_parse_arguments(arg "" "NAME;OF;FILTER" "LABELS" ${ARGN})
  add_test(NAME ${arg_NAME} COMMAND ${arg_OF} "--gtest_filter=${arg_FILTER}"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}"
    FAIL_REGULAR_EXPRESSION "0 tests from 0 test suites ran")
  set(cuda "")
  if("cuda" IN_LIST arg_LABELS)
    set(cuda CUDA)
  endif()
  lockstep_test_environment(${cuda} TESTS ${arg_NAME})
endfunction()
