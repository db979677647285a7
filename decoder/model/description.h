// A model as the decoder runs it: sizes, what a layer is made of, and under which names its weights stand.
// Made of a folder's config.json; whatever Hone has no operator for is refused by its name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "decoder/model/tensor_names.h"
#include "hone/hone.h"
#include "models/model.h"
#include "models/rotation.h"
#include "models/step_operators.h"

namespace hone::decoder {

/// All layers are alike but for windows of attention, angles of rotation and experts in place of one network:
/// norm, attention, sum, norm, feed-forward network, sum; with norms around, another one in front of each
/// sum; with norms behind, only that one. In a parallel block the network takes what attention takes, or
/// another norm of it, and both are summed before they are added to the stream. The residual stream is held
/// divided by the factor of what is added to it, so that no sum has one: what norms make of it is the same
/// with an epsilon that is divided by the factor's square.
struct Description {
    models::Model model;
    models::Rotations rotations;
    const TensorNames* names = nullptr;  ///< never nullptr

    [[nodiscard]] std::int64_t q_width() const { return models::q_width(model); }
    [[nodiscard]] std::int64_t kv_width() const { return models::kv_width(model); }
    [[nodiscard]] std::int64_t qkv_width() const { return models::qkv_width(model); }
    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(model.dtype); }
    /// In front of attention and network; else these take the residual stream as it is.
    [[nodiscard]] bool has_norms_in_front() const { return models::has_norms_in_front(model); }
    /// Attention and network take the results of one norm.
    [[nodiscard]] bool has_one_norm() const { return model.parallel && !model.two_norms; }
    [[nodiscard]] bool has_norms_behind() const { return model.norms != models::NormPlaces::before; }
    /// Queries, and keys, of all heads are normalized together.
    [[nodiscard]] bool has_wide_head_norms() const { return models::has_wide_head_norms(model); }
    [[nodiscard]] bool has_experts() const { return model.experts > 1; }
    [[nodiscard]] bool has_experts(std::int64_t layer) const;
    /// Elements between the halves of an expert.
    [[nodiscard]] std::int64_t expert_width() const { return models::expert_width(model); }
    /// Of experts' weights what a step of so many tokens reads where all experts are as likely as each other,
    /// 0 to 1: of one token its own experts.
    [[nodiscard]] double share_of_experts(std::int64_t tokens) const;
    /// What tokens' rows are multiplied by on their way into the residual stream; 1: they are not.
    [[nodiscard]] float embedding_scale() const;
    /// The epsilon of norms of the residual stream.
    [[nodiscard]] float stream_epsilon() const;
    /// What scores of attention are multiplied by; 0: the inverse of the root of head_dim.
    [[nodiscard]] float score_scale() const;
    /// What logits are divided by, which temperatures are multiplied by instead.
    [[nodiscard]] double logit_divisor() const { return model.logit_divisor > 0 ? model.logit_divisor : 1; }
    /// Keys that a query sees, each number once; 0: all.
    [[nodiscard]] std::vector<std::int64_t> windows() const { return models::windows_of(model); }
    /// Which of windows() a layer has.
    [[nodiscard]] std::size_t window_of(std::int64_t layer) const;
    /// What the tables of angles are made of that layers take, each once. Nothing: a table that turns
    /// nothing, of layers that do not rotate.
    [[nodiscard]] std::vector<std::optional<models::RotationNumbers>> angles() const;
    /// Which of angles() a layer has.
    [[nodiscard]] std::size_t angles_of(std::int64_t layer) const;
    /// Bytes of an element of keys and values.
    [[nodiscard]] std::int64_t cache_element_bytes(KvDtype kv_dtype) const {
        return kv_dtype == KvDtype::fp8 ? 1 : element_bytes();
    }
    /// Bytes of keys and values of a token, of all layers.
    [[nodiscard]] std::int64_t cache_bytes_a_token(KvDtype kv_dtype) const;
};

/// Throws DecoderError for a model that cannot be run: its model_type, or what of it there is no operator
/// for.
[[nodiscard]] Description describe(const models::Model& model, const models::Rotations& rotations);
/// The config.json of a folder. Throws ModelError besides.
[[nodiscard]] Description describe_folder(const std::filesystem::path& folder);

}  // namespace hone::decoder
