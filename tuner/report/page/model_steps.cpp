#include "tuner/report/page/model_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "kernel_templates/text.h"
#include "runtime/operators/attention_problem.h"
#include "tuner/models/workload.h"

namespace hone::tuner {
namespace {

/// Of the sizes at which models are tuned, those that `hone tune` takes for all operators.
constexpr std::array<std::int64_t, 8> usual_tokens{1, 4, 16, 64, 256, 1024, 4096, 8192};

struct Step {
    std::string_view kind;
    std::int64_t tokens = 0;
    std::int64_t kv_len = 0;
};

class ModelSteps {
  public:
    ModelSteps(const Model& model, const WorkloadOptions& options, ResultColumns& columns)
        : model_(model), options_(options), columns_(columns), last_token_(operators_at(1)) {}

    Json at(std::int64_t tokens) const {
        Json steps = Json::array();
        const std::vector<ModelOperator> operators = operators_at(tokens);
        if (model_.encoder) {
            steps.push_back(step_json({"text", tokens}, operators));
            return steps;
        }
        if (tokens <= most_sequences) {
            for (const std::int64_t kv_len : kv_lens(operators))
                steps.push_back(step_json({"decode", tokens, kv_len}, operators));
        }
        if (tokens > runtime::most_decode_queries) steps.push_back(step_json({"prompt", tokens}, operators));
        return steps;
    }

  private:
    std::vector<ModelOperator> operators_at(std::int64_t tokens) const {
        WorkloadOptions at = options_;
        at.tokens = {tokens};
        return tuner::operators(model_, at);
    }

    static Problem problem_of(const ModelOperator& op, const std::string& sizes) {
        return parse_problem(fmt::format("{} {} {}", op.family, op.fields, sizes)).value_or(Problem());
    }

    static std::int64_t kv_len_of(const std::string& sizes) {
        for (const KeyValue& size : parse_key_values(sizes, nullptr).value_or(std::vector<KeyValue>())) {
            if (size.key == "kv_len") return parse_integer(size.value).value_or(0);
        }
        return 0;
    }

    /// One step without a length where attention has no kernel.
    static std::set<std::int64_t> kv_lens(const std::vector<ModelOperator>& operators) {
        std::set<std::int64_t> lengths;
        for (const ModelOperator& op : operators) {
            if (op.family != "attention_decode") continue;
            for (const std::string& sizes : op.sizes) lengths.insert(kv_len_of(sizes));
        }
        return lengths.empty() ? std::set<std::int64_t>{0} : lengths;
    }

    static bool takes_part(const ModelOperator& op, const Step& step) {
        if (op.use != Use::all) return false;
        if (op.family == "attention_prefill") return step.kind != "decode";
        return op.family != "attention_decode" || step.kind == "decode";
    }

    /// Of a prompt, only the last token becomes logits.
    const ModelOperator& sized_for(const ModelOperator& op, const Step& step) const {
        if (step.kind != "prompt" || (op.role != "language head" && op.family != "sample")) return op;
        const auto same = std::ranges::find(last_token_, op.role, &ModelOperator::role);
        return same == last_token_.end() ? op : *same;
    }

    Json place_of(const ModelOperator& op, const Step& step) const {
        if (!has_kernel(op)) return nullptr;
        for (const std::string& sizes : op.sizes) {
            if (op.family == "attention_decode" && kv_len_of(sizes) != step.kv_len) continue;
            const Problem problem = problem_of(op, sizes);
            if (problem.family == nullptr) break;
            return columns_.problem(op.family, static_text(problem), dynamic_text(problem));
        }
        return nullptr;
    }

    Json step_json(const Step& step, const std::vector<ModelOperator>& operators) const {
        Json rows = Json::array();
        for (const ModelOperator& op : operators) {
            if (!takes_part(op, step)) continue;
            rows.push_back({{"role", op.role},
                            {"family", op.family},
                            {"count", op.count},
                            {"problem", place_of(sized_for(op, step), step)}});
        }
        return {{"kind", step.kind},
                {"tokens", step.tokens},
                {"kv_len", step.kv_len > 0 ? Json(step.kv_len) : Json(nullptr)},
                {"operators", std::move(rows)}};
    }

    const Model& model_;
    const WorkloadOptions& options_;
    ResultColumns& columns_;
    std::vector<ModelOperator> last_token_;
};

}  // namespace

Json model_steps(const Model& model, const WorkloadOptions& options, ResultColumns& columns) {
    const ModelSteps steps(model, options, columns);
    std::vector<std::int64_t> tokens(usual_tokens.begin(), usual_tokens.end());
    if (!options.tokens.empty()) tokens = token_counts(options);
    Json list = Json::array();
    for (const std::int64_t count : tokens) {
        for (Json& step : steps.at(count)) list.push_back(std::move(step));
    }
    return {{"name", model.name}, {"steps", std::move(list)}};
}

}  // namespace hone::tuner
