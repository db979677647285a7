#include "tuner/gpu/input_sets.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/ceil_div.h"

namespace hone::tuner {
namespace {

constexpr std::int64_t alignment = 256;
constexpr double memory_share = 0.9;
constexpr int max_sets = 64;
constexpr int least_calls = 10;  // in a sample whose calls overlap

std::uint64_t seed_of(std::uint64_t seed, int set, std::size_t argument) {
    return seed +
           0x9E3779B97F4A7C15ULL * (static_cast<std::uint64_t>(set) * max_call_pointers + argument + 1);
}

CUdeviceptr at(CUdeviceptr base, std::int64_t offset) { return base + static_cast<CUdeviceptr>(offset); }

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

}  // namespace

int set_count(double bytes_per_call, std::int64_t l2_bytes, std::int64_t free_bytes,
              std::int64_t bytes_per_set) {
    const double wanted = std::ceil(3.0 * static_cast<double>(l2_bytes) / std::max(1.0, bytes_per_call));
    const std::int64_t fitting = free_bytes / std::max<std::int64_t>(1, bytes_per_set);
    const double count =
        std::clamp(wanted, static_cast<double>(verified_sets), static_cast<double>(max_sets));
    return static_cast<int>(std::min<double>(count, static_cast<double>(std::max<std::int64_t>(0, fitting))));
}

bool InputSets::is_output(std::size_t argument) const {
    return arguments_[argument].present && arguments_[argument].role == Role::output;
}

bool InputSets::is_input(std::size_t argument) const {
    const Role role = arguments_[argument].role;
    return arguments_[argument].present && (role == Role::input || role == Role::weight);
}

bool InputSets::has_appended() const {
    return std::ranges::any_of(inputs_, [&](std::size_t i) { return arguments_[i].appended; });
}

void InputSets::lay_out() {
    set_bytes_ = 0;
    output_bytes_ = 0;
    reference_bytes_ = 0;
    snapshot_bytes_ = 0;
    outputs_.clear();
    inputs_.clear();
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
        slots_[i] = {};
        if (is_input(i)) {
            inputs_.push_back(i);
            slots_[i] = {.offset = set_bytes_, .bytes = arguments_[i].bytes()};
            set_bytes_ += round_up(slots_[i].bytes, alignment);
        }
        if (!is_output(i)) continue;
        outputs_.push_back(i);
        slots_[i] = {.offset = output_bytes_ + guard_bytes, .bytes = arguments_[i].bytes()};
        output_bytes_ += round_up(slots_[i].bytes + 2 * guard_bytes, alignment);
        reference_offsets_[i] = reference_bytes_;
        reference_bytes_ += round_up(arguments_[i].elements() * std::int64_t{sizeof(float)}, alignment);
        snapshot_offsets_[i] = snapshot_bytes_;
        snapshot_bytes_ += round_up(slots_[i].bytes, alignment);
    }
}

void InputSets::reserve(std::int64_t bytes) {
    if (static_cast<std::int64_t>(arena_.bytes()) >= bytes) return;
    arena_ = {};
    arena_ = runtime::DeviceBuffer<std::byte>(device_.driver(), static_cast<std::size_t>(bytes));
}

void InputSets::prepare(const ProblemSetup& setup) {
    arguments_ = setup.arguments;
    tolerances_ = setup.tolerances;
    scalars_ = setup.scalars;
    lay_out();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    device_.check(device_.driver().cuMemGetInfo(&free_bytes, &total_bytes), "asking for free memory");
    const std::int64_t fixed = output_bytes_ + snapshot_bytes_ + verified_sets * reference_bytes_;
    const double usable = memory_share * static_cast<double>(free_bytes + arena_.bytes());
    count_ = set_count(setup.bytes_per_call, device_.info().traits.l2_bytes,
                       static_cast<std::int64_t>(usable) - fixed, set_bytes_);
    if (count_ < verified_sets) device_.check(CUDA_ERROR_OUT_OF_MEMORY, "two input sets and their reference");
    const int passes = reads_weights() ? (least_calls + count_ - 1) / count_ : 1;
    calls_ = count_ * passes;
    reserve(fixed + count_ * set_bytes_);
    seed_ = setup.seed;
    fill_inputs();
    fill_guards();
}

