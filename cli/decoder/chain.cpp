#include "cli/decoder/chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/decoder/loaded_model.h"

namespace hone::cli {
namespace {

using decoder::ChainTimes;
using decoder::Part;
using tuner::Align;

/// The same step with a prompt beside the sequences.
struct WithPrompt {
    std::int64_t tokens = 0;
    double us = 0;
    std::vector<std::pair<Part, double>> parts{};
};

/// One step of so many sequences, with what it could take at best.
struct Measured {
    std::int64_t sequences = 0;
    ChainTimes times;
    double floor_us = 0;
    double bytes_per_s = 0;
    std::vector<WithPrompt> with_prompts{};

    [[nodiscard]] double floor_of(std::int64_t bytes) const {
        return 1e6 * static_cast<double>(bytes) / bytes_per_s;
    }
    /// Of what all layers do: everything but the embedding, the last norm, the head and sampling.
    [[nodiscard]] double layers_us() const {
        double us = times.step_us;
        for (const ChainTimes::OfPart& part : times.parts) {
            if (part.part == Part::embedding || part.part >= Part::last_norm) us -= part.us;
        }
        return us;
    }
};

Json json_of(const std::vector<std::pair<Part, double>>& parts) {
    Json json = Json::array();
    for (const auto& [part, us] : parts) json.push_back({{"part", decoder::name(part)}, {"us", us}});
    return json;
}

std::string text_of(const std::vector<std::pair<Part, double>>& parts) {
    std::vector<std::string> words;
    for (const auto& [part, us] : parts)
        words.push_back(fmt::format("{} {}", decoder::name(part), tuner::format_us(us)));
    return fmt::format("{}", fmt::join(words, "; "));
}

Json json_of(const Measured& measured, std::int64_t layers) {
    const ChainTimes& times = measured.times;
    Json parts = Json::array();
    for (const ChainTimes::OfPart& part : times.parts)
        parts.push_back({{"part", decoder::name(part.part)},
                         {"us", part.us},
                         {"floor_us", measured.floor_of(part.bytes)}});
    Json with_prompts = Json::array();
    for (const WithPrompt& step : measured.with_prompts)
        with_prompts.push_back(
            {{"prompt_tokens", step.tokens}, {"us", step.us}, {"parts", json_of(step.parts)}});
    return {
        {"sequences", measured.sequences}, {"step_us", times.step_us},
        {"floor_us", measured.floor_us},   {"layer_us", measured.layers_us() / static_cast<double>(layers)},
        {"launches", times.launches},      {"idle_launches_us", times.idle_us},
        {"parts", std::move(parts)},       {"with_prompts", std::move(with_prompts)}};
}

std::string text_of(const Measured& measured, std::int64_t layers, const tuner::Page& page) {
    const ChainTimes& times = measured.times;
    std::string text = fmt::format(
        "{} sequence{}: {} us, byte floor {} us ({}); a layer {} us\n"
        "  {} launches; as many that find nothing to do take {} us ({})\n",
        measured.sequences, measured.sequences == 1 ? "" : "s", tuner::format_us(times.step_us),
        tuner::format_us(measured.floor_us), tuner::format_share(measured.floor_us / times.step_us),
        tuner::format_us(measured.layers_us() / static_cast<double>(layers)), times.launches,
        tuner::format_us(times.idle_us), tuner::format_share(times.idle_us / times.step_us));
    tuner::Table table(
        {{"part"}, {"us of the step", Align::right}, {"of it", Align::right}, {"byte floor", Align::right}});
    for (const ChainTimes::OfPart& part : times.parts)
        table.add({std::string(decoder::name(part.part)), tuner::format_us(part.us),
                   tuner::format_share(part.us / times.step_us),
                   part.bytes > 0 ? tuner::format_us(measured.floor_of(part.bytes)) : ""});
    text += table.render(page, "  ");
    for (const WithPrompt& step : measured.with_prompts)
        text += fmt::format("  with {} tokens of a prompt {} us ({:.2f}x): {}\n", step.tokens,
                            tuner::format_us(step.us), step.us / times.step_us, text_of(step.parts));
    return text + '\n';
}

/// What the decoder has room for: the sequences and the longest prompt.
std::int64_t step_tokens(const ChainOptions& options) {
    std::int64_t tokens = decoder::ModelOptions().max_step_tokens;
    for (const std::int64_t prompt : options.prompt_tokens)
        tokens = std::max(tokens, prompt + std::ranges::max(options.sequences));
    return tokens;
}

std::int64_t context(const ChainOptions& options) {
    std::int64_t tokens = timed_context(options.model, options.kv_len);
    for (const std::int64_t prompt : options.prompt_tokens) tokens = std::max(tokens, prompt + 1);
    return tokens;
}

std::vector<WithPrompt> with_prompts(const ChainOptions& options, std::int64_t sequences,
                                     decoder::Forward& forward) {
    std::vector<WithPrompt> steps;
    for (const std::int64_t tokens : options.prompt_tokens) {
        const decoder::StepLoad load{
            .sequences = sequences, .keys = sequences * options.kv_len, .prompt_tokens = tokens};
        steps.push_back({tokens, forward.step_us(load, options.rounds)});
        if (tokens > 1) steps.back().parts = forward.step_parts_us(load, options.rounds);
    }
    return steps;
}

}  // namespace

Outcome bench_chain(const ChainOptions& options, const Console& console) {
    const auto model = loaded_model(
        {.made_up = options.model,
         .quantize = options.quantize,
         .kv_dtype = options.kv_dtype,
         .device = options.device,
         .max_sequences = std::ranges::max(options.sequences) + (options.prompt_tokens.empty() ? 0 : 1),
         .max_context = context(options),
         .max_step_tokens = step_tokens(options)},
        console);
    const DeviceTraits traits = runtime::device_traits(model->gpu().driver(), options.device);
    const std::int64_t layers = options.model.num_hidden_layers;
    Outcome outcome{.data = {{"model", options.model.name},
                             {"gpu", traits.name},
                             {"kv_len", options.kv_len},
                             {"layers", layers},
                             {"weights_s", model->start_times().weights_s},
                             {"kernels_s", model->start_times().kernels_s},
                             {"steps", Json::array()}}};
    outcome.text = fmt::format(
        "{}, {} layers, {} keys a sequence, on {}; ready after {:.2f} s for weights, {:.2f} s for kernels "
        "and graphs\n"
        "A part's time is what the step takes longer than without it.\n\n",
        options.model.name, layers, options.kv_len, traits.name, model->start_times().weights_s,
        model->start_times().kernels_s);
    for (const std::int64_t sequences : options.sequences) {
        const Measured measured{
            .sequences = sequences,
            .times = model->forward().chain_times(sequences, options.kv_len, options.rounds),
            .floor_us = 1e6 * static_cast<double>(model->floor_bytes(sequences, options.kv_len)) /
                        traits.memory_bytes_per_s,
            .bytes_per_s = traits.memory_bytes_per_s,
            .with_prompts = with_prompts(options, sequences, model->forward())};
        outcome.data["steps"].push_back(json_of(measured, layers));
        outcome.text += text_of(measured, layers, console.page);
    }
    return outcome;
}

}  // namespace hone::cli
