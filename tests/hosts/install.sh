#!/bin/sh
# Checks for what tests/hosts call, installs what apt has and root may, builds CalculiX once.
# What is absent in the end is named; its tests are skipped.
set -u
hosts=$(cd "$(dirname "$0")/../.." && pwd)/.hosts
version=2.20
mkdir -p "$hosts"

install() {
  command -v apt-get > /dev/null && [ "$(id -u)" = 0 ] || return 1
  # a machine may know no packages yet
  apt-get install -y -qq "$@" > /dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq "$@" > /dev/null; }
}

command -v gfortran > /dev/null || install gfortran || echo "hosts: gfortran is absent: tests of UMAT are skipped"
command -v cmake > /dev/null || install cmake || echo "hosts: CMake is absent: its test of tests/cpp is skipped"
/usr/bin/python3 -c 'import dolfinx' 2> /dev/null || install python3-dolfinx python3-venv ||
  echo "hosts: FEniCSx is absent (python3-dolfinx): its tests are skipped"

build_calculix() {
  command -v gfortran > /dev/null || return 1
  command -v dpkg-source > /dev/null || install dpkg-dev || return 1
  [ -e /usr/include/spooles/misc.h ] || install libspooles-dev libarpack2-dev liblapack-dev libblas-dev || return 1
  work=$hosts/calculix-source
  mkdir -p "$work" && cd "$work" || return 1
  if ! ls -d calculix-ccx-* > /dev/null 2>&1; then
    # the source package, which needs deb-src entries: those of the packages, for this command alone
    apt-get indextargets --format 'deb-src $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
      sort -u > sources.list
    keep="-o Dir::Etc::sourcelist=$work/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$work/lists"
    mkdir -p lists/partial
    apt-get $keep update -qq && apt-get $keep source -qq calculix-ccx || return 1
  fi
  source=$(ls -d "$work"/calculix-ccx-*/ccx_$version/src) || return 1
  cd "$source" || return 1
  make -j "$(nproc)" FFLAGS="-O2 -fallow-argument-mismatch -fopenmp" \
    CFLAGS='-O2 -I/usr/include/spooles -DARCH="Linux" -DSPOOLES -DARPACK -DMATRIXSTORAGE -DUSE_MT=1' \
    > "$work/build.log" 2>&1 || return 1
  ln -sfn "$source" "$hosts/calculix"
}

[ -e "$hosts/calculix/ccx_$version.a" ] || build_calculix || echo "hosts: CalculiX is absent: its tests are skipped"
exit 0
