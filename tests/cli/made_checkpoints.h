// Small checkpoints for `hone quantize`, made in a sandbox's folders, and what is read back from its output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "checkpoints/read/checkpoint.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/cli/program.h"

namespace hone::test {

/// A matrix of normal numbers, BF16.
TensorFile::Entry bf16_matrix(std::uint64_t rows, std::uint64_t columns, unsigned seed);
/// The numbers of a matrix of BF16.
std::vector<float> bf16_values(const TensorFile::Entry& entry);

/// A model with an embedding, a norm, a gate of experts, two linear layers of 96 x 128 ("model.layers.0.a"
/// with a bias, "model.layers.0.b") and a language head, in BF16.
TensorFile small_model();

/// Codes of 4 or 8 bits as GPTQ and AWQ checkpoints have them, and the values that they mean.
struct CodedLayer {
    TensorFile tensors;         ///< "l.qweight" and so on
    std::vector<float> values;  ///< [out, in]
};
struct CodedOptions {
    int bits = 4;
    std::size_t group = 32;
    bool symmetric = false;
    bool zeros_less_one = true;  ///< GPTQ: the format "gptq"
    bool shuffled = false;       ///< GPTQ: columns belong to groups in no order, and g_idx tells which
};
constexpr std::size_t coded_out = 96;
constexpr std::size_t coded_in = 128;
CodedLayer gptq_layer(const CodedOptions& options);
CodedLayer awq_layer(const CodedOptions& options);

/// Makes the folder, with model.safetensors, and config.json unless that is null.
void write_checkpoint(const std::filesystem::path& folder, const TensorFile& tensors,
                      const nlohmann::json& config = nullptr);

/// A Llama of two layers that `hone generate` runs: config.json, weights in BF16, and the tokenizer of
/// tests/decoder/data/llama3.
void write_runnable_model(const std::filesystem::path& folder);

/// For Sandbox::use_fake_gpus(): kernels that quantize note no weight without a code.
std::string all_weights_have_codes();

/// What the folder's config.json says under quantization_config.
nlohmann::json packing_of(const std::filesystem::path& folder);
/// A packed layer's values, [out, in], with the columns as x has its elements.
std::vector<float> packed_values(const std::filesystem::path& folder, const std::string& layer);

/// |a - b| / |a| of the Euclidean norms.
double relative_distance(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace hone::test
