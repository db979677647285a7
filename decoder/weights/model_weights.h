// The weights of a model on the GPU, as its operators take them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/pack/weight_format.h"
#include "decoder/gpu/gpu.h"
#include "decoder/model/description.h"
#include "decoder/weights/kv_scales.h"
#include "decoder/weights/weight_source.h"
#include "hone/hone.h"

namespace hone::decoder {

/// Numbers of the model's dtype, or codes with scales.
struct MatrixWeight {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    bool is_coded = false;
    const void* values = nullptr;  ///< [rows, columns]; nullptr where there are codes
    QuantizedWeightPointers packed{};
    std::int64_t bytes = 0;  ///< with scales and zero points
};

struct NormWeight {
    const void* weight = nullptr;
    const void* bias = nullptr;
};

/// A bias is nullptr where the model has none.
struct LayerWeights {
    NormWeight attention_norm;    ///< of models with norms in front, as network_norm
    NormWeight behind_attention;  ///< of models with norms around or behind, as behind_network
    MatrixWeight qkv;             ///< rows of queries, then keys, then values
    const void* qkv_bias = nullptr;
    const void* q_norm = nullptr;  ///< [head_dim], or of all heads, as k_norm
    const void* k_norm = nullptr;
    MatrixWeight output;
    const void* output_bias = nullptr;
    NormWeight network_norm;
    NormWeight behind_network;
    MatrixWeight router;  ///< [experts, hidden], of layers with experts: gate, up and down are then those of
                          ///< all experts, one after the other
    const void* router_bias = nullptr;
    const float* sinks = nullptr;  ///< [heads]: logits beside those of keys
    MatrixWeight gate;             ///< of gated networks
    const void* gate_bias = nullptr;
    MatrixWeight up;
    const void* up_bias = nullptr;
    MatrixWeight down;
    const void* down_bias = nullptr;

    [[nodiscard]] bool has_experts() const { return router.rows > 0; }
};

/// Weights read so far, and of how many bytes.
using LoadProgress = std::function<void(std::int64_t done, std::int64_t all)>;

class ModelWeights {
  public:
    /// Codes that the source has are taken as they are, and its numbers stay numbers. Of a source without
    /// codes, `format` says what codes of linear layers the GPU makes of weights that it gets one after the
    /// other. Throws CheckpointError and DecoderError before anything is read where a tensor is missing or of
    /// another shape; CudaError where memory is short.
    ModelWeights(const Gpu& gpu, Runtime& runtime, const Description& model, const WeightSource& source,
                 const checkpoints::WeightFormat& format, const LoadProgress& progress = {});

    checkpoints::WeightFormat code_format;  ///< of all weights that are codes
    const void* embedding = nullptr;        ///< [vocabulary, hidden]
    const void* positions = nullptr;        ///< [positions, hidden], of learned ones
    std::vector<LayerWeights> layers;
    NormWeight final_norm;
    MatrixWeight head;
    const void* head_bias = nullptr;
    std::vector<std::string> unread;  ///< weights that the source has and the model has not, by name
    KvScales kv_scales;               ///< of a cache of codes, on the host; empty: 1

    /// Of all that is on the GPU.
    [[nodiscard]] std::int64_t bytes() const { return bytes_; }
    /// What each step reads of linear layers: all, but of experts the share that it needs.
    [[nodiscard]] std::int64_t bytes_a_step(double share_of_experts) const {
        return bytes_a_step_ - expert_bytes_ +
               static_cast<std::int64_t>(share_of_experts * static_cast<double>(expert_bytes_));
    }

  private:
    friend class WeightLoader;
    std::vector<Bytes> memory_;
    std::vector<runtime::DeviceBuffer<float>> sinks_;
    std::int64_t bytes_ = 0;
    std::int64_t bytes_a_step_ = 0;  ///< with all experts
    std::int64_t expert_bytes_ = 0;
};

}  // namespace hone::decoder
