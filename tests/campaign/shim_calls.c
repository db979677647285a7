/* The shim's functions that are put before the C library's: memory, I/O, the clock. Each asks shim.c what is
 * to become of the call. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

/* What mknod() is in runtime/system/old_glibc/. */
extern int __xmknod(int, const char*, mode_t, dev_t*);

/* The next library's function of that name, looked for once. */
static void* real(void** known, const char* name) {
    if (*known == NULL) *known = dlsym(RTLD_NEXT, name);
    return *known;
}
#define REAL(name)               \
    static void* known;          \
    __typeof__(name)* passed_on; \
    *(void**)&passed_on = real(&known, #name)

/* ---- memory: __libc_* are the C library's own, which need no look-up (dlsym itself allocates). */

void* malloc(size_t bytes) {
    return allocation_fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
    return allocation_fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
    return allocation_fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
    return allocation_fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
    void* memory = allocation_fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, bytes);
    if (memory == NULL) return ENOMEM;
    *out = memory;
    return 0;
}

/* ---- I/O: each passes on, fails, or is the last thing that the process does. Half of a call that writes
 * nothing is the whole call. */

#define IO_NOTED(result, failed, name, parameters, arguments, needs_space, noted) \
    result name parameters {                                                      \
        REAL(name);                                                               \
        const enum end end = next_io(needs_space);                                \
        if (end == fails) return failed;                                          \
        noted;                                                                    \
        result value = passed_on arguments;                                       \
        if (end == tears) die();                                                  \
        return value;                                                             \
    }
#define IO(result, failed, name, parameters, arguments) \
    IO_NOTED(result, failed, name, parameters, arguments, 0, (void)0)
