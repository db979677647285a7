#include "tuner/measure/wire.h"

#include <algorithm>
#include <cmath>

#include "cache/validator.h"

namespace hone::tuner {
namespace {

/// Pointers, scalars, tensor maps or values of a plan that a kernel argument may name, whichever are most.
constexpr int most_indices =
    std::max({max_call_pointers, max_call_scalars, max_tensor_maps, max_plan_values});

using nlohmann::json;

json to_json(const Dim3& dim) { return json::array({dim.x, dim.y, dim.z}); }

Dim3 dim_from_json(const json& object, const char* name) {
    const json& values = list(object, name);
    if (values.size() != 3) throw ProtocolError("a dimension without three extents");
    std::array<std::uint32_t, 3> extents{};
    for (std::size_t i = 0; i < 3; ++i) {
        if (!values[i].is_number_unsigned()) throw ProtocolError("a dimension that is not a number");
        const auto value = values[i].get<std::uint64_t>();
        if (value > 0xFFFFFFFFU) throw ProtocolError("a dimension that is too large");
        extents[i] = static_cast<std::uint32_t>(value);
    }
    return {extents[0], extents[1], extents[2]};
}

/// An index or enumerator below `limit`.
int bounded(const json& object, const char* name, int limit) {
    const int value = small_integer(object, name);
    if (value < 0 || value >= limit)
        throw ProtocolError(std::string("message member '") + name + "' is out of range");
    return value;
}

json to_json(const Launch& launch) {
    json args = json::array();
    for (const KernelArg& arg : launch.kernel->args)
        args.push_back({{"kind", static_cast<int>(arg.kind)}, {"index", int{arg.index}}});
    json substitutions = json::array();
    for (std::size_t i = 0; i < launch.substitution_count; ++i) {
        const Substitution& taken = launch.substitutions[i];
        substitutions.push_back({{"arg", int{taken.arg}}, {"value", int{taken.value}}});
    }
    return {{"kernel", launch.kernel->name},
            {"grid", to_json(launch.grid)},
            {"block", to_json(launch.block)},
            {"cluster", to_json(launch.cluster)},
            {"shared_bytes", std::int64_t{launch.shared_bytes}},
            {"programmatic", launch.programmatic},
            {"args", std::move(args)},
            {"substitutions", std::move(substitutions)}};
}

const Kernel* kernel_from_json(const json& object, NameTable& names) {
    const json& args = list(object, "args");
    if (args.size() > max_kernel_args) throw ProtocolError("a kernel with too many arguments");
    std::vector<KernelArg> kept;
    for (const json& arg : args) {
        kept.push_back({static_cast<KernelArg::Kind>(
                            bounded(arg, "kind", static_cast<int>(KernelArg::Kind::narrow_value) + 1)),
                        static_cast<std::uint8_t>(bounded(arg, "index", most_indices)), ""});
    }
    return names.keep(text(object, "kernel"), std::move(kept));
}

Launch launch_from_json(const json& object, NameTable& names) {
    Launch launch{.kernel = kernel_from_json(object, names),
                  .grid = dim_from_json(object, "grid"),
                  .block = dim_from_json(object, "block"),
                  .cluster = dim_from_json(object, "cluster"),
                  .shared_bytes = static_cast<std::uint32_t>(bounded(object, "shared_bytes", 1 << 30)),
                  .programmatic = boolean(object, "programmatic")};
    const json& substitutions = list(object, "substitutions");
    if (substitutions.size() > launch.substitutions.size())
        throw ProtocolError("a launch with too many substitutions");
    for (const json& taken : substitutions) {
        launch.substitutions[launch.substitution_count++] = {
            static_cast<std::uint8_t>(bounded(taken, "arg", static_cast<int>(launch.kernel->args.size()))),
            static_cast<std::uint8_t>(bounded(taken, "value", max_plan_values))};
    }
    return launch;
}

json to_json(const TensorMap& map) {
    return {{"pointer", int{map.pointer}},
            {"dtype", name(map.dtype)},
            {"rank", int{map.rank}},
            {"swizzle_bytes", int{map.swizzle_bytes}},
            {"extents", map.extents},
            {"stride_scalars", map.stride_scalars},
            {"box", map.box},
            {"offset_bytes", map.offset_bytes},
            {"extent_scalars", map.extent_scalars},
            {"same_as", int{map.same_as}}};
}

/// Numbers below `limit`, as many as the array has.
template <class T, std::size_t size>
std::array<T, size> numbers_from_json(const json& object, const char* name, std::uint64_t limit) {
    const json& values = list(object, name);
    std::array<T, size> numbers{};
    if (values.size() != size)
        throw ProtocolError(std::string("message member '") + name + "' has a wrong length");
    for (std::size_t i = 0; i < size; ++i) {
        if (!values[i].is_number_unsigned() || values[i].get<std::uint64_t>() >= limit)
            throw ProtocolError(std::string("message member '") + name + "' is out of range");
        numbers[i] = static_cast<T>(values[i].get<std::uint64_t>());
    }
    return numbers;
}

/// Indices of scalars, or `none`.
template <std::size_t size>
std::array<std::uint8_t, size> scalars_from_json(const json& object, const char* name, std::uint8_t none) {
    const auto scalars = numbers_from_json<std::uint8_t, size>(object, name, 256);
    for (const std::uint8_t scalar : scalars) {
        if (scalar >= max_call_scalars && scalar != none)
            throw ProtocolError(std::string("message member '") + name + "' is out of range");
    }
    return scalars;
}

TensorMap tensor_map_from_json(const json& object) {
    const std::optional<Dtype> dtype = dtype_from_name(text(object, "dtype"));
    if (!dtype) throw ProtocolError("a tensor map of an unknown dtype");
    TensorMap map{.pointer = static_cast<std::uint8_t>(bounded(object, "pointer", max_call_pointers)),
                  .dtype = *dtype,
                  .rank = static_cast<std::uint8_t>(bounded(object, "rank", 6)),
                  .swizzle_bytes = static_cast<std::uint8_t>(bounded(object, "swizzle_bytes", 129)),
                  .extents = numbers_from_json<std::uint32_t, 5>(object, "extents", std::uint64_t{1} << 32),
                  .stride_scalars = scalars_from_json<4>(object, "stride_scalars", TensorMap::no_gaps),
                  .box = numbers_from_json<std::uint16_t, 5>(object, "box", 257),
                  .offset_bytes = integer(object, "offset_bytes"),
                  .extent_scalars = scalars_from_json<5>(object, "extent_scalars", TensorMap::fixed),
                  .same_as = static_cast<std::uint8_t>(bounded(object, "same_as", 256))};
    if (map.rank < 2) throw ProtocolError("a tensor map of less than two dimensions");
    if (map.offset_bytes < 0) throw ProtocolError("a tensor map before its pointer");
    return map;
}

json to_json(const PlanValue& value) { return {{"number", value.number}, {"pointer", int{value.pointer}}}; }

PlanValue plan_value_from_json(const json& object) {
    const int pointer = small_integer(object, "pointer");
    if (pointer < PlanValue::no_pointer || pointer >= max_call_pointers)
        throw ProtocolError("a plan's value behind a pointer that is none");
    return {.number = integer(object, "number"), .pointer = static_cast<std::int8_t>(pointer)};
}

json to_json(const Argument& argument) {
    return {{"name", argument.name},
            {"role", static_cast<int>(argument.role)},
            {"dtype", name(argument.dtype)},
            {"shape", argument.shape},
            {"fill", static_cast<int>(argument.fill)},
            {"fill_scale", argument.fill_scale},
            {"fill_offset", argument.fill_offset},
            {"present", argument.present},
            {"appended", argument.appended}};
}

std::array<std::int64_t, 4> shape_from_json(const json& object) {
    const json& values = list(object, "shape");
    std::array<std::int64_t, 4> shape{};
    if (values.size() != shape.size()) throw ProtocolError("a shape without four extents");
    double elements = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (!values[i].is_number_integer()) throw ProtocolError("an extent that is not a number");
        shape[i] = values[i].get<std::int64_t>();
        elements *= static_cast<double>(shape[i]);
        if (shape[i] < 1 || elements > 1e13) throw ProtocolError("an extent that is out of range");
    }
    return shape;
}

Argument argument_from_json(const json& object, NameTable& names) {
    const std::optional<Dtype> dtype = dtype_from_name(text(object, "dtype"));
    if (!dtype) throw ProtocolError("an argument of an unknown element type");
    return {.name = names.keep(text(object, "name")),
            .role = static_cast<Role>(bounded(object, "role", 4)),
            .dtype = *dtype,
            .shape = shape_from_json(object),
            .fill = static_cast<Fill>(bounded(object, "fill", static_cast<int>(Fill::uneven_ramp) + 1)),
            .fill_scale = number(object, "fill_scale"),
            .fill_offset = number(object, "fill_offset"),
            .present = boolean(object, "present"),
            .appended = boolean(object, "appended")};
}

json traits_json(const DeviceTraits& traits) {
    return {{"name", traits.name},
            {"compute_major", traits.compute_major},
            {"compute_minor", traits.compute_minor},
            {"sm_count", traits.sm_count},
            {"max_threads_per_sm", traits.max_threads_per_sm},
            {"max_blocks_per_sm", traits.max_blocks_per_sm},
            {"registers_per_sm", traits.registers_per_sm},
            {"shared_bytes_per_sm", traits.shared_bytes_per_sm},
            {"max_shared_bytes_per_block", traits.max_shared_bytes_per_block},
            {"l2_bytes", traits.l2_bytes},
            {"memory_bytes", traits.memory_bytes},
            {"memory_bytes_per_s", traits.memory_bytes_per_s},
            {"sm_clock_khz", traits.sm_clock_khz}};
}

constexpr bool within(std::int64_t value, std::int64_t low, std::int64_t high) {
    return value >= low && value <= high;
}

/// Plans and predictions divide by these numbers and multiply them. The widest ranges that keep both defined:
/// a block has up to 1024 threads, each of which needs a register.
bool is_plausible(const DeviceTraits& traits) {
    constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
    return within(traits.compute_major, 1, 99) && within(traits.compute_minor, 0, 99) &&
           within(traits.sm_count, 1, 1 << 14) && within(traits.max_threads_per_sm, 1, 1 << 14) &&
           within(traits.max_blocks_per_sm, 1, 1 << 12) && within(traits.registers_per_sm, 1024, 1 << 24) &&
           within(traits.shared_bytes_per_sm, 1, 1 << 30) &&
           within(traits.max_shared_bytes_per_block, 0, 1 << 30) && within(traits.l2_bytes, 0, most_bytes) &&
           within(traits.memory_bytes, 0, most_bytes) && traits.memory_bytes_per_s >= 0 &&
           traits.memory_bytes_per_s <= 1e18 && within(traits.sm_clock_khz, 0, 100'000'000);
}

DeviceTraits traits_from_json(const json& object) {
    DeviceTraits traits{.name = text(object, "name"),
                        .compute_major = small_integer(object, "compute_major"),
                        .compute_minor = small_integer(object, "compute_minor"),
                        .sm_count = small_integer(object, "sm_count"),
                        .max_threads_per_sm = small_integer(object, "max_threads_per_sm"),
                        .max_blocks_per_sm = small_integer(object, "max_blocks_per_sm"),
                        .registers_per_sm = small_integer(object, "registers_per_sm"),
                        .shared_bytes_per_sm = integer(object, "shared_bytes_per_sm"),
                        .max_shared_bytes_per_block = integer(object, "max_shared_bytes_per_block"),
                        .l2_bytes = integer(object, "l2_bytes"),
                        .memory_bytes = integer(object, "memory_bytes"),
                        .memory_bytes_per_s = number(object, "memory_bytes_per_s"),
                        .sm_clock_khz = small_integer(object, "sm_clock_khz")};
    if (!is_plausible(traits)) throw ProtocolError("a device that no GPU is: a number is out of range");
    return traits;
}

}  // namespace

