// hone score: the perplexity of a text.
#include <fmt/format.h>

#include <algorithm>
#include <numbers>

#include "cli/command_list.h"
#include "cli/decoder/loaded_model.h"
#include "cli/decoder/weight_format.h"
#include "decoder/engine/text_score.h"
#include "decoder/tokenizer/tokenizer.h"
#include "runtime/system/text_file.h"

namespace hone::cli {
namespace {

constexpr std::int64_t rows_at_once = 64;  // of logits

struct Options {
    std::string model;
    std::string file;
    WeightFormatOptions format;
    KvCacheOption kv_cache;
    int device = 0;
    std::int64_t window = 0;  ///< 0: the context
};

Outcome run(const Options& options, const Console& console) {
    const decoder::Tokenizer tokenizer = decoder::Tokenizer::load(options.model);
    const std::string text = runtime::read_text_file(options.file, decoder::max_text_bytes);
    const std::vector<int> ids = tokenizer.encode(text, {.add_special_tokens = false});
    const auto model = loaded_model({.folder = options.model,
                                     .quantize = options.format.chosen(),
                                     .kv_dtype = options.kv_cache.chosen(),
                                     .device = options.device,
                                     .max_sequences = rows_at_once,
                                     .max_context = options.window},
                                    console);
    const std::int64_t window = model->capacity().context;
    const decoder::TextScore score = decoder::score(*model, ids, tokenizer.bos_id(), window);
    const auto tokens = static_cast<double>(score.log_probabilities.size());
    const double bits_a_byte =
        score.nats_a_token() * tokens / std::numbers::ln2 / static_cast<double>(text.size());
    return {.data = {{"model", options.model},
                     {"tokens", score.log_probabilities.size()},
                     {"window", window},
                     {"perplexity", score.perplexity()},
                     {"nats_a_token", score.nats_a_token()},
                     {"bits_a_byte", bits_a_byte},
                     {"log_probabilities", score.log_probabilities}},
            .text = fmt::format("perplexity {:.4f} a token, of {} in windows of {}; {:.4f} bits a byte\n",
                                score.perplexity(), score.log_probabilities.size(), window, bits_a_byte)};
}

}  // namespace

Runner declare_score(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    declare_folder(app, options->model);
    app.add_option("FILE", options->file, "The text").required().type_name("");
    options->format.declare(app);
    options->kv_cache.declare(app);
    app.add_option("--window", options->window,
                   "Tokens that are read together, each window on its own (default: the context)")
        .range(2, 1 << 20);
    declare_gpu(app, options->device);
    return [options](const Console& console) { return run(*options, console); };
}

}  // namespace hone::cli
