// Attention and network side by side, on the fake GPU: GPT-NeoX, Phi, Falcon, StableLM. What they read and
// launch, and which rows of a tensor of queries, keys and values stand where.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "decoder/engine/running_model.h"
#include "kernel_templates/norm/declaration.h"
#include "tests/decoder/coded_folder.h"
#include "tests/decoder/coded_model.h"

using namespace hone;
using namespace hone::decoder;
using namespace hone::test;

namespace {

constexpr CodedSizes sizes;
constexpr std::size_t head = sizes.head_dim;

/// Each row is its own number.
void numbered(CodedFolder& folder, const std::string& name, std::size_t rows, std::size_t columns) {
    std::vector<double> values;
    for (std::size_t row = 0; row < rows; ++row)
        values.insert(values.end(), columns, static_cast<double>(row));
    folder.tensors.set_halves(
        name, columns == 1 ? std::vector<std::uint64_t>{rows} : std::vector<std::uint64_t>{rows, columns},
        values);
}

void norm(CodedFolder& folder, const std::string& name) {
    folder.norm(name);
    folder.tensors.set_halves(name + ".bias", {sizes.hidden}, std::vector<double>(sizes.hidden, 0));
}

void with_bias(CodedFolder& folder, const std::string& name, std::size_t out, std::size_t in) {
    folder.numbers(name, out, in);
    folder.tensors.set_halves(name + ".bias", {out}, std::vector<double>(out, 0.25));
}

CodedFolder neox_folder() {
    CodedFolder folder({.kv_heads = sizes.heads}, "gpt_neox");
    const std::size_t qkv = 3 * sizes.heads * head;
    folder.numbers("gpt_neox.embed_in", sizes.vocabulary, sizes.hidden);
    folder.numbers("embed_out", sizes.vocabulary, sizes.hidden);
    norm(folder, "gpt_neox.final_layer_norm");
    for (std::size_t i = 0; i < sizes.layers; ++i) {
        const std::string layer = "gpt_neox.layers." + std::to_string(i) + '.';
        norm(folder, layer + "input_layernorm");
        norm(folder, layer + "post_attention_layernorm");
        numbered(folder, layer + "attention.query_key_value.weight", qkv, sizes.hidden);
        numbered(folder, layer + "attention.query_key_value.bias", qkv, 1);
        with_bias(folder, layer + "attention.dense", sizes.hidden, sizes.hidden);
        with_bias(folder, layer + "mlp.dense_h_to_4h", sizes.between, sizes.hidden);
        with_bias(folder, layer + "mlp.dense_4h_to_h", sizes.hidden, sizes.between);
    }
    return folder;
}

CodedFolder falcon_folder(bool newer) {
    CodedFolder folder(sizes, "falcon");
    folder.config["alibi"] = false;
    folder.config["ffn_hidden_size"] = sizes.between;
    folder.config["new_decoder_architecture"] = newer;
    folder.config["num_kv_heads"] = sizes.kv_heads;
    const std::size_t kv_heads = newer ? sizes.kv_heads : 1;
    folder.numbers("transformer.word_embeddings", sizes.vocabulary, sizes.hidden);
    norm(folder, "transformer.ln_f");
    for (std::size_t i = 0; i < sizes.layers; ++i) {
        const std::string layer = "transformer.h." + std::to_string(i) + '.';
        if (newer) {
            norm(folder, layer + "ln_attn");
            norm(folder, layer + "ln_mlp");
        } else {
            norm(folder, layer + "input_layernorm");
        }
        numbered(folder, layer + "self_attention.query_key_value.weight", (sizes.heads + 2 * kv_heads) * head,
                 sizes.hidden);
        folder.numbers(layer + "self_attention.dense", sizes.hidden, sizes.hidden);
        folder.numbers(layer + "mlp.dense_h_to_4h", sizes.between, sizes.hidden);
        folder.numbers(layer + "mlp.dense_4h_to_h", sizes.hidden, sizes.between);
    }
    return folder;
}

/// The number that a row of a weight, or a bias of rows, is made of.
float number_of(const RunningModel& model, const void* from, std::size_t row, std::size_t columns) {
    return half_at(model, from, row * columns);
}

int norms_of_a_step(RunningModel& model, const FakeMachine& machine) {
    const int before = machine.launch_count();
    CHECK(step_of(model) == 0);
    CHECK(model.runtime().counters().failed_launches == 0);
    return launches_of(machine, before, "norm_");
}

}  // namespace