const Kernel* NameTable::keep(std::string name, std::vector<KernelArg> args) {
    OwnedKernel& owned = kernels_.emplace_back();
    owned.args = std::move(args);
    owned.kernel = {keep(std::move(name)).c_str(), owned.args};
    return &owned.kernel;
}

json to_json(const cache::GpuKey& key) {
    return {{"name", key.name},
            {"compute_major", key.compute_major},
            {"compute_minor", key.compute_minor},
            {"sm_count", key.sm_count},
            {"memory_clock_mhz", key.memory_clock_mhz},
            {"mig_profile", key.mig_profile}};
}

cache::GpuKey gpu_key_from_json(const json& object) {
    return {.name = text(object, "name"),
            .compute_major = small_integer(object, "compute_major"),
            .compute_minor = small_integer(object, "compute_minor"),
            .sm_count = small_integer(object, "sm_count"),
            .memory_clock_mhz = small_integer(object, "memory_clock_mhz"),
            .mig_profile = text(object, "mig_profile")};
}

json to_json(const DeviceInfo& info) {
    return {{"traits", traits_json(info.traits)},
            {"gpu", to_json(info.gpu)},
            {"driver", info.toolchain.driver},
            {"nvrtc", info.toolchain.nvrtc},
            {"ordinal", info.ordinal}};
}

