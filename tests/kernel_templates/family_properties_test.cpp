// What holds for every family, variant and device, over drawn problems: a new family is tested by existing.
// Its own tests hold what is special about it.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>
#include <string>

#include "kernel_templates/catalog.h"
#include "kernel_templates/source.h"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/drawn_cases.h"
#include "tests/support/allocation_count.h"

using namespace hone;

namespace {

constexpr int problems_a_family = 24;
constexpr std::size_t problems_per_space = 3;  // enumerating a space takes long: that of each third problem
constexpr std::size_t candidates_a_variant = 8;

const std::vector<Problem>& problems() {
    static const std::vector<Problem> all = [] {
        std::vector<Problem> drawn;
        for (const Family* family : families()) {
            const std::vector<Problem> own = test::drawn_problems(*family, problems_a_family);
            REQUIRE_MESSAGE(own.size() == problems_a_family, family->name);
            drawn.insert(drawn.end(), own.begin(), own.end());
        }
        return drawn;
    }();
    return all;
}

template <class Check>
void for_every_problem(Check check) {
    for (const Problem& problem : problems()) {
        INFO(to_string(problem));
        check(problem);
    }
}

template <class Check>
void for_every_problem_and_device(Check check) {
    for (const Problem& problem : problems()) test::for_every_device(problem, check);
}

struct Choice {
    Problem problem;
    Candidate candidate;
    DeviceTraits traits;
};

/// Every other device is the one that most variants are made for.
DeviceTraits device_of(std::size_t turn) {
    const std::span<const Arch> archs = supported_archs();
    return *representative_device(turn % 2 == 0 ? Arch{9, 0, true} : archs[turn / 2 % archs.size()]);
}

/// Allowed candidates, some of every variant.
const std::vector<Choice>& choices() {
    static const std::vector<Choice> all = [] {
        std::vector<Choice> spread;
        for (std::size_t turn = 0; turn * problems_per_space < problems().size(); ++turn) {
            const Problem& problem = problems()[turn * problems_per_space];
            const DeviceTraits traits = device_of(turn);
            for (const Variant* variant : problem.family->variants) {
                test::for_some_candidates(problem, *variant, traits, candidates_a_variant,
                                          [&](const Candidate& candidate) {
                                              spread.push_back({problem, candidate, traits});
                                          });
            }
        }
        return spread;
    }();
    return all;
}

template <class Check>
void for_every_candidate(Check check) {
    for (const auto& [problem, candidate, traits] : choices()) {
        INFO(to_string(problem) << ": " << to_string(candidate) << " on " << to_string(traits.arch()));
        check(problem, candidate, traits);
    }
}

Plan plan_of(const Problem& problem, const Candidate& candidate, const DeviceTraits& traits) {
    return candidate.variant->plan(problem, candidate.config, traits);
}

std::span<const Launch> launches_of(const Plan& plan) {
    return plan.launches.first(plan.launch_count);
}

std::span<const TensorMap> maps_of(const Plan& plan) {
    return plan.tensor_maps.first(plan.tensor_map_count);
}

std::span<const PlanValue> values_of(const Plan& plan) {
    return plan.values.first(plan.value_count);
}

std::span<const Substitution> substitutions_of(const Launch& launch) {
    return std::span(launch.substitutions).first(launch.substitution_count);
}

bool is_among(const Kernel* kernel, std::span<const Kernel> kernels) {
    const auto same_arg = [](const KernelArg& a, const KernelArg& b) {
        return a.kind == b.kind && a.index == b.index && std::string_view(a.name) == b.name;
    };
    return std::ranges::any_of(kernels, [&](const Kernel& one) {
        return std::string_view(one.name) == kernel->name &&
               std::ranges::equal(one.args, kernel->args, same_arg);
    });
}

/// Everything but the grid.
bool same_kernel(const Launch& a, const Launch& b) {
    return a.kernel == b.kernel && a.block == b.block && a.cluster == b.cluster &&
           a.shared_bytes == b.shared_bytes && a.programmatic == b.programmatic &&
           std::ranges::equal(substitutions_of(a), substitutions_of(b));
}

bool same_plan(const Plan& a, const Plan& b) {
    const auto same_launch = [](const Launch& one, const Launch& other) {
        return one.grid == other.grid && same_kernel(one, other);
    };
    return a.workspace_bytes == b.workspace_bytes && std::ranges::equal(maps_of(a), maps_of(b)) &&
           std::ranges::equal(values_of(a), values_of(b)) &&
           std::ranges::equal(launches_of(a), launches_of(b), same_launch);
}

std::int64_t threads_of(const Launch& launch) {
    return std::int64_t{launch.block.x} * launch.block.y * launch.block.z;
}

std::int64_t blocks_of_cluster(const Launch& launch) {
    return std::int64_t{launch.cluster.x} * launch.cluster.y * launch.cluster.z;
}

/// CUDA's limits of every device: CUDA C++ Programming Guide, "Compute Capabilities".
void check_sizes(const Launch& launch) {
    CHECK(launch.grid.x >= 1);
    CHECK(launch.grid.y >= 1);
    CHECK(launch.grid.z >= 1);
    CHECK(launch.grid.x < 1U << 31);
    CHECK(launch.grid.y <= 65535);
    CHECK(launch.grid.z <= 65535);
    CHECK(threads_of(launch) >= 1);
    CHECK(threads_of(launch) <= 1024);
    CHECK(launch.grid.x % launch.cluster.x == 0);
    CHECK(launch.grid.y % launch.cluster.y == 0);
    CHECK(launch.grid.z % launch.cluster.z == 0);
    CHECK(blocks_of_cluster(launch) <= 16);
}

void check_fits(const Launch& launch, const DeviceTraits& traits) {
    check_sizes(launch);
    CHECK(launch.shared_bytes <= traits.max_shared_bytes_per_block);
    CHECK((!launch.programmatic || traits.has_programmatic_launch()));
    CHECK((!launch.has_cluster() || traits.has_clusters()));
}

/// How many places there are that an argument of this kind may name.
std::size_t places(KernelArg::Kind kind, const Family& family, const Problem& problem, const Plan& plan) {
    using Kind = KernelArg::Kind;
    if (kind == Kind::pointer) return family.arguments(problem).size();
    if (kind == Kind::tensor_map) return static_cast<std::size_t>(plan.tensor_map_count);
    if (kind == Kind::value || kind == Kind::narrow_value) return static_cast<std::size_t>(plan.value_count);
    return family.scalars(problem).size();
}

/// Members have names of their own, and name what the call or the plan has.
void check_arguments(const Launch& launch, const Problem& problem, const Plan& plan) {
    REQUIRE(launch.kernel->args.size() <= max_kernel_args);
    std::set<std::string_view> names;
    for (const KernelArg& arg : launch.kernel->args) {
        INFO(launch.kernel->name << ": " << arg.name);
        CHECK(arg.index < places(arg.kind, *problem.family, problem, plan));
        CHECK(names.insert(arg.name).second);
    }
    for (const Substitution& taken : substitutions_of(launch)) {
        REQUIRE(taken.arg < launch.kernel->args.size());
        REQUIRE(taken.value < plan.value_count);
        const bool address = plan.values[taken.value].pointer != PlanValue::no_pointer;
        CHECK(address == (launch.kernel->args[taken.arg].kind == KernelArg::Kind::pointer));
    }
}

void check_dimension(const TensorMap& map, std::size_t dimension, std::size_t scalars) {
    const std::uint8_t extent = map.extent_scalars[dimension];
    CHECK((extent == TensorMap::fixed ? map.extents[dimension] >= 1 : extent < scalars));
    CHECK(map.box[dimension] >= 1);
    CHECK(map.box[dimension] <= 256);
    if (dimension == 0) return;
    const std::uint8_t stride = map.stride_scalars[dimension - 1];
    CHECK((stride == TensorMap::no_gaps || stride < scalars));
}

/// What cuTensorMapEncodeTiled asks for.
void check_map(const TensorMap& map, const Problem& problem) {
    REQUIRE(map.rank >= 2);
    REQUIRE(map.rank <= 5);
    CHECK(map.pointer < problem.family->arguments(problem).size());
    CHECK(map.offset_bytes >= 0);
    CHECK(map.offset_bytes % 16 == 0);
    const std::size_t scalars = problem.family->scalars(problem).size();
    for (std::size_t i = 0; i < map.rank; ++i) check_dimension(map, i, scalars);
    const std::int64_t row_bytes = map.box[0] * size_bytes(map.dtype);
    CHECK(row_bytes % 16 == 0);
    CHECK((map.swizzle_bytes == 0 || row_bytes <= map.swizzle_bytes));
}

void check_plan(const Plan& plan, const Problem& problem) {
    REQUIRE(plan.launch_count >= 1);
    const std::vector<Argument> arguments = problem.family->arguments(problem);
    for (const Launch& launch : launches_of(plan)) check_arguments(launch, problem, plan);
    for (std::size_t i = 0; i < maps_of(plan).size(); ++i) {
        const TensorMap& map = plan.tensor_maps[i];
        if (map.same_as != TensorMap::none) {
            CHECK(map.same_as < i);
        } else {
            check_map(map, problem);
        }
    }
    for (const PlanValue& value : values_of(plan))
        CHECK((value.pointer == PlanValue::no_pointer || value.pointer < std::ssize(arguments)));
    CHECK(plan.workspace_bytes >= 0);
    CHECK(
        (plan.workspace_bytes == 0 || std::ranges::count(arguments, Role::workspace, &Argument::role) == 1));
}

}  // namespace

