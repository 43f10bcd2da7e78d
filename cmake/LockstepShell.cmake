# What shells and man read, made by the program itself: completion scripts and
# manual pages, each installed where it is looked for.
include(GNUInstallDirs)

# lockstep_shell_file(FILE ARGUMENT...): what `lockstep ARGUMENT...` prints.
function(lockstep_shell_file file)
  set(made "${PROJECT_BINARY_DIR}/${file}")
  cmake_path(GET made PARENT_PATH made_in)
  cmake_path(GET file PARENT_PATH folder)
  file(MAKE_DIRECTORY "${made_in}")
  add_custom_command(OUTPUT "${made}"
    COMMAND lockstep ${ARGN} > "${made}" DEPENDS lockstep VERBATIM)
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_SHELL_FILES "${made}")
  install(FILES "${made}" DESTINATION "${folder}" COMPONENT ckpt)
endfunction()

set(_share "${CMAKE_INSTALL_DATADIR}")
lockstep_shell_file("${_share}/bash-completion/completions/lockstep" completion bash)
lockstep_shell_file("${_share}/zsh/site-functions/_lockstep" completion zsh)
lockstep_shell_file("${_share}/fish/vendor_completions.d/lockstep.fish" completion fish)
lockstep_shell_file("${CMAKE_INSTALL_MANDIR}/man1/lockstep.1" man)
lockstep_shell_file("${CMAKE_INSTALL_MANDIR}/man1/lockstep-train.1" man train)

get_property(_files GLOBAL PROPERTY LOCKSTEP_SHELL_FILES)
add_custom_target(lockstep_shell_files ALL DEPENDS ${_files})
