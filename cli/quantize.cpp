// hone quantize: a checkpoint with its linear layers packed as codes of 4 or 8 bits. Needs no GPU.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "checkpoints/pack/quantize_checkpoint.h"
#include "cli/command_list.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/targets.h"
#include "cli/value_types.h"
#include "runtime/system/short_text.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

using checkpoints::LayerReport;
using checkpoints::QuantizeReport;

struct Options {
    std::string checkpoint;
    std::string output;
    std::string format;
    std::string dtype;
    bool no_search = false;
    checkpoints::QuantizeRequest request;
};

constexpr std::array<std::string_view, 2> dtype_names{"fp16", "bf16"};

checkpoints::QuantizeRequest request_of(const Options& options) {
    checkpoints::QuantizeRequest request = options.request;
    request.format = static_cast<QuantFormat>(chosen("--format", options.format, quant_format_names));
    request.search = !options.no_search;
    if (!options.dtype.empty())
        request.dtype = dtype_from_name(dtype_names[chosen("--dtype", options.dtype, dtype_names)]);
    const bool is_w4 = request.format == QuantFormat::w4a16;
    if (is_w4 || (!request.zeros && request.search)) return request;
    throw Failure(
        ExitCode::usage,
        {"bad_option", fmt::format("{} goes with --format w4a16", request.zeros ? "--zeros" : "--no-search"),
         ""});
}

tuner::Progress as_progress(const checkpoints::QuantizeProgress& progress) {
    const auto mebibytes = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes >> 20); };
    return {.problems_done = progress.layers_done,
            .problems_total = progress.layers_total,
            .candidates_done = mebibytes(progress.bytes_done),
            .candidates_total = mebibytes(progress.bytes_total),
            .current = progress.current};
}

Json as_json(const LayerReport& layer) {
    return {{"name", layer.name},
            {"out", layer.shape.out},
            {"in", layer.shape.in},
            {"relative_error", layer.loss.relative_l2},
            {"largest_error", layer.loss.largest},
            {"source_bytes", layer.source_bytes},
            {"bytes", layer.bytes},
            {"notes", layer.notes}};
}

Json as_json(const QuantizeReport& report, const checkpoints::LayerSource& source, const Options& options) {
    const PackedShape& shape = report.layers.front().shape;
    Json layers = Json::array();
    for (const LayerReport& layer : report.layers) layers.push_back(as_json(layer));
    return {{"checkpoint", options.checkpoint},
            {"output", options.output},
            {"source", source.kind()},
            {"format", name(shape.format)},
            {"group", shape.group},
            {"zeros", shape.zeros},
            {"input_order", source.layers().front().input_order},
            {"dtype", name(source.dtype())},
            {"layers", std::move(layers)},
            {"copied_tensors", report.copied_tensors},
            {"copied_bytes", report.copied_bytes},
            {"source_bytes", report.source_bytes()},
            {"bytes", report.bytes()},
            {"relative_error", report.relative_error()}};
}

std::string share(std::int64_t bytes, std::int64_t source_bytes) {
    return tuner::format_share(static_cast<double>(bytes) / static_cast<double>(source_bytes));
}

std::string error_text(double error) { return error == 0 ? "0" : fmt::format("{:.3g}", error); }

std::string table_of(const QuantizeReport& report, const tuner::Page& page) {
    using tuner::Align;
    tuner::Table table({{"layer"},
                        {"out", Align::right},
                        {"in", Align::right},
                        {"relative error", Align::right},
                        {"largest error", Align::right},
                        {"bytes", Align::right},
                        {"of before", Align::right}});
    for (const LayerReport& layer : report.layers) {
        table.add({layer.name, std::to_string(layer.shape.out), std::to_string(layer.shape.in),
                   error_text(layer.loss.relative_l2), error_text(layer.loss.largest),
                   tuner::format_bytes(layer.bytes), share(layer.bytes, layer.source_bytes)});
    }
    return table.render(page);
}

