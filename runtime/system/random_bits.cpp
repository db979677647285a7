#include "runtime/system/random_bits.h"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace hone::runtime {

// std::random_device would do, but needs arc4random() of glibc 2.36 where it is built with that.
std::uint64_t random_bits() {
    std::uint64_t bits = 0;
    while (::getrandom(&bits, sizeof bits, 0) != sizeof bits) {
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "random numbers");
    }
    return bits;
}

}  // namespace hone::runtime
