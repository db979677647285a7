/* stat() and its relatives are functions of the C library since glibc 2.33; before, a static library made
 * them of these, which every glibc has. Their first argument says which struct stat the caller means: 1 is
 * that of x86-64, where there has never been another. Of device numbers it is 0.
 */
#include <sys/stat.h>

#if __GLIBC_PREREQ(2, 33) && defined(__x86_64__)

#define HIDDEN __attribute__((visibility("hidden")))

enum { struct_version = 1, device_version = 0 };

int __xstat(int version, const char* path, struct stat* found);
int __lxstat(int version, const char* path, struct stat* found);
int __fxstat(int version, int file, struct stat* found);
int __fxstatat(int version, int folder, const char* path, struct stat* found, int flags);
int __xstat64(int version, const char* path, struct stat64* found);
int __lxstat64(int version, const char* path, struct stat64* found);
int __fxstat64(int version, int file, struct stat64* found);
int __xmknod(int version, const char* path, mode_t mode, dev_t* device);

HIDDEN int stat(const char* path, struct stat* found) { return __xstat(struct_version, path, found); }

HIDDEN int lstat(const char* path, struct stat* found) { return __lxstat(struct_version, path, found); }

HIDDEN int fstat(int file, struct stat* found) { return __fxstat(struct_version, file, found); }

HIDDEN int fstatat(int folder, const char* path, struct stat* found, int flags) {
    return __fxstatat(struct_version, folder, path, found, flags);
}

HIDDEN int stat64(const char* path, struct stat64* found) { return __xstat64(struct_version, path, found); }

HIDDEN int lstat64(const char* path, struct stat64* found) { return __lxstat64(struct_version, path, found); }

HIDDEN int fstat64(int file, struct stat64* found) { return __fxstat64(struct_version, file, found); }

HIDDEN int mknod(const char* path, mode_t mode, dev_t device) {
    return __xmknod(device_version, path, mode, &device);
}

#endif