TEST_CASE("text and problem are inverse to each other") {
    for_every_problem([](const Problem& problem) {
        CHECK(parse_problem(to_string(problem)) == problem);
        CHECK(parse_problem(*problem.family, static_text(problem) + ' ' + dynamic_text(problem)) == problem);
    });
}

TEST_CASE("the arguments of a call are those of the struct that kernels take, in its order") {
    for_every_problem([](const Problem& problem) {
        const Family& family = *problem.family;
        const std::size_t pointers = family.arguments(problem).size();
        const std::vector<ScalarArgument> scalars = family.scalars(problem);
        REQUIRE(family.call_args.size() == pointers + scalars.size());
        for (std::size_t i = 0; i < family.call_args.size(); ++i) {
            const KernelArg& arg = family.call_args[i];
            CHECK((arg.kind == KernelArg::Kind::pointer) == (i < pointers));
            CHECK(arg.index == (i < pointers ? i : i - pointers));
            // A pointer may go by another name where the problem's fields give it another meaning.
            if (i >= pointers) CHECK(arg.name == scalars[i - pointers].name);
        }
        for (const RowStride& stride : family.row_strides) {
            CHECK(stride.pointer < pointers);
            CHECK(stride.scalar < scalars.size());
        }
    });
}

TEST_CASE("a problem reads and writes something, within a tolerance, and its floors are finite") {
    for_every_problem([](const Problem& problem) {
        const std::vector<Argument> arguments = problem.family->arguments(problem);
        int outputs = 0;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            // Those that a problem does not have cross to the measuring worker, too.
            for (const std::int64_t extent : arguments[i].shape) CHECK(extent >= 1);
            if (!arguments[i].present) continue;
            CHECK(arguments[i].elements() >= (arguments[i].role == Role::workspace ? 0 : 1));
            if (arguments[i].role != Role::output) continue;
            ++outputs;
            const Tolerance tolerance = problem.family->tolerance(problem, static_cast<int>(i));
            CHECK(tolerance.relative_l2 >= 0);
            CHECK(std::isfinite(tolerance.relative_l2 + tolerance.max_abs + tolerance.max_rel));
        }
        CHECK(outputs >= 1);
        const Work work = problem.family->work(problem);
        CHECK(work.bytes > 0);
        CHECK(work.flops >= 0);
        CHECK(std::isfinite(work.bytes + work.flops));
    });
}