TEST_CASE("GPT-NeoX: two norms of one stream, rows of queries, keys and values head by head") {
    const FakeMachine machine;
    CodedFolder folder = neox_folder();
    RunningModel model(options_of(folder.write()));
    CHECK(model.description().model.two_norms);
    const LayerWeights& layer = model.weights().layers[1];
    for (std::size_t kind = 0; kind < 3; ++kind) {
        for (const std::size_t of_head : {0, 1, 3}) {
            const std::size_t row = (kind * sizes.heads + of_head) * head + 5;
            const auto stored = static_cast<float>((of_head * 3 + kind) * head + 5);
            CHECK(number_of(model, layer.qkv.values, row, sizes.hidden) == stored);
            CHECK(number_of(model, layer.qkv_bias, row, 1) == stored);
        }
    }
    CHECK(layer.network_norm.weight != nullptr);
    const int before = machine.launch_count();
    CHECK(norms_of_a_step(model, machine) == 2 * static_cast<int>(sizes.layers) + 1);
    // The network's norm takes the stream as attention's left it: what attention gave is summed later.
    const std::vector<FakeLaunch> norms = all_launches_of(machine, before, "norm_");
    CHECK(norms[1].parameters[norm::x] == norms[0].parameters[norm::x]);
    CHECK(norms[2].parameters[norm::residual] == norms[0].parameters[norm::x]);

    folder.config["use_parallel_residual"] = false;
    RunningModel in_turn(options_of(folder.write()));
    CHECK_FALSE(in_turn.description().model.parallel);
    CHECK(norms_of_a_step(in_turn, machine) == 2 * static_cast<int>(sizes.layers) + 1);

    CodedFolder coded = neox_folder();
    coded.config["quantization_config"] = {{"quant_method", "fp8"}};
    const std::string name = "gpt_neox.layers.0.attention.query_key_value";
    coded.fp8(name, 3 * sizes.heads * head, sizes.hidden, 1, sizes.hidden);
    const std::string words =
        refusal([&] { return std::make_unique<RunningModel>(options_of(coded.write())); });
    CHECK(words.find(name) != std::string::npos);
    CHECK(words.find("whose rows stand by heads") != std::string::npos);
}

TEST_CASE("Falcon: one norm for both, the queries that share a key in front of it") {
    const FakeMachine machine;
    {
        RunningModel model(options_of(falcon_folder(false).write()));
        CHECK(model.description().has_one_norm());
        CHECK(model.weights().layers[0].network_norm.weight == nullptr);
        CHECK(number_of(model, model.weights().layers[0].qkv.values, 4 * head, sizes.hidden) == 4 * head);
        CHECK(norms_of_a_step(model, machine) == static_cast<int>(sizes.layers) + 1);
    }
    RunningModel model(options_of(falcon_folder(true).write()));
    const void* const qkv = model.weights().layers[1].qkv.values;
    // Stored: two queries, their key, their value, and the same once more.
    const std::size_t stored[] = {0, 1, 4, 5, 2, 6, 3, 7};
    for (std::size_t of_head = 0; of_head < 8; ++of_head)
        CHECK(number_of(model, qkv, of_head * head, sizes.hidden) ==
              static_cast<float>(stored[of_head] * head));
    CHECK(norms_of_a_step(model, machine) == 2 * static_cast<int>(sizes.layers) + 1);
}

TEST_CASE("of a prompt's last layer the network takes the rows that tokens are drawn from alone") {
    const FakeMachine machine;
    RunningModel model(options_of(falcon_folder(false).write()));
    const int before = machine.launch_count();
    CHECK(step_of(model, {}, many_tokens()) == 0);
    // Of attention's results, of the stream, and of what the one norm left.
    CHECK(launches_of(machine, before, "embedding") == 1 + 3);
    CHECK(model.runtime().counters().failed_launches == 0);
}
