#!/usr/bin/env bash
# The archive for other systems, made of a finished build, unpacked into an empty folder and used there without anything of
# this tree but a fake compiler of kernels: archive_test.sh BUILD SCRATCH FAKE_NVRTC
set -euo pipefail
build=$1 scratch=$2 nvrtc=$3
fail() { echo "$*" && exit 1; }

rm -rf "$scratch"
mkdir -p "$scratch"/{packed,unpacked,home}
(cd "$scratch" && cpack --config "$build/CPackConfig.cmake" -G TGZ -B "$scratch/packed") >"$scratch/cpack.log" 2>&1 ||
    { cat "$scratch/cpack.log" && exit 1; }
archives=("$scratch"/packed/hone-*-linux-"$(uname -m)".tar.gz)
((${#archives[@]} == 1)) && [[ -f ${archives[0]} ]] || fail "archives: ${archives[*]}"
tar -xzf "${archives[0]}" -C "$scratch/unpacked"
rm -r "$scratch/packed"
root=$(echo "$scratch"/unpacked/*)
[[ $root == "$scratch/unpacked/$(basename "${archives[0]}" .tar.gz)" ]] || fail "it unpacks to: $root"

library=$(find "$root" -name libhone.so.0)
for file in bin/hone include/hone.h include/hone_decoder.h include/hone/hone.h share/hone/models/gpt2.yaml share/doc/hone/docs/support.md \
    share/doc/hone/README.md share/man/man1/hone.1.gz share/bash-completion/completions/hone \
    share/zsh/site-functions/_hone share/fish/vendor_completions.d/hone.fish; do
    [[ -s $root/$file ]] || fail "no $file"
done
for component in hone libhone0 libhone-dev; do
    grep -q "MIT License" "$root/share/doc/$component/copyright" || fail "$component has no licence"
done
for binary in "$root/bin/hone" "$library" "${library%/*}/libhone_decoder.so.0"; do
    ! nm "$binary" 2>/dev/null | grep -q . || fail "$binary is not stripped"
    # What the wheel has, too, where its test looks closer (python.wheel_test).
    needed=$(objdump -p "$binary" | sed -n 's/ *NEEDED *//p' | grep -vE '^(lib(c|m|dl|pthread)\.so\.[0-9]|ld-linux.*)$' || true)
    [[ -z $needed ]] || fail "$binary needs $needed"
done

# Nothing of the caller's environment, which may name a cache or a driver.
hone() {
    env -i HOME="$scratch/home" PATH=/usr/bin:/bin HONE_CUDA_LIBRARY=/nonexistent/libcuda.so.1 HONE_NVRTC_LIBRARY="$nvrtc" \
        HONE_PACKAGED=off "$root/bin/hone" "$@"
}
cd "$scratch/home"
hone --version | grep -q '^hone [0-9]' || fail "hone --version: $(hone --version)"
hone tune gpt2 --offline --arch sm_80 --tokens 16 >tune.log 2>&1 || { cat tune.log && fail "hone tune"; }
grep -q "layernorm" tune.log || { cat tune.log && fail "hone tune names no operator"; }
hone list --model gpt2 >list.log 2>&1 && grep -q predicted list.log || { cat list.log && fail "hone list"; }

cc -std=c11 -o example "$root/share/doc/libhone-dev/examples/c_rms_norm.c" -I"$root/include" -L"${library%/*}" -lhone -lm \
    -ldl -Wl,-rpath,"${library%/*}" || fail "the example does not compile"
status=0
env -i HOME="$scratch/home" ./example >example.log 2>&1 || status=$?
[[ $status == 0 || $status == 3 ]] || { cat example.log && fail "the example ends with $status"; }
