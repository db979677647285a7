#include "cli/decoder/loaded_model.h"

#include <algorithm>

#include "cli/progress.h"

namespace hone::cli {

void declare_folder(const Arguments& app, std::string& folder) {
    app.add_option(
           "FOLDER", folder,
           "A Hugging Face model: config.json, tokenizer, and safetensors of numbers or of codes: hone "
           "quantize's, GPTQ, AWQ, FP8")
        .required()
        .type_name("");
}

void declare_gpu(const Arguments& app, int& device) {
    app.add_option("--gpu", device, "Number of the GPU (default: 0)").range(0, 1023);
}

std::unique_ptr<decoder::RunningModel> loaded_model(decoder::ModelOptions options, const Console& console) {
    ProgressDisplay display(console, {.problems = "MB", .candidates = "GB", .are_alike = true});
    options.on_weights = [&](std::int64_t done, std::int64_t all) {
        display.update({.problems_done = static_cast<std::size_t>(done >> 20),
                        .problems_total = static_cast<std::size_t>(all >> 20),
                        .candidates_done = static_cast<std::size_t>(done >> 30),
                        .candidates_total = static_cast<std::size_t>(all >> 30),
                        .current = "weights"});
    };
    return std::make_unique<decoder::RunningModel>(options);
}

std::int64_t timed_context(const models::Model& model, std::int64_t kv_len) {
    const std::int64_t length = decoder::graph_length(kv_len);
    const std::int64_t known = model.max_position_embeddings;
    return known == 0 ? length : std::max(kv_len, std::min(length, known));
}

}  // namespace hone::cli
