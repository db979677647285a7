/* A library to preload (LD_PRELOAD) into one process: counts its calls that allocate and its calls that do
 * I/O, and makes one of them end badly. The campaign's tests run the real program under it; nothing of the
 * product knows it. Only the process that loads it is meant: children run without it, and calls of a forked
 * copy pass through. Set by variables:
 *
 * - HONE_SHIM=kill: SIGKILL before the chosen I/O call.
 * - HONE_SHIM=torn: SIGKILL after half of what the chosen I/O call writes.
 * - HONE_SHIM=io: the chosen I/O call fails.
 * - HONE_SHIM=full: from the chosen I/O call on, those that need space in a file fail with ENOSPC.
 * - HONE_SHIM=alloc: the chosen allocation fails.
 * - HONE_SHIM_AT=N: which call is chosen, from 1 over all calls of that sort.
 * - HONE_SHIM_ERRNO=E: the error of `io`; EIO when not set.
 * - HONE_SHIM_FOR_EVER=1: `io` and `alloc` go on with every later call of the sort.
 * - HONE_SHIM_TRACE=FILE: gets a line for each call that changes files: call, file, second file.
 * - HONE_SHIM_COUNTS=FILE: gets, at exit, the numbers of allocations, I/O calls and looks at the clock.
 * - HONE_SHIM_STACKS=FILE: gets, at exit, a line for each allocation whose call stack no earlier one had: its
 *   number, from 1.
 * - HONE_SHIM_CLOCK=SECONDS: the clock of the day is off by so much.
 * - HONE_SHIM_CLOCK_AT=N: it is so from the N-th look at it on.
 *
 * malloc and its like are taken over by their names, so operator new is counted, too; I/O that the C library
 * does inside of itself (a FILE's buffers, printf) is not seen. Counting begins with main(): before it nobody
 * could catch anything. Not counted are allocations of the loader, which ends the process without asking
 * anybody, and of the fake libraries, which stand for the driver: the product links its own libstdc++, so
 * that those of the shared one are theirs. */
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

enum mode { counting, killing, tearing, failing_io, filling, failing_allocations };

static struct {
    pid_t process; /* 0 until everything here is set */
    enum mode mode;
    long at;
    int error;
    int for_ever;
    long clock_offset_s;
    long clock_at;
    int trace; /* a descriptor, or -1 */
    char counts_file[512];
    char stacks_file[512];
} settings;

static long allocations;
static long io_calls;
static long clock_looks;

static long number_of(const char* variable, long otherwise) {
    const char* text = getenv(variable);
    return text == NULL ? otherwise : atol(text);
}

static enum mode mode_of(const char* word) {
    if (strcmp(word, "kill") == 0) return killing;
    if (strcmp(word, "torn") == 0) return tearing;
    if (strcmp(word, "io") == 0) return failing_io;
    if (strcmp(word, "full") == 0) return filling;
    return strcmp(word, "alloc") == 0 ? failing_allocations : counting;
}

__attribute__((constructor)) static void read_settings(void) {
    const char* mode = getenv("HONE_SHIM");
    const char* counts = getenv("HONE_SHIM_COUNTS");
    const char* stacks = getenv("HONE_SHIM_STACKS");
    const char* trace = getenv("HONE_SHIM_TRACE");
    const int appending = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    settings.trace = trace == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, trace, appending, 0600);
    settings.mode = mode == NULL ? counting : mode_of(mode);
    settings.at = number_of("HONE_SHIM_AT", 0);
    settings.error = (int)number_of("HONE_SHIM_ERRNO", EIO);
    settings.for_ever = getenv("HONE_SHIM_FOR_EVER") != NULL || settings.mode == filling;
    settings.clock_offset_s = number_of("HONE_SHIM_CLOCK", 0);
    settings.clock_at = number_of("HONE_SHIM_CLOCK_AT", 1);
    if (counts != NULL) snprintf(settings.counts_file, sizeof settings.counts_file, "%s", counts);
    if (stacks != NULL) snprintf(settings.stacks_file, sizeof settings.stacks_file, "%s", stacks);
    unsetenv("LD_PRELOAD");
}

static int (*program)(int, char**, char**);

static int counted_main(int argc, char** argv, char** environment) {
    settings.process = getpid();
    return program(argc, argv, environment);
}

/* What the C library starts a program with: main() is put between. */
int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(void),
                      void (*fini)(void), void (*loader_fini)(void), void* stack_end) {
    __typeof__(__libc_start_main)* passed_on;
    *(void**)&passed_on = dlsym(RTLD_NEXT, "__libc_start_main");
    program = main;
    return passed_on(counted_main, argc, argv, init, fini, loader_fini, stack_end);
}

/* Call stacks that were seen, by their hashes: an open table, and the number of the allocation that was
 * first.
 */
