# An overlay port of this clone:
#   vcpkg install lockstep-ckpt --overlay-ports=packaging/vcpkg
# A port of a registry takes the sources of a release by vcpkg_from_github instead.
cmake_path(ABSOLUTE_PATH CURRENT_PORT_DIR NORMALIZE OUTPUT_VARIABLE _port)
cmake_path(SET SOURCE_PATH NORMALIZE "${_port}/../../..")

vcpkg_check_features(OUT_FEATURE_OPTIONS _features FEATURES tool LOCKSTEP_BUILD_CLI)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${_features}
    -DLOCKSTEP_WITH_TORCH=OFF
    -DLOCKSTEP_BUILD_TESTS=OFF
    -DLOCKSTEP_STATIC_PROGRAM=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME Lockstep CONFIG_PATH lib/cmake/Lockstep)
vcpkg_fixup_pkgconfig()
if("tool" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES lockstep AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share"
  "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
