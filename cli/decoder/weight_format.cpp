#include "cli/decoder/weight_format.h"

#include "checkpoints/pack/request.h"
#include "cli/command.h"
#include "cli/targets.h"
#include "kernel_templates/text.h"

namespace hone::cli {

void WeightFormatOptions::declare(const Arguments& app) {
    app.add_option("--format", format,
                   "Makes codes of the weights of linear layers: w4a16, w8a16, w8a8 or fp8")
        .type_name("FORMAT");
    app.add_option("--group", group, "With --format: columns that share a scale (w4a16: 128)");
    app.add_flag("--zeros", zeros, "With --format w4a16: zero points");
    app.add_flag("--lm-head", lm_head, "With --format: the language head too");
}

checkpoints::WeightFormat WeightFormatOptions::chosen() const {
    if (format.empty() || format == "dense") {
        if (zeros || lm_head || group >= 0)
            throw Failure(ExitCode::usage,
                          {"bad_option", "--group, --zeros and --lm-head go with --format", ""});
        return {};
    }
    checkpoints::WeightFormat chosen{.format = {}, .group = 0, .zeros = zeros, .lm_head = lm_head};
    chosen.format = static_cast<QuantFormat>(cli::chosen("--format", format, quant_format_names));
    chosen.group = group >= 0 ? group : checkpoints::usual_group(*chosen.format);
    return chosen;
}

}  // namespace hone::cli