enum { stack_slots = 1 << 17, stack_frames = 40 };
static struct {
    uint64_t hash; /* 0 where the slot is free */
    long first;
} stacks[stack_slots];

struct walk {
    uint64_t hash;
    int frames;
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context* context, void* data) {
    struct walk* walk = data;
    walk->hash =
        (walk->hash ^ (uint64_t)_Unwind_GetIP(context)) * UINT64_C(0x100000001b3); /* FNV-1a's prime */
    return ++walk->frames < stack_frames ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void remember_stack(long count) {
    struct walk walk = {UINT64_C(0xcbf29ce484222325), 0}; /* FNV-1a's start */
    _Unwind_Backtrace(add_frame, &walk);
    if (walk.hash == 0) walk.hash = 1;
    for (uint64_t tried = 0; tried < stack_slots; ++tried) {
        const uint64_t slot = (walk.hash + tried) % stack_slots;
        uint64_t found = 0;
        if (__atomic_compare_exchange_n(&stacks[slot].hash, &found, walk.hash, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            stacks[slot].first = count;
        if (found == 0 || found == walk.hash) return;
    }
}

static void write_stacks(void) {
    FILE* file = fopen(settings.stacks_file, "w");
    if (file == NULL) return;
    for (long slot = 0; slot < stack_slots; ++slot) {
        if (stacks[slot].hash != 0) fprintf(file, "%ld\n", stacks[slot].first);
    }
    fclose(file);
}

__attribute__((destructor)) static void write_counts(void) {
    if (settings.process != getpid()) return;
    settings.process = 0;
    if (settings.stacks_file[0] != '\0') write_stacks();
    if (settings.counts_file[0] == '\0') return;
    FILE* file = fopen(settings.counts_file, "w");
    if (file == NULL) return;
    fprintf(file, "%ld %ld %ld\n", allocations, io_calls, clock_looks);
    fclose(file);
}

/* The number of one more call of the sort; 0 in a forked copy, and before main(). */
static long counted(long* counter) {
    if (settings.process == 0 || settings.process != (pid_t)syscall(SYS_getpid)) return 0;
    return __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static int is_chosen(long count) {
    if (settings.at <= 0 || count == 0) return 0;
    return settings.for_ever ? count >= settings.at : count == settings.at;
}

/* Set while a fake library registers a destructor, for which the C library allocates. */
static __thread int fake_registers;

/* Whether the code at that address is the loader's, or of a library that stands for the driver, or of theirs.
 */
static int is_not_ours(const void* caller) {
    Dl_info info;
    if (fake_registers) return 1;
    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL) return 0;
    return strstr(info.dli_fname, "libfake_") != NULL || strstr(info.dli_fname, "libstdc++.so") != NULL ||
           strstr(info.dli_fname, "/ld-linux") != NULL;
}

int __cxa_thread_atexit_impl(void (*destroy)(void*), void* object, void* library) {
    int (*passed_on)(void (*)(void*), void*, void*);
    *(void**)&passed_on = dlsym(RTLD_NEXT, "__cxa_thread_atexit_impl");
    fake_registers = is_not_ours(library);
    const int result = passed_on(destroy, object, library);
    fake_registers = 0;
    return result;
}

int allocation_fails(const void* caller) {
    if (settings.process == 0 || is_not_ours(caller)) return 0;
    const long count = counted(&allocations);
    if (count > 0 && settings.stacks_file[0] != '\0') remember_stack(count);
    if (!is_chosen(count) || settings.mode != failing_allocations) return 0;
    errno = ENOMEM;
    return 1;
}

enum end next_io(int needs_space) {
    if (!is_chosen(counted(&io_calls))) return passes;
    if (settings.mode == tearing) return tears;
    if (settings.mode == killing) kill(settings.process, SIGKILL);
    if (settings.mode != failing_io && !(settings.mode == filling && needs_space)) return passes;
    errno = settings.mode == filling ? ENOSPC : settings.error;
    return fails;
}

int is_regular(int file) {
    struct stat status;
    return fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

void note(const char* call, const char* name, const char* other) {
    if (settings.trace < 0 || settings.process != (pid_t)syscall(SYS_getpid)) return;
    char line[2048];
    const int length = snprintf(line, sizeof line, "%s\t%s\t%s\n", call, name, other);
    syscall(SYS_write, settings.trace, line, length);
}

void note_file(const char* call, int file) {
    if (settings.trace < 0) return;
    char link[64];
    char name[1024];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, name, sizeof name - 1);
    name[length < 0 ? 0 : length] = '\0';
    note(call, name, "");
}

void die(void) { kill(settings.process, SIGKILL); }

long clock_offset_now(void) {
    if (settings.clock_offset_s == 0 && settings.counts_file[0] == '\0') return 0;
    return __atomic_add_fetch(&clock_looks, 1, __ATOMIC_RELAXED) >= settings.clock_at
               ? settings.clock_offset_s
               : 0;
}
