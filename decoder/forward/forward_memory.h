// The memory between the operators of a model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/forward/drawn_tokens.h"
#include "decoder/forward/operators.h"
#include "hone/rope_table.h"

namespace hone::decoder {

[[nodiscard]] inline std::size_t elements(std::int64_t count) { return static_cast<std::size_t>(count); }

/// What lies between the operators. x is the residual stream, `delta` what the next norm adds to it.
struct ForwardMemory {
    ForwardMemory(const Gpu& gpu, const Description& model, const ModelWeights& weights,
                  const Capacity& capacity, std::int64_t workspace_bytes)
        : x(gpu.driver(), row_bytes(model, capacity.step_tokens, model.model.hidden_size)),
          delta(gpu.driver(), row_bytes(model, capacity.step_tokens, model.model.hidden_size)),
          normed(gpu.driver(), row_bytes(model, capacity.step_tokens, model.model.hidden_size)),
          squares(gpu.driver(), elements(shared_norm_squares(capacity.sequences, model.model.hidden_size))),
          normed_scales(gpu.driver(), elements(capacity.step_tokens)),
          qkv(gpu.driver(), row_bytes(model, capacity.step_tokens, model.qkv_width())),
          attended(gpu.driver(), row_bytes(model, capacity.step_tokens, model.q_width())),
          drawn_x(gpu.driver(), row_bytes(model, capacity.sequences, model.model.hidden_size)),
          drawn_attended(gpu.driver(), row_bytes(model, capacity.sequences, model.q_width())),
          logits(gpu.driver(), row_bytes(model, capacity.sequences, model.model.vocab_size)),
          workspace(gpu.driver(), elements(workspace_bytes)),
          drawn(gpu, capacity.sequences),
          read_logits(gpu.driver(), row_bytes(model, read_rows(model, capacity), model.model.vocab_size)) {
        const std::int64_t cache_bytes = capacity.pages * capacity.page_size * model.kv_width() *
                                         model.cache_element_bytes(capacity.kv_dtype);
        for (std::int64_t layer = 0; layer < model.model.num_hidden_layers; ++layer) {
            keys.emplace_back(gpu.driver(), elements(cache_bytes));
            values.emplace_back(gpu.driver(), elements(cache_bytes));
        }
        if (capacity.kv_dtype == KvDtype::fp8) {
            k_scales = scales_on_gpu(gpu, model, weights.kv_scales.k);
            v_scales = scales_on_gpu(gpu, model, weights.kv_scales.v);
        }
        if (model.has_one_norm())
            drawn_normed = Bytes(gpu.driver(), row_bytes(model, capacity.sequences, model.model.hidden_size));
        make_angles(gpu, model, capacity);
        if (model.has_experts()) routed.emplace(gpu, model, capacity.step_tokens);
    }

    /// What a layer of experts leaves between its operators.
    struct Routed {
        Routed(const Gpu& gpu, const Description& model, std::int64_t tokens)
            : logits(gpu.driver(), row_bytes(model, tokens, model.model.experts)),
              weights(gpu.driver(), elements(tokens * model.model.experts_per_token)),
              starts(gpu.driver(), elements(model.model.experts + 1)),
              rows(gpu.driver(), elements(tokens * model.model.experts_per_token)),
              between(gpu.driver(),
                      row_bytes(model, tokens * model.model.experts_per_token, model.expert_width())) {}

        Bytes logits;
        runtime::DeviceBuffer<float> weights;
        runtime::DeviceBuffer<std::int32_t> starts;
        runtime::DeviceBuffer<std::int32_t> rows;
        Bytes between;
    };

    /// What a layer turns by, [context, rotary_dim / 2]; of models that rotate.
    [[nodiscard]] const float* cosines(std::int64_t layer) const {
        return angles.empty() ? nullptr : angles[angles_of[elements(layer)]].data();
    }
    [[nodiscard]] const float* sines(std::int64_t layer) const {
        return angles.empty() ? nullptr : cosines(layer) + angles.front().size() / 2;
    }

    /// Rows of logits that are on the host at a time.
    static std::int64_t read_rows(const Description& model, const Capacity& capacity) {
        constexpr std::size_t most_bytes = std::size_t{64} << 20;
        const std::size_t rows = most_bytes / row_bytes(model, 1, model.model.vocab_size);
        return std::clamp<std::int64_t>(static_cast<std::int64_t>(rows), 1, capacity.sequences);
    }

    static std::size_t row_bytes(const Description& model, std::int64_t rows, std::int64_t width) {
        return elements(rows * width * model.element_bytes());
    }

    static runtime::DeviceBuffer<float> scales_on_gpu(const Gpu& gpu, const Description& model,
                                                      std::vector<float> scales) {
        if (scales.empty())
            scales.assign(elements(model.model.num_hidden_layers * model.model.num_key_value_heads), 1);
        runtime::DeviceBuffer<float> made(gpu.driver(), scales.size());
        runtime::upload(gpu.driver(), made.span(), std::span<const float>(scales));
        return made;
    }

    /// Cosines, then sines.
    static std::vector<float> angle_table(const std::optional<models::RotationNumbers>& rotation,
                                          std::int64_t rotary_dim, std::int64_t positions) {
        if (rotation) return rope_table(rotary_dim, rotation->base, positions, rotation->scaling);
        std::vector<float> still(elements(positions * rotary_dim));
        std::fill_n(still.begin(), still.size() / 2, 1.0F);
        return still;
    }

    void make_angles(const Gpu& gpu, const Description& model, const Capacity& capacity) {
        if (model.model.rotary_dim == 0) return;
        for (const auto& rotation : model.angles()) {
            const std::vector<float> table = angle_table(rotation, model.model.rotary_dim, capacity.context);
            angles.emplace_back(gpu.driver(), table.size());
            runtime::upload(gpu.driver(), angles.back().span(), std::span<const float>(table));
        }
        for (std::int64_t layer = 0; layer < model.model.num_hidden_layers; ++layer)
            angles_of.push_back(model.angles_of(layer));
    }

    Bytes x;
    Bytes delta;
    Bytes normed;                          ///< numbers, or codes of a byte
    runtime::DeviceBuffer<float> squares;  ///< where products share norms; normed is not normalized then
    runtime::DeviceBuffer<float> normed_scales;  ///< of rows that are codes
    Bytes qkv;
    Bytes attended;
    Bytes drawn_x;  ///< the residual stream, of rows that tokens are drawn from
    Bytes drawn_attended;
    Bytes drawn_normed;  ///< where the network takes what attention takes
    Bytes logits;
    Bytes workspace;
    DrawnTokens drawn;
    runtime::PinnedBuffer<std::byte> read_logits;      ///< on the host, of rows that are asked for
    std::vector<runtime::DeviceBuffer<float>> angles;  ///< by Description::angles(): cosines, then sines
    std::vector<std::size_t> angles_of;                ///< which of them each layer has
    std::vector<Bytes> keys;  ///< of each layer: [pages, kv_heads, page_size, head_dim]
    std::vector<Bytes> values;
    runtime::DeviceBuffer<float> k_scales;  ///< of a cache of codes: [layers, kv_heads]
    runtime::DeviceBuffer<float> v_scales;
    std::optional<Routed> routed;  ///< of models with experts
};

}  // namespace hone::decoder