/// "w4a16, groups of 128, zero points, scales of bf16, an order of x"
std::string described(const PackedShape& shape, bool input_order) {
    std::string text(name(shape.format));
    if (shape.group != 0) text += fmt::format(", groups of {}", shape.group);
    if (shape.zeros) text += ", zero points";
    if (shape.format == QuantFormat::w4a16) text += fmt::format(", scales of {}", name(shape.scale_dtype));
    if (input_order) text += ", an order of x";
    return text;
}

/// One of the layers' notes, and how many there are: most say the same.
std::string notes_of(const QuantizeReport& report) {
    std::string first;
    std::size_t count = 0;
    for (const LayerReport& layer : report.layers) {
        for (const std::string& note : layer.notes) {
            if (count++ == 0) first = note;
        }
    }
    if (count == 0) return {};
    return fmt::format("note: {}{}\n", runtime::escape_controls(first),
                       count == 1 ? "" : fmt::format(" (and {} more such)", count - 1));
}

std::string text_of(const QuantizeReport& report, const checkpoints::LayerSource& source,
                    const Options& options, const tuner::Page& page) {
    return fmt::format(
        "{}\n{} layers, {} to {}: relative error {}\n{} tensors copied as they are\n{}{}: {} "
        "of tensors, {} of the {} before\n",
        table_of(report, page), report.layers.size(), source.kind(),
        described(report.layers.front().shape, source.layers().front().input_order),
        error_text(report.relative_error()), report.copied_tensors, notes_of(report),
        runtime::escape_controls(options.output), tuner::format_bytes(report.bytes()),
        share(report.bytes(), report.source_bytes()), tuner::format_bytes(report.source_bytes()));
}

Outcome quantize(const Options& options, const Console& console) {
    const checkpoints::QuantizeRequest request = request_of(options);
    const checkpoints::Checkpoint checkpoint = checkpoints::Checkpoint::open(options.checkpoint);
    const std::unique_ptr<checkpoints::LayerSource> source = checkpoints::layer_source(checkpoint, request);
    const std::atomic<bool>& stop = stop_on_interrupt(
        "stopping after this layer; nothing is left behind (again: stop at once, and leave an unfinished "
        "folder)");
    ProgressDisplay display(console, {.problems = "layers", .candidates = "MiB", .are_alike = true});
    const std::optional<QuantizeReport> report = checkpoints::quantize_checkpoint(
        checkpoint, *source, options.output,
        [&](const checkpoints::QuantizeProgress& progress) { display.update(as_progress(progress)); }, stop);
    display.finish();
    if (!report)
        throw Failure(ExitCode::interrupted, {"interrupted", "stopped by Ctrl-C; nothing was written", ""});
    return {.data = as_json(*report, *source, options),
            .text = text_of(*report, *source, options, console.page)};
}

}  // namespace

Runner declare_quantize(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    app.add_option(
           "CHECKPOINT", options->checkpoint,
           "A folder with model.safetensors or its shards, or one such file: weights of 16 or 32 bits, "
           "or GPTQ, AWQ (4 bits: w4a16; GPTQ 8 bits a row: w8a16, w8a8) or FP8 (fp8) codes, which stay "
           "as they are")
        .required()
        .type_name(file_type);
    app.add_option("--format", options->format, "How weights are stored")
        .required()
        .type_name(one_of(quant_format_names));
    app.add_option("-o,--output", options->output, "Folder to make").required().type_name(file_type);
    app.add_option(
        "--group", options->request.group,
        "Columns that share a scale: 32, 64, 128, 0 for whole rows (default 128 with w4a16, else 0); "
        "fp8 takes 128 for blocks of 128 x 128");
    app.add_flag("--zeros", options->request.zeros, "w4a16: zero points, for weights that are not symmetric");
    app.add_flag("--no-search", options->no_search,
                 "w4a16: the scale that clips nothing, not the one of least squared error");
    app.add_flag("--lm-head", options->request.lm_head, "The language head too");
    app.add_option("--skip", options->request.skip,
                   "Layers to leave as they are: whole words of their names, as down_proj or layers.0");
    app.add_option("--dtype", options->dtype,
                   "fp16 or bf16, of x and of the scales of w4a16 (default: the checkpoint's)")
        .type_name("fp16|bf16");
    return [options](const Console& console) { return quantize(*options, console); };
}

}  // namespace hone::cli
