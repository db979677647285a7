/* Preloaded into a program (LD_PRELOAD): lets one of its calls fail, the n-th allocation or the n-th write.
 *
 *   HONE_FAIL_ALLOCATION=n   malloc, calloc or realloc number n gives NULL, with HONE_FAIL_EVER=1 all after
 * it too HONE_FAIL_WRITE=n        pwrite number n fails with ENOSPC, and all after it HONE_FAIL_COUNT=FILE
 * gets the number of allocations and of writes at the end
 *
 * Counted are calls of the program and of libhone.so, which have the C++ library in them: those of the loader
 * and of the fakes, which use the shared one, are not ours to mend. Children are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);

static long allocation_to_fail = -1, write_to_fail = -1;
static long allocations, writes;
static int ever;
static pid_t process;
static ssize_t (*real_pwrite)(int, const void*, size_t, off_t);

static long number(const char* name) {
    const char* text = getenv(name);
    return text == NULL ? -1 : atol(text);
}

__attribute__((constructor)) static void begin(void) {
    allocation_to_fail = number("HONE_FAIL_ALLOCATION");
    write_to_fail = number("HONE_FAIL_WRITE");
    ever = number("HONE_FAIL_EVER") == 1;
    real_pwrite = (ssize_t(*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    unsetenv("LD_PRELOAD");
    process = getpid();
}

__attribute__((destructor)) static void end(void) {
    const char* file = getenv("HONE_FAIL_COUNT");
    if (file == NULL || getpid() != process) return;
    const int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dprintf(fd, "%ld %ld\n", allocations, writes);
    close(fd);
}

static int is_ours(const void* caller) {
    Dl_info info;
    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL) return 1;
    return strstr(info.dli_fname, "libfake") == NULL && strstr(info.dli_fname, "libstdc++") == NULL &&
           strstr(info.dli_fname, "ld-linux") == NULL;
}

static int fails(long* count, long at, int and_after) {
    const long now = __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
    return at > 0 && (and_after ? now >= at : now == at);
}

static int allocation_fails(const void* caller) {
    if (process == 0 || getpid() != process || !is_ours(caller)) return 0;
    if (!fails(&allocations, allocation_to_fail, ever)) return 0;
    errno = ENOMEM;
    return 1;
}

void* malloc(size_t bytes) {
    return allocation_fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
    return allocation_fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

void* realloc(void* memory, size_t bytes) {
    return allocation_fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, bytes);
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
    if (process != 0 && getpid() == process && fails(&writes, write_to_fail, 1)) {
        errno = ENOSPC;
        return -1;
    }
    return real_pwrite(fd, bytes, count, offset);
}
