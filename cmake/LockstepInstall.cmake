# Install rules. Component `ckpt` is the part without LibTorch (libraries `base`
# and `ckpt`, their headers, the program `lockstep`), and the package that
# find_package reads; component `torch` is everything else:
#   cmake --install build/core --component ckpt --prefix PREFIX
#   cmake --install build/release --prefix PREFIX
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep")
# Not where find_package looks: the build folder is no package.
set(_made "${PROJECT_BINARY_DIR}/package")
set_target_properties(lockstep_options PROPERTIES EXPORT_NAME options)
install(TARGETS lockstep_options lockstep_base lockstep_ckpt
  EXPORT LockstepTargets
  ARCHIVE COMPONENT ckpt
  FILE_SET HEADERS COMPONENT ckpt)
if(TARGET lockstep)
  install(TARGETS lockstep RUNTIME COMPONENT ckpt)
  include(LockstepShell)
endif()
install(EXPORT LockstepTargets
  NAMESPACE lockstep:: DESTINATION "${_package}" COMPONENT ckpt)

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/LockstepConfig.cmake.in"
  "${_made}/LockstepConfig.cmake"
  INSTALL_DESTINATION "${_package}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  "${_made}/LockstepConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
# Debian's libraries come without CMake files: the package brings the modules.
install(FILES
  "${_made}/LockstepConfig.cmake"
  "${_made}/LockstepConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindNettle.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindPCRE2.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/Findlibdeflate.cmake"
  DESTINATION "${_package}" COMPONENT ckpt)
if(NOT LOCKSTEP_WITH_TORCH)
  return()
endif()

get_property(_libraries GLOBAL PROPERTY LOCKSTEP_TORCH_LIBRARIES)
install(TARGETS ${_libraries} lockstep_report lockstep_launch lockstep_settings lockstep_lockstep
  EXPORT LockstepTorchTargets
  ARCHIVE COMPONENT torch
  FILE_SET HEADERS COMPONENT torch)
install(EXPORT LockstepTorchTargets
  NAMESPACE lockstep:: DESTINATION "${_package}" COMPONENT torch)

# Where programs look for the plugin: lib/lockstep beside bin.
install(TARGETS lockstep_sim LIBRARY DESTINATION lib/lockstep COMPONENT torch)
set(_with_rpath lockstep_sim)
if(TARGET lockstep-train)
  install(TARGETS lockstep-train RUNTIME COMPONENT torch)
  list(APPEND _with_rpath lockstep-train)
endif()
# LibTorch stays where it is, and nothing of the build folder is left.
set_target_properties(${_with_rpath} PROPERTIES
  INSTALL_RPATH "${LibTorch_ROOT}/lib" INSTALL_REMOVE_ENVIRONMENT_RPATH ON)

string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" _minor "${LibTorch_VERSION}")
math(EXPR _next "${CMAKE_MATCH_2} + 1")
set(LOCKSTEP_TORCH_RANGE "${_minor}...<${CMAKE_MATCH_1}.${_next}")
configure_file("${CMAKE_CURRENT_LIST_DIR}/LockstepTorch.cmake.in"
  "${_made}/LockstepTorch.cmake" @ONLY)
install(FILES
  "${_made}/LockstepTorch.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindLibTorch.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindWebP.cmake"
  DESTINATION "${_package}" COMPONENT torch)
