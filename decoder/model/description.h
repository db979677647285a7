// A model as the decoder runs it: sizes, what a layer is made of, and under which names its weights stand.
// Made of a folder's config.json; whatever Hone has no operator for is refused by its name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "decoder/model/tensor_names.h"
#include "hone/hone.h"
#include "models/model.h"
#include "models/rotation.h"

namespace hone::decoder {

/// All layers are alike: norm, attention, sum, norm, feed-forward network, sum.
struct Description {
    models::Model model;
    models::RotationNumbers rotation;
    const TensorNames* names = nullptr;  ///< never nullptr

    [[nodiscard]] std::int64_t q_width() const { return model.num_attention_heads * model.head_dim; }
    [[nodiscard]] std::int64_t kv_width() const { return model.num_key_value_heads * model.head_dim; }
    [[nodiscard]] std::int64_t qkv_width() const { return q_width() + 2 * kv_width(); }
    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(model.dtype); }
    [[nodiscard]] Activation activation() const;
    /// Bytes of keys and values of a token, of all layers.
    [[nodiscard]] std::int64_t cache_bytes_a_token() const;
};

/// Throws DecoderError for a model that cannot be run: its model_type, or what of it there is no operator
/// for.
[[nodiscard]] Description describe(const models::Model& model, const models::RotationNumbers& rotation);
/// The config.json of a folder. Throws ModelError besides.
[[nodiscard]] Description describe_folder(const std::filesystem::path& folder);

}  // namespace hone::decoder
