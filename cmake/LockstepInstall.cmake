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

# One for each prefix that the system searches, by its plain name: pkg-config leaves
# out such folders. Elsewhere paths start from the file itself, so that the prefix can
# move. `cmake --install --prefix` may name another prefix than the configuration, so
# which one it is, is seen then. Without its link the library cannot be linked by name.
if(LOCKSTEP_NAMELINKS OR NOT BUILD_SHARED_LIBS)
  file(RELATIVE_PATH LOCKSTEP_PC_LIBDIR "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  file(RELATIVE_PATH LOCKSTEP_PC_INCLUDEDIR
    "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
  set(_pkgconfig "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
  file(RELATIVE_PATH _up "${_pkgconfig}" "${CMAKE_INSTALL_PREFIX}")
  string(REGEX REPLACE "/$" "" _up "${_up}")
  foreach(_prefix IN ITEMS "" /usr /usr/local)
    set(LOCKSTEP_PC_PREFIX "${_prefix}")
    if(NOT _prefix)
      set(LOCKSTEP_PC_PREFIX "\${pcfiledir}/${_up}")
    endif()
    configure_file("${CMAKE_CURRENT_LIST_DIR}/lockstep-ckpt.pc.in"
      "${_made}${_prefix}/lockstep-ckpt.pc" @ONLY)
  endforeach()
  cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR
    BASE_DIRECTORY "\${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE _libdir)
  install(CODE "
    set(file \"${_made}/lockstep-ckpt.pc\")
    if(CMAKE_INSTALL_PREFIX MATCHES \"^/usr(/local)?$\")
      set(file \"${_made}\${CMAKE_INSTALL_PREFIX}/lockstep-ckpt.pc\")
    endif()
    file(INSTALL DESTINATION \"${_libdir}/pkgconfig\" TYPE FILE FILES \"\${file}\")
    " COMPONENT ckpt)
endif()
if(LOCKSTEP_WITH_TORCH)
  include(LockstepInstallTorch)
endif()