DeviceInfo device_info_from_json(const json& object) {
    return {.traits = traits_from_json(member(object, "traits")),
            .gpu = gpu_key_from_json(member(object, "gpu")),
            .toolchain = {.driver = text(object, "driver"), .nvrtc = text(object, "nvrtc")},
            .ordinal = small_integer(object, "ordinal"),
            .uuid = {}};
}

json to_json(const Plan& plan) {
    json launches = json::array();
    for (int i = 0; i < plan.launch_count; ++i)
        launches.push_back(to_json(plan.launches[static_cast<std::size_t>(i)]));
    json maps = json::array();
    for (int i = 0; i < plan.tensor_map_count; ++i)
        maps.push_back(to_json(plan.tensor_maps[static_cast<std::size_t>(i)]));
    json values = json::array();
    for (int i = 0; i < plan.value_count; ++i)
        values.push_back(to_json(plan.values[static_cast<std::size_t>(i)]));
    return {{"launches", std::move(launches)},
            {"tensor_maps", std::move(maps)},
            {"values", std::move(values)},
            {"workspace_bytes", plan.workspace_bytes}};
}

Plan plan_from_json(const json& object, NameTable& names) {
    const json& launches = list(object, "launches");
    Plan plan;
    if (launches.empty() || launches.size() > plan.launches.size())
        throw ProtocolError("a plan without launches");
    for (std::size_t i = 0; i < launches.size(); ++i) plan.launches[i] = launch_from_json(launches[i], names);
    plan.launch_count = static_cast<int>(launches.size());
    const json& maps = list(object, "tensor_maps");
    if (maps.size() > plan.tensor_maps.size()) throw ProtocolError("a plan with too many tensor maps");
    for (std::size_t i = 0; i < maps.size(); ++i) {
        plan.tensor_maps[i] = tensor_map_from_json(maps[i]);
        if (const std::uint8_t other = plan.tensor_maps[i].same_as; other != TensorMap::none && other >= i)
            throw ProtocolError("a tensor map that is the same as a later one");
    }
    plan.tensor_map_count = static_cast<int>(maps.size());
    const json& values = list(object, "values");
    if (values.size() > plan.values.size()) throw ProtocolError("a plan with too many values");
    for (std::size_t i = 0; i < values.size(); ++i) plan.values[i] = plan_value_from_json(values[i]);
    plan.value_count = static_cast<int>(values.size());
    plan.workspace_bytes = integer(object, "workspace_bytes");
    if (plan.workspace_bytes < 0) throw ProtocolError("a workspace of negative size");
    return plan;
}

