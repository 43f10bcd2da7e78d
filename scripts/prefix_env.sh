# Sourced by scripts: lets programs find what scripts/unpack_packages.sh put into
# LOCKSTEP_PREFIX. Does nothing if that is not set.
if [ -n "${LOCKSTEP_PREFIX:-}" ]; then
  LOCKSTEP_PREFIX=$(realpath -m "$LOCKSTEP_PREFIX")
  _usr=$LOCKSTEP_PREFIX/usr
  _multiarch=$(g++ -print-multiarch)
  export LOCKSTEP_PREFIX
  export PATH=$_usr/bin:$PATH
  # What headers of one processor are in, which compilers know of /usr only.
  export CPLUS_INCLUDE_PATH=$_usr/include/$_multiarch${CPLUS_INCLUDE_PATH:+:$CPLUS_INCLUDE_PATH}
  export CMAKE_PREFIX_PATH=$_usr${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
  export LD_LIBRARY_PATH=$_usr/lib/$_multiarch:$LOCKSTEP_PREFIX/lib/$_multiarch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  unset _usr _multiarch
fi
