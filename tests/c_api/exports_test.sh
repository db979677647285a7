#!/usr/bin/env bash
# The shared library shows exactly the functions of the header, and needs nothing but the C library.
#   exports_test.sh LIBRARY HEADER
set -euo pipefail
library=$1 header=$2
declared=$(tr '\n' ' ' <"$header" | grep -oE 'HONE_API [^;]*;' | grep -oE '\bhone_[a-z_]+ ?\(' | tr -d ' (' | sort -u)
shown=$(nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort -u)
diff <(echo "$declared") <(echo "$shown") || {
    echo "left: declared in $header, right: exported by $library"
    exit 1
}
needed=$(objdump -p "$library" | awk '$1 == "NEEDED" {print $2}')
for name in $needed; do
    case $name in
        libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2 | libdl.so.2 | libpthread.so.0) ;;
        *) echo "$library needs $name" && exit 1 ;;
    esac
done