json to_json(const ProblemSetup& setup) {
    json arguments = json::array();
    for (const Argument& argument : setup.arguments) arguments.push_back(to_json(argument));
    json tolerances = json::array();
    for (const Tolerance& t : setup.tolerances) {
        tolerances.push_back(
            {{"relative_l2", t.relative_l2}, {"max_abs", t.max_abs}, {"max_rel", t.max_rel}});
    }
    json scalars = json::array();
    for (const Scalar scalar : setup.scalars) scalars.push_back({{"bits", scalar.bits}});
    return {{"arguments", std::move(arguments)},      {"tolerances", std::move(tolerances)},
            {"scalars", std::move(scalars)},          {"reference", to_json(setup.reference_plan)},
            {"bytes_per_call", setup.bytes_per_call}, {"seed", setup.seed}};
}

ProblemSetup problem_setup_from_json(const json& object, NameTable& names) {
    ProblemSetup setup{.arguments = {},
                       .tolerances = {},
                       .scalars = {},
                       .reference_plan = plan_from_json(member(object, "reference"), names),
                       .bytes_per_call = number(object, "bytes_per_call"),
                       .seed = bits(object, "seed")};
    for (const json& item : list(object, "arguments"))
        setup.arguments.push_back(argument_from_json(item, names));
    for (const json& item : list(object, "scalars")) setup.scalars.push_back({bits(item, "bits")});
    for (const json& item : list(object, "tolerances")) {
        setup.tolerances.push_back(
            {number(item, "relative_l2"), number(item, "max_abs"), number(item, "max_rel")});
    }
    if (setup.arguments.size() > max_call_pointers || setup.scalars.size() > max_call_scalars ||
        setup.tolerances.size() != setup.arguments.size()) {
        throw ProtocolError("a problem with too many arguments or without their tolerances");
    }
    return setup;
}

