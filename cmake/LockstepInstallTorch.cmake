# Install rules of component `torch`.
set(LOCKSTEP_TORCH_RUNPATH "${LibTorch_ROOT}/lib" CACHE STRING
  "Where what is installed looks for LibTorch: folders, separated by ':', also $ORIGIN/...; empty: where the system's loader looks")

get_property(_libraries GLOBAL PROPERTY LOCKSTEP_TORCH_LIBRARIES)
if(BUILD_SHARED_LIBS)
  # Outside, each library is a name of the one.
  list(TRANSFORM _libraries REPLACE "^lockstep_" "" OUTPUT_VARIABLE LOCKSTEP_TORCH_NAMES)
  list(APPEND LOCKSTEP_TORCH_NAMES settings report launch)
  set(_libraries lockstep_lockstep_shared)
  set(LOCKSTEP_TORCH_NEEDS Threads)
else()
  list(APPEND _libraries lockstep_report lockstep_launch lockstep_settings lockstep_lockstep)
  set(LOCKSTEP_TORCH_NAMES "")
  # yaml-cpp is of lockstep::train, the next three of lockstep::data.
  set(LOCKSTEP_TORCH_NEEDS "Threads yaml-cpp JPEG PNG \"WebP MODULE\"")
endif()
install(TARGETS ${_libraries}
  EXPORT LockstepTorchTargets
  LIBRARY COMPONENT torch ${_namelink}
  ARCHIVE COMPONENT torch
  FILE_SET HEADERS COMPONENT torch)
install(EXPORT LockstepTorchTargets
  NAMESPACE lockstep:: DESTINATION "${_package}" COMPONENT torch)

# Programs look for the plugin there, seen from their own folder.
install(TARGETS lockstep_sim
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/lockstep" COMPONENT torch)
set(_programs lockstep_sim)
if(TARGET lockstep-train)
  install(TARGETS lockstep-train RUNTIME COMPONENT torch)
  list(APPEND _programs lockstep-train)
endif()
# LibTorch stays where it is, and nothing of the build folder is left.
string(REPLACE ":" ";" _runpath "${LOCKSTEP_TORCH_RUNPATH}")
set_target_properties(${_programs} PROPERTIES
  INSTALL_RPATH "${_runpath}" INSTALL_REMOVE_ENVIRONMENT_RPATH ON)
if(TARGET lockstep_lockstep_shared)
  set_target_properties(lockstep_lockstep_shared PROPERTIES
    INSTALL_RPATH "$ORIGIN/lockstep;${_runpath}" INSTALL_REMOVE_ENVIRONMENT_RPATH ON)
endif()

string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" _minor "${LibTorch_VERSION}")
math(EXPR _next "${CMAKE_MATCH_2} + 1")
set(LOCKSTEP_TORCH_RANGE "${_minor}...<${CMAKE_MATCH_1}.${_next}")
# Where find_package looks for LibTorch, too: $ORIGIN/X/lib, from the libraries' folder.
set(LOCKSTEP_TORCH_BESIDE "")
foreach(_folder IN LISTS _runpath)
  if(_folder MATCHES "^\\$ORIGIN/(.+)/lib/?$")
    file(RELATIVE_PATH _beside
      "/prefix/${_package}" "/prefix/${CMAKE_INSTALL_LIBDIR}/${CMAKE_MATCH_1}")
    list(APPEND LOCKSTEP_TORCH_BESIDE "${_beside}")
  endif()
endforeach()
configure_file("${CMAKE_CURRENT_LIST_DIR}/LockstepTorch.cmake.in"
  "${_made}/LockstepTorch.cmake" @ONLY)
install(FILES
  "${_made}/LockstepTorch.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindLibTorch.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindWebP.cmake"
  DESTINATION "${_package}" COMPONENT torch)
