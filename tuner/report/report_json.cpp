#include "tuner/report/report_json.h"

#include "tuner/report/report.h"

namespace hone::tuner {
namespace {

Json optional_trial(const std::optional<cache::Trial>& trial) {
    return trial ? as_json(*trial) : Json(nullptr);
}

Json as_json(const ProblemResult& result, const DeviceTraits& traits) {
    const std::optional<double> speedup = speedup_over_default(result);
    const std::optional<double> share =
        result.winner ? floor_share(result.problem, result.winner->timing.median_us, traits) : std::nullopt;
    Json json{{"problem", to_string(result.problem)},
              {"reused", result.reused},
              {"winner", optional_trial(result.winner)},
              {"default", optional_trial(result.fallback)},
              {"runner_up", optional_trial(result.runner_up)},
              {"speedup_over_default", speedup ? Json(*speedup) : Json(nullptr)},
              {"floor_share", share ? Json(*share) : Json(nullptr)},
              {"candidates", result.candidates},
              {"failed", result.failed},
              {"failure", result.failure}};
    add_ties(result.ties, json);
    return json;
}

}  // namespace

Json as_json(const cache::GpuKey& gpu) {
    return {{"name", gpu.name},
            {"compute_major", gpu.compute_major},
            {"compute_minor", gpu.compute_minor},
            {"sm_count", gpu.sm_count},
            {"memory_clock_mhz", gpu.memory_clock_mhz},
            {"mig_profile", gpu.mig_profile}};
}

Json as_json(const cache::Toolchain& toolchain) {
    return {{"driver", toolchain.driver}, {"nvrtc", toolchain.nvrtc}};
}

Json as_json(const cache::Trial& trial) {
    return {{"family", trial.key.family},
            {"static", trial.key.static_fields},
            {"dynamic", trial.key.dynamic_fields},
            {"gpu", as_json(trial.key.gpu)},
            {"toolchain", as_json(trial.toolchain)},
            {"candidate", trial.candidate},
            {"template_hash", trial.template_hash},
            {"status", name(trial.status)},
            {"stage", name(trial.stage)},
            {"provenance", name(trial.provenance)},
            {"winner", trial.winner},
            {"is_default", trial.is_default},
            {"median_us", trial.timing.median_us},
            {"p10_us", trial.timing.p10_us},
            {"p90_us", trial.timing.p90_us},
            {"samples", trial.timing.samples},
            {"sm_clock_mhz", trial.timing.sm_clock_mhz},
            {"incumbent_ratio", trial.timing.incumbent_ratio},
            {"registers", trial.resources.registers},
            {"shared_bytes", trial.resources.shared_bytes},
            {"spill_bytes", trial.resources.spill_bytes},
            {"energy_mj", trial.energy_mj},
            {"detail", trial.detail},
            {"created_at_ms", trial.created_at},
            {"tool_version", trial.tool_version},
            {"chain", trial.chain}};
}

void add_ties(const cache::Ties& ties, Json& object) {
    object["tied_with"] = Json::array();
    for (const cache::Trial& trial : ties.others) object["tied_with"].push_back(trial.candidate);
    object["tied_within"] = ties.within;
}

Json as_json(const ModelOperator& op) {
    return {{"role", op.role}, {"family", op.family}, {"shape", op.shape}, {"count", op.count}};
}

Json as_json(const TunedOperator& op) {
    return {{"role", op.role},
            {"problem", to_string(op.problem)},
            {"count", op.count},
            {"of_steps", op.of_steps}};
}

Json as_json(const DeviceTraits& traits) {
    return {{"name", traits.name},
            {"compute_major", traits.compute_major},
            {"compute_minor", traits.compute_minor},
            {"sm_count", traits.sm_count},
            {"l2_bytes", traits.l2_bytes},
            {"memory_bytes", traits.memory_bytes},
            {"memory_bytes_per_s", traits.memory_bytes_per_s},
            {"sm_clock_khz", traits.sm_clock_khz}};
}

std::string_view name(StopReason reason) {
    switch (reason) {
        case StopReason::finished: return "finished";
        case StopReason::answered: return "answered";
        case StopReason::budget: return "budget";
        case StopReason::interrupted: return "interrupted";
    }
    return "finished";
}

Json as_json(const CoverResult& cover) {
    const auto share = [](const std::optional<double>& loss) { return loss ? Json(*loss) : Json(nullptr); };
    return {{"family", cover.problem.family->name},
            {"static", static_text(cover.problem)},
            {"sizes", cover.sizes},
            {"kernels", cover.kernels},
            {"mean_loss", share(cover.mean_loss)},
            {"worst_loss", share(cover.worst_loss)},
            {"failure", cover.failure}};
}

Json as_json(const TuneResult& result, const DeviceTraits& traits) {
    Json problems = Json::array();
    for (const ProblemResult& problem : result.problems) problems.push_back(as_json(problem, traits));
    return {{"stopped", name(result.stopped)},
            {"compiles", result.compiles},
            {"measurements", result.measurements},
            {"elapsed_ms", result.elapsed.count()},
            {"measuring_ms", result.measuring.count()},
            {"waiting_ms", result.waiting.count()},
            {"lost", result.lost},
            {"problems", std::move(problems)},
            {"covers", list_json(result.covers)}};
}

}  // namespace hone::tuner
