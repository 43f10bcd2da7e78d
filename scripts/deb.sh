#!/usr/bin/env bash
# Makes the Debian packages of the part without LibTorch in a bare Debian, checks
# them with lintian, and runs autopkgtest on them in another bare one: scripts/deb.sh [FOLDER]
# Packages and logs: FOLDER/out (build/deb/out). Needs root, debootstrap and git.
#
#   DEB_BUILD_OPTIONS, DEB_CXXFLAGS_APPEND  as dpkg-buildpackage reads them
#   LOCKSTEP_PTH                            a checkpoint that the tests read, too
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/deb}
mkdir -p "$folder/out"
version=$(sed -n 's/.*kVersion = "\(.*\)";/\1/p' lockstep/base/version.h)
rm -f "$folder"/out/*lockstep* "$folder"/fresh/out/*.deb
# Two archives of one commit are equal.
git ls-files -z ':!packaging/debian' \
  | tar -c --null -T - --sort=name --mtime="@$(git log -1 --format=%ct)" --owner=0 --group=0 \
    --numeric-owner --mode=u=rwX,go=rX --transform "flags=r;s,^,lockstep-$version/," \
  | gzip -n >"$folder/out/lockstep_$version.orig.tar.gz"

scripts/in_debian.sh "$folder" "
apt-get update -qq
apt-get install -y -qq --no-install-recommends build-essential debhelper lintian fakeroot >/dev/null
rm -rf /tmp/made && mkdir /tmp/made && cd /tmp/made
cp /out/lockstep_$version.orig.tar.gz .
tar -xf lockstep_$version.orig.tar.gz && cd lockstep-$version
cp -r /src/packaging/debian debian
apt-get build-dep -y -qq --no-install-recommends ./ >/dev/null
export DEB_BUILD_OPTIONS='${DEB_BUILD_OPTIONS:-}' DEB_CXXFLAGS_APPEND='${DEB_CXXFLAGS_APPEND:-}'
dpkg-buildpackage -us -uc >/out/build.log 2>&1 || { tail -n 40 /out/build.log; exit 1; }
cp ../*.deb ../*.dsc ../*.changes ../*.buildinfo ../*.debian.tar.* /out
echo 'deb: lintian'
lintian --allow-root --fail-on error,warning --display-info ../*.changes
"
# The bare one: neither the build's packages nor its folder.
scripts/in_debian.sh "$folder/fresh" true
cp "$folder"/out/*.deb "$folder/fresh/out"
cp "${LOCKSTEP_PTH:-testdata/valid/dataparallel.pt}" "$folder/fresh/out/model.pth"
scripts/in_debian.sh "$folder/fresh" "
apt-get update -qq
apt-get install -y -qq --no-install-recommends autopkgtest >/dev/null
rm -rf /tmp/source && mkdir /tmp/source && cp -r /src/packaging/debian /src/examples /src/testdata /tmp/source
autopkgtest -q --env=LOCKSTEP_PTH=/out/model.pth -B /out/*.deb /tmp/source -- null
apt-get install -y -qq --no-install-recommends /out/lockstep_*.deb bash-completion man-db zsh >/dev/null
man -w lockstep
bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader lockstep; complete -p lockstep'
zsh -c 'autoload -Uz compinit && compinit -u -D && echo \$_comps[lockstep]'
apt-get purge -y -qq 'lockstep' 'liblockstep*' >/dev/null
! find /usr -name '*lockstep*' | grep .
"
