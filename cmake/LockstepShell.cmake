# What shells and man read, made by the program itself: completion scripts and
# manual pages, each installed where it is looked for.
include(GNUInstallDirs)

# Of another processor, and nothing here runs it.
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(STATUS "No manual pages and completion scripts: they are made by running the program "
    "(CMAKE_CROSSCOMPILING_EMULATOR)")
  return()
endif()

# lockstep_shell_file(COMPONENT FILE ARGUMENT...): what `lockstep ARGUMENT...` prints.
function(lockstep_shell_file component file)
  set(made "${PROJECT_BINARY_DIR}/${file}")
  cmake_path(GET made PARENT_PATH made_in)
  cmake_path(GET file PARENT_PATH folder)
  file(MAKE_DIRECTORY "${made_in}")
  # By the name of the target: only so is it run by the emulator.
  add_custom_command(OUTPUT "${made}"
    COMMAND lockstep ${ARGN} > "${made}" DEPENDS lockstep VERBATIM)
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_SHELL_FILES "${made}")
  install(FILES "${made}" DESTINATION "${folder}" COMPONENT ${component})
endfunction()

set(_share "${CMAKE_INSTALL_DATADIR}")
lockstep_shell_file(ckpt "${_share}/bash-completion/completions/lockstep" completion bash)
lockstep_shell_file(ckpt "${_share}/zsh/site-functions/_lockstep" completion zsh)
lockstep_shell_file(ckpt "${_share}/fish/vendor_completions.d/lockstep.fish" completion fish)
lockstep_shell_file(ckpt "${CMAKE_INSTALL_MANDIR}/man1/lockstep.1" man)
if(TARGET lockstep-train)
  lockstep_shell_file(torch "${CMAKE_INSTALL_MANDIR}/man1/lockstep-train.1" man train)
endif()

get_property(_files GLOBAL PROPERTY LOCKSTEP_SHELL_FILES)
add_custom_target(lockstep_shell_files ALL DEPENDS ${_files})
