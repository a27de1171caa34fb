#!/bin/sh
# Installs the C library, its headers for C and C++, and the files by which pkg-config and CMake find it.
#
#   scripts/install.sh PREFIX
#
# PREFIX/include/selvedge.h, selvedge.hpp and selvedge/, PREFIX/lib/libselvedge.{so,a}, PREFIX/lib/pkgconfig/selvedge.pc and
# PREFIX/lib/cmake/selvedge. The installed tree may be moved. LIBDIR is another name than `lib`, such as `lib64`; DESTDIR goes
# before every path, for packages. CARGO, CARGO_TARGET_DIR and FEATURES are honoured as in scripts/build_library.sh.
set -eu

if [ $# -ne 1 ]; then
    sed -n 's/^#   //p' "$0" >&2
    exit 2
fi
case $1 in
    /*) prefix=$1 ;;
    *) prefix=$(pwd)/$1 ;;
esac
cd "$(dirname "$0")/.."
root=${DESTDIR:-}$prefix
library=${LIBDIR:-lib}
case $library in
    */*) echo "install.sh: LIBDIR=$library: found a path; wanted one name" >&2; exit 2 ;;
esac
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
abi=$(sed -n 's/^abi //p' include/selvedge.symbols)

mkdir -p "$root/include/selvedge" "$root/$library/pkgconfig" "$root/$library/cmake/selvedge"
scripts/build_library.sh "$root/$library" release
private=$(cat "$root/$library/private_libraries")
rm "$root/$library/private_libraries"
cp include/selvedge.h include/selvedge.hpp "$root/include/"
cp include/selvedge/*.hpp "$root/include/selvedge/"

cat >"$root/$library/pkgconfig/selvedge.pc" <<END
prefix=\${pcfiledir}/../..
libdir=\${prefix}/$library
includedir=\${prefix}/include

Name: selvedge
Description: A GPU runtime and tensor library that needs only the NVIDIA driver at run time
Version: $version
Libs: -L\${libdir} -lselvedge
Libs.private: $private
Cflags: -I\${includedir}
END

cat >"$root/$library/cmake/selvedge/selvedge-config.cmake" <<END
# The targets selvedge::selvedge (shared) and selvedge::static.
get_filename_component(selvedge_prefix "\${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET selvedge::selvedge)
  add_library(selvedge::selvedge SHARED IMPORTED)
  set_target_properties(selvedge::selvedge PROPERTIES
    IMPORTED_LOCATION "\${selvedge_prefix}/$library/libselvedge.so.$version"
    IMPORTED_SONAME "libselvedge.so.$abi"
    INTERFACE_INCLUDE_DIRECTORIES "\${selvedge_prefix}/include")
  add_library(selvedge::static STATIC IMPORTED)
  set_target_properties(selvedge::static PROPERTIES
    IMPORTED_LOCATION "\${selvedge_prefix}/$library/libselvedge.a"
    INTERFACE_INCLUDE_DIRECTORIES "\${selvedge_prefix}/include"
    INTERFACE_LINK_LIBRARIES "$(echo $private | tr ' ' ';')")
endif()
unset(selvedge_prefix)
END

# Before 1.0 a minor version may break source code; the name of the shared library guards programs that are built.
cat >"$root/$library/cmake/selvedge/selvedge-config-version.cmake" <<END
set(PACKAGE_VERSION "$version")
string(REGEX MATCH "^[0-9]+\\\\.[0-9]+" selvedge_series "\${PACKAGE_VERSION}")
string(REGEX MATCH "^[0-9]+(\\\\.[0-9]+)?" selvedge_wanted "\${PACKAGE_FIND_VERSION}")
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
elseif(selvedge_wanted STREQUAL selvedge_series OR selvedge_wanted STREQUAL "")
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
else()
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
endif()
if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
unset(selvedge_series)
unset(selvedge_wanted)
END
echo "installed selvedge $version in $root"
