// What tests of attention on the fake machine share.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hone/attention.h"
#include "runtime/operators/attention_problem.h"
#include "tests/runtime/launched_parameters.h"
#include "tests/runtime/operator_under_test.h"

namespace hone::test {

/// Rows that are no whole 16 bytes: the plain variants everywhere, whose kernels take the call's pointers and
/// scalars in order.
inline constexpr Attention small{.heads = 6,
                                 .kv_heads = 2,
                                 .head_dim = 7,
                                 .max_batch = 4,
                                 .max_q_len = 40,
                                 .max_kv_len = 100,
                                 .dtype = Dtype::fp32};

[[nodiscard]] inline AttentionArgs usual_args() {
    return {.q = address(1),
            .k = address(2),
            .v = address(3),
            .out = address(4),
            .workspace = address(5),
            .scale = 0.25F};
}

/// Parameters of the first kernel of the calls since clear(), as many as `arguments` lists, in its order.
class NotingMachine {
  public:
    explicit NotingMachine(std::span<const KernelArg> arguments) {
        clear();
        noted_arguments = arguments;
        driver->cuLaunchKernel = note_launch;
        driver->cuLaunchKernelEx = note_extended_launch;
    }
    [[nodiscard]] const std::vector<std::uint64_t>& launched() const { return noted; }
    void clear() { noted.clear(); }

    FakeMachine machine;
    std::shared_ptr<runtime::Driver> driver =
        std::const_pointer_cast<runtime::Driver>(runtime::Driver::load());

  private:
    static void note(void** parameters) {
        if (noted.empty()) noted = launched_parameters(noted_arguments, parameters);
    }
    static CUresult note_launch(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                unsigned, CUstream, void** parameters, void**) {
        note(parameters);
        return CUDA_SUCCESS;
    }
    static CUresult note_extended_launch(const CUlaunchConfig*, CUfunction, void** parameters, void**) {
        note(parameters);
        return CUDA_SUCCESS;
    }

    static inline std::vector<std::uint64_t> noted;
    static inline std::span<const KernelArg> noted_arguments;
};

[[nodiscard]] constexpr std::uint64_t mebibyte(std::uint64_t count) { return count << 20; }
[[nodiscard]] constexpr std::uint64_t bits(float value) { return Scalar::of(value).bits; }

}  // namespace hone::test
