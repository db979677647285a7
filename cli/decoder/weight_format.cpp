#include "cli/decoder/weight_format.h"

#include "cli/command.h"
#include "cli/targets.h"
#include "kernel_templates/text.h"

namespace hone::cli {

void WeightFormatOptions::declare(const Arguments& app) {
    app.add_option(
           "--format", format,
           "Makes codes of the weights of linear layers: w4a16, w8a16, w8a8 or fp8; a folder that has "
           "codes is taken as it is")
        .type_name("FORMAT");
    app.add_option("--group", group, "With --format: columns that share a scale (w4a16: 128)");
    app.add_flag("--zeros", zeros, "With --format w4a16: zero points");
    app.add_flag("--lm-head", lm_head, "With --format: the language head too");
}

std::optional<checkpoints::QuantizeRequest> WeightFormatOptions::chosen() const {
    if (format.empty()) {
        if (zeros || lm_head || group)
            throw Failure(ExitCode::usage,
                          {"bad_option", "--group, --zeros and --lm-head go with --format", ""});
        return std::nullopt;
    }
    return checkpoints::QuantizeRequest{
        .format = static_cast<QuantFormat>(cli::chosen("--format", format, quant_format_names)),
        .group = group,
        .zeros = zeros,
        .lm_head = lm_head};
}

}  // namespace hone::cli
