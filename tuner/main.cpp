// The hone program: one of its own worker processes, or the command line.
#include "runtime/system/standard_streams.h"
#include "tuner/cli/cli.h"
#include "tuner/worker/entry.h"

int main(int argc, char** argv) {
    hone::runtime::open_standard_streams();
    if (hone::tuner::is_worker(argc, argv)) return hone::tuner::worker_main(argc, argv);
    return hone::cli::run(argc, argv);
}
