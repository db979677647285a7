#include "runtime/system/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace hone::runtime {

void open_standard_streams() noexcept {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
        if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
        if (open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY) != stream) _exit(1);
    }
}

}  // namespace hone::runtime
