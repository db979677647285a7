// The test program as its own compile worker.
#include "runtime/compile/compile_worker.h"
#include "runtime/workers/entry.h"

extern "C" int hone_test_worker(int argc, char** argv) {
    auto role = hone::runtime::settle_in(argc, argv);
    return role ? hone::runtime::serve_compiles(role->channel) : 2;
}
