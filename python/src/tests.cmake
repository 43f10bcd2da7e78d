# The tests of python/tests on the module of this build. Those of the wheel:
# scripts/python_package.sh.
if(NOT LOCKSTEP_BUILD_TESTS)
  return()
endif()
set(_tests "${PROJECT_SOURCE_DIR}/python/tests")
add_test(NAME python.module COMMAND Python::Interpreter -m unittest discover -s "${_tests}")
add_test(NAME python.fuzz COMMAND Python::Interpreter "${_tests}/fuzz.py" --seconds 3)
set_tests_properties(python.module python.fuzz PROPERTIES LABELS core)
set(_names python.module python.fuzz)
if(LOCKSTEP_WITH_TORCH)
  add_test(NAME python.oracle COMMAND Python::Interpreter "${_tests}/oracle.py")
  # lockstep-torch: what its wheel adds to the programs. The wheel: scripts/torch_package.sh.
  add_test(NAME python.torch COMMAND Python::Interpreter
    -m unittest discover -s "${PROJECT_SOURCE_DIR}/python/torch/tests")
  set_tests_properties(python.oracle python.torch PROPERTIES LABELS torch)
  list(APPEND _names python.oracle python.torch)
endif()
set_tests_properties(${_names} PROPERTIES TIMEOUT ${LOCKSTEP_TEST_TIMEOUT}
  WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/python"
  ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python;PYTHONDONTWRITEBYTECODE=1;LOCKSTEP_BIN=${PROJECT_BINARY_DIR}/bin;LOCKSTEP_TORCH=${LibTorch_ROOT}"
  ENVIRONMENT_MODIFICATION "PATH=path_list_prepend:${PROJECT_BINARY_DIR}/bin")
