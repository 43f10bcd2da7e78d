# Install rules of the torch-free part: libraries `base` and `ckpt`, their
# headers, the program `lockstep`, and the package that find_package reads.
# Component `ckpt` is all of it:
#   cmake --install build/core --component ckpt --prefix PREFIX
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep")
set_target_properties(lockstep_options PROPERTIES EXPORT_NAME options)
install(TARGETS lockstep_options lockstep_base lockstep_ckpt
  EXPORT LockstepTargets
  ARCHIVE COMPONENT ckpt
  FILE_SET HEADERS COMPONENT ckpt)
if(TARGET lockstep)
  install(TARGETS lockstep RUNTIME COMPONENT ckpt)
endif()
install(EXPORT LockstepTargets
  NAMESPACE lockstep:: DESTINATION "${_package}" COMPONENT ckpt)

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/LockstepConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/LockstepConfig.cmake"
  INSTALL_DESTINATION "${_package}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
# Debian's libraries come without CMake files: the package brings the modules.
install(FILES
  "${PROJECT_BINARY_DIR}/LockstepConfig.cmake"
  "${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindNettle.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindPCRE2.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/Findlibdeflate.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/Findxxhash.cmake"
  DESTINATION "${_package}" COMPONENT ckpt)
