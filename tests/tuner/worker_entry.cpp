// The test program as its own worker process: measures like any other, and compiles planted kernels besides
// the catalog's.
#include "tests/tuner/planted.h"
#include "tuner/worker/entry.h"

extern "C" int hone_test_worker(int argc, char** argv) {
    return hone::tuner::worker_main(argc, argv, &hone::test::compile_planted);
}
