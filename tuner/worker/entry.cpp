#include "tuner/worker/entry.h"

#include <optional>

#include "runtime/workers/process.h"
#include "tuner/gpu/measure_worker.h"

namespace hone::tuner {

int worker_main(int argc, char** argv, runtime::CompileFunction compile) {
    std::optional<runtime::WorkerRole> role = runtime::settle_in(argc, argv);
    if (!role) return 2;
    if (role->kind == runtime::compile_kind) return runtime::serve_compiles(role->channel, compile);
    if (role->kind == measure_kind) return serve_measurements(role->channel);
    return 2;
}

}  // namespace hone::tuner
