#!/usr/bin/env bash
# The ./hone script against a made-up tree, with stand-ins for cmake and ctest that only write down their arguments.
#   bootstrap_test.sh SCRIPT
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
calls=$scratch/calls
mkdir -p "$tree/cmake" "$tree/cli" "$scratch/bin"
cp "$1" "$tree/hone"
echo 'bash bash' >"$tree/cmake/packages.txt"
touch "$tree/cli/main.cpp" "$tree/CMakeLists.txt"

# Configuring makes a build file, building makes a program that prints its arguments.
cat >"$scratch/bin/cmake" <<END
#!/usr/bin/env bash
echo "cmake \$*" >>"$calls"
[[ -e "$scratch/broken" ]] && echo "the compiler's message" && exit 1
case \$1 in
    --preset) [[ \$3 == -B ]] && mkdir -p "\$4" && touch "\$4/build.ninja"
              echo "CMAKE_HOME_DIRECTORY:INTERNAL=\$PWD" >"\$4/CMakeCache.txt" ;;
    --build) printf '#!/bin/sh\necho "program \$*"\nexit 7\n' >"\$2/hone"; chmod +x "\$2/hone"; echo "building" ;;
esac
END
cat >"$scratch/bin/ctest" <<END
#!/usr/bin/env bash
echo "ctest \$*" >>"$calls"
exit 8
END
cat >"$scratch/bin/python3" <<END
#!/usr/bin/env bash
echo "python3 \$* in \$PWD" >>"$calls"
exit 3
END
chmod +x "$scratch/bin/cmake" "$scratch/bin/ctest" "$scratch/bin/python3"
PATH=$scratch/bin:$PATH

# hone ARGUMENTS...: sets out, err, status and did (the recorded calls).
hone() {
    : >"$calls"
    status=0
    out=$("$tree/hone" "$@" 2>"$scratch/err") || status=$?
    err=$(<"$scratch/err")
    did=$(<"$calls")
}
fail() {
    printf 'FAILED: %s\n  status: %s\n  stdout: %s\n  stderr: %s\n  calls: %s\n' "$1" "$status" "$out" "$err" "$did"
    exit 1
}
# The sentence, what there is, what there should be (a pattern for `matches`).
equals() { [[ $2 == "$3" ]] || fail "$1"; }
# shellcheck disable=SC2053
matches() { [[ $2 == $3 ]] || fail "$1"; }
# shellcheck disable=SC2053
differs() { [[ $2 != $3 ]] || fail "$1"; }
settle() { sleep 0.02; }  # file times have to differ

hone tune a 'b c'
matches "a fresh tree is configured and built" "$did" '*--preset*--build*'
equals "arguments and stdout are the program's" "$out" "program tune a b c"
equals "the exit code is the program's" "$status" 7

hone list
equals "an unchanged tree calls nothing" "$did" ""
equals "an unchanged tree says nothing" "$err" ""

settle && touch "$tree/cli/main.cpp"
hone list
matches "a changed source is built" "$did" '*--build*'
differs "a changed source is not configured again" "$did" '*--preset*'

settle && touch "$tree/cli/main.cpp" && echo HONE_UNITS:BOOL=ON >>"$tree/build/release/CMakeCache.txt"
hone list
matches "what is compiled together is put together again" "$did" '*--preset*--build*'
echo HONE_UNITS:BOOL=ON >>"$tree/build/release/CMakeCache.txt"
settle && touch "$tree/CMakeLists.txt"
hone list
differs "where no file changed, it is not" "$did" '*--preset*'

settle && mkdir -p "$tree/configs/tuned" && echo '{}' >"$tree/configs/tuned/h100.json"
hone list
matches "a new packaged result is built in" "$did" '*--build*'

settle && rm "$tree/cli/main.cpp"
hone list
matches "a removed source is noticed" "$did" '*--build*'

settle && touch "$tree/cmake/x.cmake" "$scratch/broken"
hone list
equals "a failed build runs no stale program" "$out" ""
matches "a failed build says so" "$err" "*the compiler's message*set-up failed*"
equals "a failed build exits with 1" "$status" 1
rm "$scratch/broken"
hone list
matches "the next run tries again" "$did" '*--build*'

mv "$tree" "$scratch/elsewhere" && tree=$scratch/elsewhere
hone list
matches "a moved tree is configured anew" "$did" '*--preset*'

hone test -R cache
matches "test builds everything" "$did" '*--target all*'
matches "test hands its arguments to ctest" "$did" '*ctest*-R cache*'
equals "test has ctest's exit code" "$status" 8

settle && touch "$tree/cli/main.cpp"
hone generate --check
equals "generate builds nothing" "$did" "python3 -B -m generate --check in $tree"
equals "generate has the generator's exit code" "$status" 3
hone generate model -p text
equals "generate with a model is the program's" "$out" "program generate model -p text"

ln -s "$tree/hone" "$scratch/link"
: >"$calls"
equals "a link to the script works" "$("$scratch/link" x || true)" "program x"

# Somebody else's tree, or a mounted image: built in the user's cache folder. Root may write everywhere but there.
if ((EUID != 0)) || command -v setpriv >/dev/null; then
    as_reader=()
    ((EUID != 0)) || as_reader=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    mkdir "$scratch/read_only" "$scratch/home"
    cp -r "$tree"/{hone,cmake,cli,CMakeLists.txt} "$scratch/read_only"
    chmod -R a+rX,a-w "$scratch/read_only"
    chmod a+rx "$scratch" "$scratch/bin"
    chmod 777 "$scratch/home" && chmod 666 "$calls"
    read_only() { env -u XDG_CACHE_HOME HOME="$scratch/home" "${as_reader[@]}" "$scratch/read_only/hone" x 2>"$scratch/err" || true; }
    equals "a tree that is read-only is built in the user's cache" "$(read_only)" "program x"
    : >"$calls"
    equals "and used again" "$(read_only)" "program x"
    equals "without another build" "$(<"$calls")" ""
fi

if ((EUID != 0)) && command -v apt-get >/dev/null; then
    echo 'no-such-package no-such-command' >>"$tree/cmake/packages.txt"
    rm -r "$tree/build"
    hone list
    matches "missing packages end in the command to run" "$err" '*apt-get install*no-such-package*'
    equals "missing packages exit with 1" "$status" 1
fi
echo "all passed"
