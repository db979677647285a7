#include "models/shared_norms.h"

#include <stdexcept>
#include <string_view>

#include "kernel_templates/linear/square_columns.cuh"
#include "models/step_operators.h"
#include "runtime/operators/describe_problem.h"

namespace hone::models {
namespace {

/// A product of numbers, or of codes of this format, with its norms.
Problem sharing(const Linear& product, const checkpoints::WeightFormat& format, bool norm, bool next_norm,
                bool gated = false) {
    using namespace runtime;
    const auto described = [&](std::string_view family, auto... of_codes) {
        return describe_problem(family,
                                {{"in", product.in},
                                 {"out", product.out},
                                 {"dtype", dtype_name(product.dtype)},
                                 {"norm", yes_no(norm)},
                                 {"next_norm", yes_no(next_norm)},
                                 {"activation", word(product.activation)},
                                 {"gated", yes_no(gated)},
                                 {"bias", yes_no(product.bias)},
                                 {"residual", yes_no(product.residual)},
                                 of_codes...},
                                {{"max_tokens", product.max_tokens}});
    };
    if (!format.format) return described("shared_norm_linear");
    return described("shared_norm_quantized_linear", FieldValue{"format", word(*format.format)},
                     FieldValue{"group", format.group}, FieldValue{"zeros", yes_no(format.zeros)});
}

/// Half of a network.
Linear half(const FusedFfn& network, std::int64_t in, std::int64_t out) {
    return {
        .in = in, .out = out, .max_tokens = network.max_tokens, .dtype = network.dtype, .bias = network.bias};
}

bool can_share(const Model& model, const checkpoints::WeightFormat& format) {
    return (!format.format || is_packed(*format.format)) && model.dtype == Dtype::bf16 &&
           model.norms == NormPlaces::before && model.norm == "rmsnorm" && !model.norm_unit_offset &&
           !model.parallel && model.experts <= 1 && model.hidden_size % linear::square_columns == 0;
}

}  // namespace

std::int64_t most_sharing_sequences(const Model& model, const checkpoints::WeightFormat& format) {
    constexpr std::int64_t most_measured = 64;
    if (!can_share(model, format)) return 0;
    try {
        static_cast<void>(SharedNormProblems(model, format, most_measured));
    } catch (const std::invalid_argument&) {  // the products that these take the place of say so
        return 0;
    }
    return most_measured;
}

SharedNormProblems::SharedNormProblems(const Model& model, const checkpoints::WeightFormat& format,
                                       std::int64_t tokens)
    : qkv(sharing(qkv_projection(model, tokens), format, true, false)),
      output(sharing(attention_output(model, tokens, NormsAndSums::within), format, false, true)) {
    const FusedFfn network = feed_forward(model, tokens);
    Linear first = half(network, network.hidden, network.intermediate);
    first.activation = network.activation;
    Linear second = half(network, network.intermediate, network.hidden);
    second.residual = true;
    up = sharing(first, format, true, false, network.gated);
    down = sharing(second, format, false, true);
}

}  // namespace hone::models