TEST_CASE("the reference fits every device and takes what the call and its plan have") {
    for_every_problem([](const Problem& problem) {
        const Plan plan = problem.family->reference_plan(problem);
        check_plan(plan, problem);
        for (const Launch& launch : launches_of(plan)) {
            CHECK(is_among(launch.kernel, problem.family->reference_kernels));
            check_fits(launch, *representative_device({7, 5, false}));
        }
    });
}

TEST_CASE("every problem has a fallback on every device, which obeys its own constraints") {
    for_every_problem_and_device([](const Problem& problem, const DeviceTraits& traits) {
        const std::optional<Candidate> candidate = fallback(problem, traits);
        REQUIRE(candidate);
        CHECK(why_not(problem, *candidate, traits) == "");
        const Plan plan = plan_of(problem, *candidate, traits);
        for (const Launch& launch : launches_of(plan)) check_fits(launch, traits);
    });
}

TEST_CASE("a plan launches kernels of its variant that fit the device") {
    for_every_candidate([](const Problem& problem, const Candidate& candidate, const DeviceTraits& traits) {
        const Plan plan = plan_of(problem, candidate, traits);
        check_plan(plan, problem);
        for (const Launch& launch : launches_of(plan)) {
            CHECK(is_among(launch.kernel, candidate.variant->kernels));
            check_fits(launch, traits);
        }
        CHECK((plan.tensor_map_count == 0 || traits.has_bulk_copy()));
    });
}

TEST_CASE("a plan is the same each time, and made without an allocation") {
    for_every_candidate([](const Problem& problem, const Candidate& candidate, const DeviceTraits& traits) {
        const std::uint64_t before = test::allocation_count();
        const Plan plan = plan_of(problem, candidate, traits);
        CHECK(test::allocation_count() == before);
        CHECK(same_plan(plan, plan_of(problem, candidate, traits)));
    });
}