#define IO_FILE(name, parameters, arguments, needs_space) \
    IO_NOTED(int, -1, name, parameters, arguments, needs_space, note_file(#name, file))
#define IO_MAKE(result, failed, name, parameters, arguments) \
    IO_NOTED(result, failed, name, parameters, arguments, 1, (void)0)
#define IO_NAMES(name, parameters, arguments, to) \
    IO_NOTED(int, -1, name, parameters, arguments, 0, note(#name, from, to))

#define IO_WRITE(name, parameters, arguments, half)     \
    ssize_t name parameters {                           \
        REAL(name);                                     \
        const enum end end = next_io(is_regular(file)); \
        if (end == fails) return -1;                    \
        note_file(#name, file);                         \
        if (end == passes) return passed_on arguments;  \
        (void)!passed_on half;                          \
        die();                                          \
        return -1;                                      \
    }

IO_WRITE(write, (int file, const void* bytes, size_t count), (file, bytes, count), (file, bytes, count / 2))
IO_WRITE(pwrite, (int file, const void* bytes, size_t count, off_t at), (file, bytes, count, at),
         (file, bytes, count / 2, at))
IO_WRITE(pwrite64, (int file, const void* bytes, size_t count, off64_t at), (file, bytes, count, at),
         (file, bytes, count / 2, at))
IO_WRITE(writev, (int file, const struct iovec* parts, int count), (file, parts, count),
         (file, parts, count / 2))

IO(ssize_t, -1, read, (int file, void* bytes, size_t count), (file, bytes, count))
IO(ssize_t, -1, pread, (int file, void* bytes, size_t count, off_t at), (file, bytes, count, at))
IO(ssize_t, -1, pread64, (int file, void* bytes, size_t count, off64_t at), (file, bytes, count, at))
IO_FILE(fsync, (int file), (file), 0)
IO_FILE(fdatasync, (int file), (file), 0)
IO_FILE(ftruncate, (int file, off_t bytes), (file, bytes), 0)
IO_FILE(ftruncate64, (int file, off64_t bytes), (file, bytes), 0)
IO_FILE(fallocate, (int file, int how, off_t at, off_t bytes), (file, how, at, bytes), 1)
IO_FILE(fallocate64, (int file, int how, off64_t at, off64_t bytes), (file, how, at, bytes), 1)
IO_MAKE(int, errno, posix_fallocate, (int file, off_t at, off_t bytes), (file, at, bytes))
IO_MAKE(int, errno, posix_fallocate64, (int file, off64_t at, off64_t bytes), (file, at, bytes))
IO_MAKE(int, -1, mkdir, (const char* name, mode_t mode), (name, mode))
IO_MAKE(int, -1, mknod, (const char* name, mode_t mode, dev_t device), (name, mode, device))
IO_MAKE(int, -1, __xmknod, (int version, const char* name, mode_t mode, dev_t* device),
        (version, name, mode, device))
IO_MAKE(int, -1, mkdirat, (int folder, const char* name, mode_t mode), (folder, name, mode))
IO_MAKE(int, -1, mkstemp, (char* name), (name))
IO_MAKE(int, -1, mkostemp, (char* name, int flags), (name, flags))
IO_MAKE(char*, NULL, mkdtemp, (char* name), (name))
IO_NAMES(rename, (const char* from, const char* to), (from, to), to)
IO_NAMES(renameat, (int a, const char* from, int b, const char* to), (a, from, b, to), to)
IO_NAMES(renameat2, (int a, const char* from, int b, const char* to, unsigned how), (a, from, b, to, how), to)
IO_NAMES(link, (const char* from, const char* to), (from, to), to)
IO_NAMES(linkat, (int a, const char* from, int b, const char* to, int how), (a, from, b, to, how), to)
IO_NAMES(unlink, (const char* from), (from), "")
IO_NAMES(unlinkat, (int folder, const char* from, int how), (folder, from, how), "")
IO_NAMES(remove, (const char* from), (from), "")
IO_NAMES(rmdir, (const char* from), (from), "")
IO(DIR*, NULL, opendir, (const char* name), (name))
IO_NOTED(FILE*, NULL, fopen, (const char* name, const char* how), (name, how), *how != 'r', (void)0)
IO_NOTED(FILE*, NULL, fopen64, (const char* name, const char* how), (name, how), *how != 'r', (void)0)

/* open and its like have a mode only where they create. */
static mode_t created_mode(int flags, va_list rest) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

/* Whether opening makes a file, which takes space. */
static int makes_file(int flags, int folder, const char* path) {
    const int error = errno;
    const int makes = (flags & O_CREAT) != 0 && faccessat(folder, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
    errno = error;
    return makes;
}

#define IO_OPEN(name, folder, parameters, arguments)                   \
    int name parameters {                                              \
        va_list rest;                                                  \
        va_start(rest, flags);                                         \
        const mode_t mode = created_mode(flags, rest);                 \
        va_end(rest);                                                  \
        REAL(name);                                                    \
        const enum end end = next_io(makes_file(flags, folder, path)); \
        if (end == fails) return -1;                                   \
        const int file = passed_on arguments;                          \
        if (end == tears) die();                                       \
        return file;                                                   \
    }

IO_OPEN(open, AT_FDCWD, (const char* path, int flags, ...), (path, flags, mode))
IO_OPEN(open64, AT_FDCWD, (const char* path, int flags, ...), (path, flags, mode))
IO_OPEN(openat, folder, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))
IO_OPEN(openat64, folder, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))

/* A mapping without a file is memory, which is not counted here. */
#define IO_MAP(name, offset)                                                                \
    void* name(void* at, size_t bytes, int protection, int flags, int file, offset begin) { \
        REAL(name);                                                                         \
        const enum end end = file < 0 ? passes : next_io(0);                                \
        if (end == fails) return MAP_FAILED;                                                \
        void* memory = passed_on(at, bytes, protection, flags, file, begin);                \
        if (end == tears) die();                                                            \
        return memory;                                                                      \
    }

IO_MAP(mmap, off_t)
IO_MAP(mmap64, off64_t)

/* ---- the clock of the day; the monotonic one never jumps. */

int clock_gettime(clockid_t clock, struct timespec* out) {
    const int result = (int)syscall(SYS_clock_gettime, clock, out);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += clock_offset_now();
    return result;
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t* out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) *out = now.tv_sec;
    return now.tv_sec;
}
