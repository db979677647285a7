// What to tune: a model or a single operator, expanded to problems. A model file says nothing about kernels;
// operators.h says which operators a transformer layer runs and at which sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernel_templates/device_traits.h"
#include "kernel_templates/family.h"
#include "tuner/models/operators.h"

namespace hone::tuner {

/// An operator of the model that has problems in the workload.
struct TunedOperator {
    std::string role;
    Problem problem;  ///< at the fewest tokens
    std::int64_t count = 1;
    bool of_steps = false;
};

/// What processes ran of a problem, as a capture says.
struct CapturedUse {
    Problem problem;
    std::uint64_t calls = 0;
    double share = 0;  ///< of the time of all calls
};

struct Workload {
    std::string name;
    /// Without duplicates. Grouped by static part, sizes ascending; of a capture those first that take the
    /// most time.
    std::vector<Problem> problems;
    std::vector<TunedOperator> tuned;           ///< whom the problems of a model are for
    std::vector<ModelOperator> without_family;  ///< listed to the user as "not tuned with a model yet"
    std::vector<std::string> warnings{};        ///< what of the model is not understood
    std::vector<CapturedUse> captured{};        ///< of a capture, in the order of `problems`
    std::vector<Problem> chosen_in_steps{};     ///< those of `problems` that a race alone says nothing of
};

/// A family of this build computes it.
[[nodiscard]] bool has_kernel(const ModelOperator& op);

/// A sentence each about what is not understood or has no kernel.
[[nodiscard]] std::vector<std::string> warnings_of(const Workload& workload);

[[nodiscard]] Workload model_workload(const Model& model, const WorkloadOptions& options);
/// Problems of one static part stand together, sizes ascending: images are shared and a neighbour's winner is
/// known.
void group_by_static_part(std::vector<Problem>& problems);
/// What is raced problem by problem.
void drop_chosen_in_steps(Workload& workload);
/// Operators of steps that the decoder calls on none of these GPUs: attention that appends, where that is no
/// more than its parts one after the other. Returns the number of problems that were dropped.
std::size_t drop_not_called(Workload& workload, std::span<const DeviceTraits> devices);
/// One operator or family by its name (kernel_templates/names.h): `fields` as spelled_fields takes them. They
/// say all sizes of a call, or all but one, which is then tuned at the options' token counts; those have a
/// default for families with one size. An operator's families that have no such fields are left out. Throws
/// ConfigError.
[[nodiscard]] Workload operator_workload(const std::string& op, const std::string& fields,
                                         const WorkloadOptions& options);

}  // namespace hone::tuner
