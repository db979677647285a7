#include "cli/decoder/weight_format.h"

#include <fmt/format.h>

#include <string_view>

#include "cli/command.h"
#include "cli/targets.h"
#include "cli/value_types.h"
#include "decoder/forward/operators.h"
#include "hone/quantize.h"
#include "kernel_templates/text.h"

namespace hone::cli {

void WeightFormatOptions::declare(const Arguments& app) {
    app.add_option("--format", format,
                   "Makes codes of the weights of linear layers; a folder that has codes is taken as it is")
        .type_name(one_of(quant_format_names));
    app.add_option("--group", group, "With --format: columns that share a scale (w4a16: 128)");
    app.add_flag("--zeros", zeros, "With --format w4a16: zero points");
    app.add_flag("--lm-head", lm_head, "With --format: the language head too");
}

/// By a shape that all groups divide.
void WeightFormatOptions::check(QuantFormat wanted) const {
    const PackedShape shape{.format = wanted,
                            .out = 128,
                            .in = 128,
                            .group = group.value_or(0),
                            .zeros = zeros,
                            .scale_dtype = Dtype::bf16};
    try {
        hone::check(shape);
    } catch (const Error& error) {
        const std::string_view option = zeros && wanted != QuantFormat::w4a16 ? "--zeros" : "--group";
        throw Failure::usage("bad_option", fmt::format("{}: {}", option, error.what()));
    }
}

std::optional<checkpoints::QuantizeRequest> WeightFormatOptions::chosen() const {
    if (format.empty()) {
        if (zeros || lm_head || group)
            throw Failure::usage("bad_option", "--group, --zeros and --lm-head go with --format");
        return std::nullopt;
    }
    const auto wanted = static_cast<QuantFormat>(cli::chosen("--format", format, quant_format_names));
    check(wanted);
    return checkpoints::QuantizeRequest{.format = wanted, .group = group, .zeros = zeros, .lm_head = lm_head};
}

Argument KvCacheOption::declare(const Arguments& app) {
    return app
        .add_option(
            "--kv-cache", kind,
            "Keys and values: fp8, half as many bytes for a little exactness, or same, numbers of the "
            "model's dtype (default)")
        .type_name(one_of(decoder::kv_cache_names));
}

KvDtype KvCacheOption::chosen() const {
    if (kind.empty()) return KvDtype::same;
    return static_cast<KvDtype>(cli::chosen("--kv-cache", kind, decoder::kv_cache_names));
}

}  // namespace hone::cli
