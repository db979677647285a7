// What tests of models from CodedFolder ask of them on the fake driver: how they are opened, one step, what
// it launched, and what stands on the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/engine/running_model.h"
#include "runtime/quantize/small_floats.h"
#include "tests/support/fake_machine.h"

namespace hone::test {

inline decoder::ModelOptions options_of(const std::filesystem::path& folder) {
    return {.folder = folder,
            .max_sequences = 2,
            .max_context = 64,
            .max_step_tokens = 64,
            .runtime = {.use_cache = false}};
}

/// A prompt, of three tokens or of up to two pages; the token that is drawn behind it.
inline int step_of(decoder::RunningModel& model, const decoder::Draw& draw = {},
                   const std::vector<int>& tokens = {1, 2, 3}) {
    const std::vector<int> pages{0, 1};
    const decoder::StepPart part{.request = 1, .begin = 0, .tokens = tokens, .pages = pages, .samples = true};
    model.forward().start({&part, 1}, std::vector{draw});
    return model.forward().finish().front();
}

/// More tokens than kernels make codes of themselves.
inline std::vector<int> many_tokens() { return std::vector<int>(24, 1); }

/// The problem of the norm between attention and network, as a step of one token has it.
inline std::string norm_problem(decoder::RunningModel& model) {
    for (const decoder::StepKernel& kernel : model.forward().step_kernels({})) {
        if (kernel.part == decoder::Part::network_norm) return static_text(kernel.problem);
    }
    return {};
}

/// Launches from number `from` on whose kernel's name has this part.
inline std::vector<FakeLaunch> all_launches_of(const FakeMachine& machine, int from, std::string_view part) {
    std::vector<FakeLaunch> found;
    for (int i = from; i < machine.launch_count(); ++i) {
        const FakeLaunch& launch = *machine.launch(i);
        if (std::string_view(launch.kernel).find(part) != std::string_view::npos) found.push_back(launch);
    }
    return found;
}
/// How many these are.
inline int launches_of(const FakeMachine& machine, int from, std::string_view part) {
    return static_cast<int>(all_launches_of(machine, from, part).size());
}

/// `count` elements from an address on the GPU on.
template <class T>
std::vector<T> on_gpu(const decoder::RunningModel& model, CUdeviceptr address, std::size_t count) {
    const runtime::CurrentContext current(model.gpu().driver(), model.gpu().context());
    return runtime::download(model.gpu().driver(), runtime::DeviceSpan<T>{address, count});
}
template <class T>
std::vector<T> on_gpu(const decoder::RunningModel& model, const void* from, std::size_t count) {
    return on_gpu<T>(model, static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(from)), count);
}
/// One of a weight's or a bias's numbers, of fp16.
inline float half_at(const decoder::RunningModel& model, const void* from, std::size_t index) {
    return runtime::decode_half(on_gpu<std::uint16_t>(model, from, index + 1).back());
}

}  // namespace hone::test