/// Weights that exceed a good part of L2, and eight times everything else.
bool InputSets::reads_weights() const {
    std::int64_t weights = 0;
    std::int64_t others = 0;
    for (const Argument& argument : arguments_) {
        if (!argument.present || argument.role == Role::workspace) continue;
        (argument.role == Role::weight ? weights : others) += argument.bytes();
    }
    return weights > device_.info().traits.l2_bytes / 4 && weights > 8 * others;
}

void InputSets::fill_inputs() const {
    for (int set = 0; set < count_; ++set) {
        for (const std::size_t i : inputs_) {
            harness_.fill(address(set, i), arguments_[i], seed_of(seed_, set, i));
        }
    }
}

void InputSets::warm_inputs() {
    if (unread_.bytes() == 0) unread_ = runtime::DeviceBuffer<std::uint64_t>(device_.driver(), 1);
    harness_.checksum(arena_.address(), count_ * set_bytes_, unread_.address());
}

Call InputSets::call(int set) const {
    Call call;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
        if (slots_[i].offset >= 0) call.pointers[i] = pointer(address(set, i));
        if (arguments_[i].present && arguments_[i].role == Role::workspace) {
            call.pointers[i] = pointer(workspace_address());
        }
    }
    std::ranges::copy(scalars_, call.scalars.begin());
    return call;
}

Call InputSets::reference_call(int set) const {
    Call reference = call(set);
    for (const std::size_t i : outputs_) reference.pointers[i] = pointer(reference_address(set, i));
    return reference;
}

CUdeviceptr InputSets::address(int set, std::size_t argument) const {
    return at(arena_.address(), (is_output(argument) ? count_ : set) * set_bytes_ + slots_[argument].offset);
}

CUdeviceptr InputSets::reference_address(int set, std::size_t argument) const {
    return at(arena_.address(),
              count_ * set_bytes_ + output_bytes_ + set * reference_bytes_ + reference_offsets_[argument]);
}

CUdeviceptr InputSets::snapshot_address(std::size_t argument) const {
    return at(arena_.address(), count_ * set_bytes_ + output_bytes_ + verified_sets * reference_bytes_ +
                                    snapshot_offsets_[argument]);
}

CUdeviceptr InputSets::workspace_address() const {
    return workspace_.address() == 0 ? 0 : at(workspace_.address(), guard_bytes);
}

void InputSets::reserve_workspace(std::int64_t bytes) {
    const auto wanted = static_cast<std::size_t>(bytes + 2 * guard_bytes);
    if (bytes == 0 || workspace_.bytes() >= wanted) return;
    workspace_ = {};
    ++workspace_moves_;
    workspace_ = runtime::DeviceBuffer<std::byte>(device_.driver(), wanted);
}

void InputSets::size_workspace(std::int64_t bytes) {
    workspace_bytes_ = bytes;
    if (bytes == 0) return;
    reserve_workspace(bytes);
    memset8(workspace_address(), poison, bytes);
    guard(workspace_address(), bytes);
}

void InputSets::memset8(CUdeviceptr where, std::uint8_t value, std::int64_t bytes) const {
    device_.check(
        device_.driver().cuMemsetD8Async(where, value, static_cast<std::size_t>(bytes), device_.stream()),
        "filling memory");
}

void InputSets::guard(CUdeviceptr data, std::int64_t bytes) const {
    memset8(at(data, -guard_bytes), guard_pattern, guard_bytes);
    memset8(at(data, bytes), guard_pattern, guard_bytes);
}

void InputSets::poison_outputs() const {
    for (const std::size_t i : outputs_) memset8(address(0, i), poison, slots_[i].bytes);
}

void InputSets::fill_guards() const {
    for (const std::size_t i : outputs_) guard(address(0, i), slots_[i].bytes);
}

}  // namespace hone::tuner
