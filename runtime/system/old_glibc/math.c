/* exp() and its relatives have a version of glibc 2.29 that no longer calls a hook for errors; the one before
 * gives the same numbers.
 */
#include <math.h>

#if __GLIBC_PREREQ(2, 29) && defined(__x86_64__)

#define HIDDEN __attribute__((visibility("hidden")))

double old_exp(double x);
double old_exp2(double x);
double old_log(double x);
double old_log2(double x);
double old_pow(double x, double y);

__asm__(
    ".symver old_exp, exp@GLIBC_2.2.5\n"
    ".symver old_exp2, exp2@GLIBC_2.2.5\n"
    ".symver old_log, log@GLIBC_2.2.5\n"
    ".symver old_log2, log2@GLIBC_2.2.5\n"
    ".symver old_pow, pow@GLIBC_2.2.5\n");

HIDDEN double exp(double x) { return old_exp(x); }

HIDDEN double exp2(double x) { return old_exp2(x); }

HIDDEN double log(double x) { return old_log(x); }

HIDDEN double log2(double x) { return old_log2(x); }

HIDDEN double pow(double x, double y) { return old_pow(x, y); }

#endif