json to_json(const CandidateCall& call) { return {{"image", call.image}, {"plan", to_json(call.plan)}}; }

CandidateCall candidate_call_from_json(const json& object, NameTable& names) {
    return {.image = text(object, "image"), .plan = plan_from_json(member(object, "plan"), names)};
}

json to_json(const Verdict& verdict) {
    return {
        {"status", name(verdict.status)}, {"detail", verdict.detail}, {"relative_l2", verdict.relative_l2}};
}

Verdict verdict_from_json(const json& object) {
    const std::optional<cache::TrialStatus> status = cache::trial_status_from_name(text(object, "status"));
    if (!status) throw ProtocolError("an unknown trial status");
    return {
        .status = *status, .detail = text(object, "detail"), .relative_l2 = number(object, "relative_l2")};
}

json to_json(const Samples& samples) {
    return {{"verdict", to_json(samples.verdict)},
            {"us", samples.us},
            {"energy_mj", samples.energy_mj},
            {"sm_clock_mhz", samples.sm_clock_mhz}};
}

Samples samples_from_json(const json& object) {
    Samples samples{.verdict = verdict_from_json(member(object, "verdict")),
                    .us = {},
                    .energy_mj = number(object, "energy_mj"),
                    .sm_clock_mhz = small_integer(object, "sm_clock_mhz")};
    // What the cache would take for damage.
    if (samples.sm_clock_mhz < 0 || samples.sm_clock_mhz > cache::limits::sm_clock_mhz.high)
        throw ProtocolError("a clock that is none");
    if (samples.energy_mj > cache::limits::real) throw ProtocolError("an energy that is none");
    for (const json& item : list(object, "us")) {
        if (!item.is_number()) throw ProtocolError("a sample that is not a number");
        const auto us = item.get<double>();
        if (!(us >= 0 && us <= cache::limits::real)) throw ProtocolError("a sample that is no time");
        samples.us.push_back(us);
    }
    return samples;
}

json to_json(const Sustained& sustained) {
    return {{"verdict", to_json(sustained.verdict)}, {"us", sustained.us},
            {"power_w", sustained.power_w},          {"counted", sustained.counted},
            {"seconds", sustained.seconds},          {"calls", sustained.calls}};
}

Sustained sustained_from_json(const json& object) {
    const Sustained sustained{.verdict = verdict_from_json(member(object, "verdict")),
                              .us = number(object, "us"),
                              .power_w = number(object, "power_w"),
                              .counted = boolean(object, "counted"),
                              .seconds = number(object, "seconds"),
                              .calls = integer(object, "calls")};
    for (const double value : {sustained.us, sustained.power_w, sustained.seconds}) {
        if (!std::isfinite(value) || value < 0) throw ProtocolError("a time or power that is none");
    }
    return sustained;
}

}  // namespace hone::tuner
