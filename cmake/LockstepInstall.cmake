# Install rules. Component `ckpt` is the part without LibTorch (the checkpoint
# library, its headers, the program `lockstep`), and the package that find_package
# and pkg-config read; component `torch` is everything else:
#   cmake --install build/core --component ckpt --prefix PREFIX
#   cmake --install build/release --prefix PREFIX
include(CMakePackageConfigHelpers)

set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep")
# Not where find_package looks: the build folder is no package.
set(_made "${PROJECT_BINARY_DIR}/package")
set_target_properties(lockstep_options PROPERTIES EXPORT_NAME options)
if(BUILD_SHARED_LIBS)
  set(_libraries lockstep_ckpt_shared)
  set(LOCKSTEP_PC_LIBS "-llockstep-ckpt")
  set(LOCKSTEP_PC_REQUIRES "")
  set(LOCKSTEP_CKPT_NEEDS "")
else()
  set(_libraries lockstep_base lockstep_ckpt)
  set(LOCKSTEP_PC_LIBS "-llockstep_ckpt -llockstep_base")
  set(LOCKSTEP_PC_REQUIRES "libdeflate, nettle, libpcre2-8")
  set(LOCKSTEP_CKPT_NEEDS "libdeflate;Nettle;PCRE2")
endif()
set(_namelink "")
if(NOT LOCKSTEP_NAMELINKS)
  set(_namelink NAMELINK_SKIP)
endif()
install(TARGETS lockstep_options ${_libraries}
  EXPORT LockstepTargets
  LIBRARY COMPONENT ckpt ${_namelink}
  ARCHIVE COMPONENT ckpt
  FILE_SET HEADERS COMPONENT ckpt)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT ckpt)
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
configure_file("${CMAKE_CURRENT_LIST_DIR}/LockstepCkpt.cmake.in"
  "${_made}/LockstepCkpt.cmake" @ONLY)
install(FILES "${_made}/LockstepCkpt.cmake" "${_made}/LockstepConfig.cmake"
    "${_made}/LockstepConfigVersion.cmake"
  DESTINATION "${_package}" COMPONENT ckpt)
# Debian's libraries come without CMake files: the package brings the modules.
foreach(_module IN LISTS LOCKSTEP_CKPT_NEEDS)
  install(FILES "${CMAKE_CURRENT_LIST_DIR}/Find${_module}.cmake"
    DESTINATION "${_package}" COMPONENT ckpt)
endforeach()

# Paths in it start from the file itself, so that the prefix can move.
set(_pkgconfig "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH LOCKSTEP_PC_PREFIX "${_pkgconfig}" "${CMAKE_INSTALL_PREFIX}")
file(RELATIVE_PATH LOCKSTEP_PC_INCLUDE "${_pkgconfig}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
configure_file("${CMAKE_CURRENT_LIST_DIR}/lockstep-ckpt.pc.in"
  "${_made}/lockstep-ckpt.pc" @ONLY)
install(FILES "${_made}/lockstep-ckpt.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT ckpt)
if(LOCKSTEP_WITH_TORCH)
  include(LockstepInstallTorch)
endif()
