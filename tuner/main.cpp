// The hone program: one of its own worker processes, or the command line.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "runtime/system/standard_streams.h"
#include "tuner/cli/cli.h"
#include "tuner/worker/entry.h"

namespace {

/// Some functions of libraries (CLI11, nlohmann/json) cannot pass on that memory is exhausted: a failure like
/// others, not a crash. Nothing is left to repair, for the cache survives being killed.
[[noreturn]] void end_without_memory() {
    try {
        if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
        constexpr std::string_view words = "error: out of memory\n";
        (void)!write(STDERR_FILENO, words.data(), words.size());
        _exit(EXIT_FAILURE);
    } catch (const std::exception& other) {
        std::fprintf(stderr, "%s\n", other.what());
    } catch (...) {
    }
    std::abort();
}

}  // namespace

int main(int argc, char** argv) {
    std::set_terminate(end_without_memory);
    hone::runtime::open_standard_streams();
    if (hone::tuner::is_worker(argc, argv)) return hone::tuner::worker_main(argc, argv);
    return hone::cli::run(argc, argv);
}