TEST_CASE("kernels and their source do not depend on run-time fields, only grids do") {
    for_every_candidate([](const Problem& problem, const Candidate& candidate, const DeviceTraits& traits) {
        const Plan plan = plan_of(problem, candidate, traits);
        for (const std::uint8_t field : run_time_fields(*problem.family)) {
            const std::int64_t value = std::min<std::int64_t>(3, problem.family->fields[field].max);
            const Problem other = with(problem, field, value);
            const Plan its_plan = plan_of(other, candidate, traits);
            CHECK(std::ranges::equal(launches_of(plan), launches_of(its_plan), same_kernel));
            CHECK(render_constants(other, candidate) == render_constants(problem, candidate));
        }
    });
}

TEST_CASE("a workspace never shrinks when a size of the call grows") {
    for_every_candidate([](const Problem& problem, const Candidate& candidate, const DeviceTraits& traits) {
        const std::int64_t bytes = plan_of(problem, candidate, traits).workspace_bytes;
        for (const std::uint8_t field : run_time_fields(*problem.family)) {
            for (std::int64_t value = problem[field]; value > problem.family->fields[field].min; value /= 2) {
                const Problem smaller = with(problem, field, value);
                if (!problem.family->validate(smaller).empty()) continue;
                CHECK_MESSAGE(plan_of(smaller, candidate, traits).workspace_bytes <= bytes,
                              to_string(smaller));
            }
        }
    });
}

TEST_CASE("predictions are positive times, accesses powers of two") {
    for_every_candidate([](const Problem& problem, const Candidate& candidate, const DeviceTraits& traits) {
        const double us = candidate.variant->predict_us(problem, candidate.config, traits);
        CHECK(us > 0);
        CHECK(std::isfinite(us));
        const std::int64_t elements = candidate.variant->access_elements(problem, candidate.config);
        CHECK(elements >= 1);
        CHECK((elements & (elements - 1)) == 0);
    });
}

TEST_CASE("text and candidate are inverse to each other") {
    for_every_candidate([](const Problem& problem, const Candidate& candidate, const DeviceTraits&) {
        CHECK(parse_candidate(*problem.family, to_string(candidate)) == candidate);
    });
}

TEST_CASE("the ranked space is sorted, complete and without repeats") {
    for (const Family* family : families()) {
        const Problem problem = test::drawn_problems(*family, 1).at(0);
        INFO(to_string(problem));
        const DeviceTraits traits = *representative_device({9, 0, true});
        const std::vector<RankedCandidate> space = ranked_space(problem, traits);
        CHECK(std::ranges::is_sorted(space, {}, &RankedCandidate::predicted_us));
        std::size_t allowed_count = 0;
        for (const Variant* variant : family->variants) {
            const SpaceCount count = count_space(problem, *variant, traits);
            std::size_t rejected = 0;
            for (const std::size_t by_one : count.rejected_by) rejected += by_one;
            CHECK(count.declared == count.allowed + rejected);
            allowed_count += count.allowed;
        }
        CHECK(space.size() == allowed_count);
        std::set<std::string> names;
        for (const RankedCandidate& ranked : space) names.insert(to_string(ranked.candidate));
        CHECK(names.size() == space.size());
    }
}

TEST_CASE("tunables behind those that decide a constraint make no difference to it") {
    std::mt19937 random(11);
    const auto draw = [&](const Tunable& tunable) {
        return tunable.values.items[random() % tunable.values.count];
    };
    int compared = 0;
    for (const Problem& problem : problems()) {
        INFO(to_string(problem));
        const DeviceTraits traits = *representative_device({9, 0, true});
        for (const Variant* variant : problem.family->variants) {
            for (const Constraint& constraint : variant->constraints) {
                INFO(variant->name << ": " << constraint.reason);
                if (constraint.decided_by >= variant->tunables.size()) continue;
                int different = 0;
                for (int turn = 0; turn < 400; ++turn, ++compared) {
                    Config config;
                    for (std::size_t i = 0; i < variant->tunables.size(); ++i)
                        config[i] = draw(variant->tunables[i]);
                    Config other = config;
                    for (std::size_t i = constraint.decided_by; i < variant->tunables.size(); ++i)
                        other[i] = draw(variant->tunables[i]);
                    if (constraint.holds(problem, config, traits) != constraint.holds(problem, other, traits))
                        ++different;
                }
                CHECK(different == 0);
            }
        }
    }
    CHECK(compared > 10000);
}
