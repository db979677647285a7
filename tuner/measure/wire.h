// What travels between the GPU measurer and its worker, as JSON. The worker knows no families: it is told
// arguments, plans and tolerances as data. Every *_from_json throws ProtocolError on anything that does not
// fit.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/measure/measurer.h"
#include "tuner/worker/channel.h"

namespace hone::tuner {

/// Owns the names and kernels that plans and arguments only point to.
class NameTable {
  public:
    [[nodiscard]] const std::string& keep(std::string name) { return *names_.insert(std::move(name)).first; }
    /// A kernel of this name and these arguments, which have no names of their own.
    [[nodiscard]] const Kernel* keep(std::string name, std::vector<KernelArg> args);

  private:
    struct OwnedKernel {
        std::vector<KernelArg> args;
        Kernel kernel;
    };
    std::set<std::string> names_;
    std::deque<OwnedKernel> kernels_;
};

/// Everything a worker needs to set up a problem.
struct ProblemSetup {
    std::vector<Argument> arguments;
    std::vector<Tolerance> tolerances;  ///< one an argument; only those of outputs count
    std::vector<Scalar> scalars;
    Plan reference_plan;
    double bytes_per_call = 0;  ///< decides how many input sets exceed three times L2
    std::uint64_t seed = 0;
};

/// One loaded image with its launches; `image` names it among those sent to this worker.
struct CandidateCall {
    std::string image;
    Plan plan;
};

[[nodiscard]] nlohmann::json to_json(const DeviceInfo& info);
[[nodiscard]] DeviceInfo device_info_from_json(const nlohmann::json& object);

[[nodiscard]] nlohmann::json to_json(const Plan& plan);
[[nodiscard]] Plan plan_from_json(const nlohmann::json& object, NameTable& names);

[[nodiscard]] nlohmann::json to_json(const ProblemSetup& setup);
[[nodiscard]] ProblemSetup problem_setup_from_json(const nlohmann::json& object, NameTable& names);

[[nodiscard]] nlohmann::json to_json(const CandidateCall& call);
[[nodiscard]] CandidateCall candidate_call_from_json(const nlohmann::json& object, NameTable& names);

[[nodiscard]] nlohmann::json to_json(const Verdict& verdict);
[[nodiscard]] Verdict verdict_from_json(const nlohmann::json& object);

[[nodiscard]] nlohmann::json to_json(const Samples& samples);
[[nodiscard]] Samples samples_from_json(const nlohmann::json& object);

[[nodiscard]] nlohmann::json to_json(const Sustained& sustained);
[[nodiscard]] Sustained sustained_from_json(const nlohmann::json& object);

[[nodiscard]] nlohmann::json to_json(const cache::GpuKey& key);
[[nodiscard]] cache::GpuKey gpu_key_from_json(const nlohmann::json& object);

}  // namespace hone::tuner
