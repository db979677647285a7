#include "runtime/system/standard_streams.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace hone::runtime;

namespace {

/// The number that a file gets in a process that begins without some of its streams.
int first_free(bool has_in, bool has_out, bool has_error) {
    const pid_t child = fork();
    if (child == 0) {
        if (!has_in) close(STDIN_FILENO);
        if (!has_out) close(STDOUT_FILENO);
        if (!has_error) close(STDERR_FILENO);
        open_standard_streams();
        const bool writable = write(STDOUT_FILENO, "", 0) == 0 && write(STDERR_FILENO, "", 0) == 0;
        _exit(writable ? open("/dev/zero", O_RDONLY) : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("no file takes the number of a stream that was closed") {
    for (int closed = 0; closed < 8; ++closed) {
        CAPTURE(closed);
        CHECK(first_free((closed & 1) == 0, (closed & 2) == 0, (closed & 4) == 0) > STDERR_FILENO);
    }
}
