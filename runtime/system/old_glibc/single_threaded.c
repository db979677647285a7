/* The C++ library counts references without atomic instructions while this says that there is one thread,
 * which glibc does since 2.32. Here it never says so.
 */
#include <features.h>

#if __GLIBC_PREREQ(2, 32)

__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

#endif
