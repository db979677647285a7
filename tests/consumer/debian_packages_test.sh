#!/usr/bin/env bash
# Debian's packages, made of a finished build and installed into a clean root: debian_packages_test.sh BUILD SCRATCH
# Exit code 77, which ctest shows as skipped, where there is no dpkg.
set -euo pipefail
build=$1 scratch=$2
command -v dpkg >/dev/null && command -v dpkg-deb >/dev/null || exit 77
fail() { echo "$*" && exit 1; }

rm -rf "$scratch"
mkdir -p "$scratch"/{packages,root/var/lib/dpkg/{info,updates}}
touch "$scratch/root/var/lib/dpkg/status"
(cd "$scratch" && cpack --config "$build/CPackConfig.cmake" -G DEB -B "$scratch/packages") >"$scratch/cpack.log" 2>&1 ||
    { cat "$scratch/cpack.log" && exit 1; }
packages=("$scratch"/packages/*.deb)
((${#packages[@]} == 3)) || fail "packages: ${packages[*]}"

root=$scratch/root
# Their dependencies are those of the machine, which the clean root does not have.
dpkg --root="$root" --force-not-root --force-depends --force-script-chrootless -i "${packages[@]}" >"$scratch/dpkg.log" 2>&1 ||
    { cat "$scratch/dpkg.log" && exit 1; }

for package in hone libhone0 libhone-dev; do
    [[ $(dpkg --root="$root" -s "$package" | sed -n 's/^Status: //p') == "install ok installed" ]] || fail "$package"
    grep -q "MIT License" "$root/usr/share/doc/$package/copyright" || fail "$package has no licence"
done
for file in bin/hone include/hone.h include/hone_decoder.h include/hone/hone.h share/hone/models/llama-3-8b.yaml share/doc/hone/README.md \
    share/man/man1/hone.1.gz share/bash-completion/completions/hone; do
    [[ -e $root/usr/$file ]] || fail "no /usr/$file"
done
! nm "$root/usr/bin/hone" 2>/dev/null | grep -q . || fail "the program is not stripped"
HONE_CACHE=$scratch/cache/cache.db "$root/usr/bin/hone" model llama-3-8b | grep -q "llama" || fail "hone model finds no model"

library=$(find "$root/usr/lib" -name libhone.so.0)
[[ -e ${library%/*}/libhone_decoder.so.0 ]] || fail "no libhone_decoder.so.0 beside libhone.so.0"
cc -std=c11 -o "$scratch/example" "$root/usr/share/doc/libhone-dev/examples/c_rms_norm.c" -I"$root/usr/include" \
    -L"${library%/*}" -lhone -lm -ldl -Wl,-rpath,"${library%/*}" || fail "the example does not compile"
status=0
HONE_CACHE=$scratch/cache/cache.db "$scratch/example" >"$scratch/example.log" 2>&1 || status=$?
[[ $status == 0 || $status == 3 ]] || { cat "$scratch/example.log" && fail "the example ends with $status"; }

dpkg --root="$root" --force-not-root --force-script-chrootless -r libhone-dev hone libhone0 >"$scratch/dpkg.log" 2>&1 ||
    { cat "$scratch/dpkg.log" && exit 1; }
[[ -z $(find "$root/usr" -type f) ]] || fail "left behind: $(find "$root/usr" -type f)"
