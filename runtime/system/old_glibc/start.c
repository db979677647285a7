/* The first function of a program. Since glibc 2.34 the C library runs a program's constructors; before, it
 * called a function that was linked into the program, and does so still for programs that ask for the older
 * version and give it one. Destructors are the loader's affair in both.
 */
#include <features.h>
#include <stddef.h>

#if __GLIBC_PREREQ(2, 34) && defined(__x86_64__)

typedef void (*constructor)(int count, char** arguments, char** environment);

__asm__(".symver old_libc_start_main, __libc_start_main@GLIBC_2.2.5");
int old_libc_start_main(int (*main)(int, char**, char**), int count, char** arguments, constructor init,
                        void (*fini)(void), void (*loader_fini)(void), void* stack_end);

/* From crti.o, and from the linker. */
extern void _init(void) __attribute__((visibility("hidden")));
extern constructor __init_array_start[] __attribute__((visibility("hidden")));
extern constructor __init_array_end[] __attribute__((visibility("hidden")));

static void run_constructors(int count, char** arguments, char** environment) {
    const size_t constructors = (size_t)(__init_array_end - __init_array_start);
    _init();
    for (size_t i = 0; i < constructors; ++i) __init_array_start[i](count, arguments, environment);
}

__attribute__((visibility("hidden"))) int __libc_start_main(int (*main)(int, char**, char**), int count,
                                                            char** arguments, constructor init,
                                                            void (*fini)(void), void (*loader_fini)(void),
                                                            void* stack_end) {
    (void)init;
    (void)fini;
    return old_libc_start_main(main, count, arguments, run_constructors, NULL, loader_fini, stack_end);
}

#endif
