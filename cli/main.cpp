// The hone program: one of its own worker processes, or the command line.
#include <csignal>

#include "cli/cli.h"
#include "runtime/system/out_of_memory.h"
#include "runtime/system/standard_streams.h"
#include "tuner/worker/entry.h"

namespace {

/// Static objects allocate, and are made before main() could catch anything.
[[gnu::constructor(101)]] void before_static_objects() { hone::runtime::end_in_words_without_memory(); }

}  // namespace

int main(int argc, char** argv) {
    // A file that may not grow on, by ulimit -f, is an error to report as a full disk is, not the end of this
    // process. Workers begin here, too.
    std::signal(SIGXFSZ, SIG_IGN);
    hone::runtime::static_objects_are_made();
    hone::runtime::open_standard_streams();
    if (hone::runtime::is_worker(argc, argv)) return hone::tuner::worker_main(argc, argv);
    return hone::cli::run(argc, argv);
}
