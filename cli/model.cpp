// hone model: what is understood of a model file, on one screen.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "cli/command_list.h"
#include "cli/targets.h"
#include "tuner/errors.h"
#include "tuner/models/known_models.h"
#include "tuner/report/model_report.h"

namespace hone::cli {
namespace {

Outcome list_known() {
    const std::vector<std::string> names = tuner::known_models();
    return {.data = {{"known_models", names}}, .text = fmt::format("{}\n", fmt::join(names, "\n"))};
}

/// Weights that Hone does not know are a warning here, and the layers those of a dense model.
std::vector<tuner::ModelOperator> operators_of(tuner::Model& model, tuner::WorkloadOptions options) {
    if (options.weights || !model.quantization) return tuner::operators(model, options);
    try {
        return tuner::operators(model, options);
    } catch (const tuner::ConfigError& error) {
        options.weights.emplace();
        std::vector<tuner::ModelOperator> list = tuner::operators(model, options);
        model.warnings.emplace_back(error.what());
        return list;
    }
}

Outcome model(const Target& target, const Console& console) {
    if (target.model.empty()) return list_known();
    tuner::Model model = tuner::read_model(target.model);
    const tuner::WorkloadOptions options = target.options();
    if (options.dtype) model.dtype = *options.dtype;
    const std::vector<tuner::ModelOperator> operators = operators_of(model, options);
    for (const std::string& warning : model.warnings) console.warn(warning);
    return {.data = tuner::model_json(model, operators),
            .text = tuner::model_text(model, operators, console.page)};
}

}  // namespace

Runner declare_model(const Arguments& app) {
    const auto target = std::make_shared<Target>();
    app.add_option("MODEL", target->model, "A known model, or a path to a Hugging Face config.json")
        .type_name("");
    target->declare_variant(app);
    return [target](const Console& console) { return model(*target, console); };
}

}  // namespace hone::cli
