// Checkpoints: the first line is config.json, the rest a safetensors file. Where the rest begins with '{',
// its second line is the file's header, which gets the right length in front; else it is the file byte by
// byte.
#include <algorithm>
#include <cstring>

#include "checkpoints/error.h"
#include "checkpoints/pack/layer_source.h"
#include "checkpoints/pack/packed_tensors.h"
#include "checkpoints/read/awq.h"
#include "checkpoints/read/fp8.h"
#include "checkpoints/read/gptq.h"
#include "hone/error.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace hone;
using namespace hone::checkpoints;
using hone::fuzz::require;
using hone::fuzz::Seed;

constexpr std::size_t length_bytes = 8;

std::string file_of(std::string_view rest) {
    if (!rest.starts_with('{')) return std::string(rest);
    const auto [header, data] = hone::fuzz::first_line(rest);
    const std::uint64_t length = header.size();
    std::string file(length_bytes, '\0');
    std::memcpy(file.data(), &length, length_bytes);
    return file.append(header).append(data);
}

/// Every tensor lies in the file, they do not overlap, and they fill it.
void check_contents(const SafetensorsContents& contents, std::span<const std::byte> file) {
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), length_bytes);
    std::size_t sum = 0;
    for (const auto& [name, tensor] : contents.tensors) {
        require(tensor_bytes(tensor.type, tensor.shape) == tensor.size_bytes,
                "a tensor has the bytes of its shape");
        sum += tensor.size_bytes;
        if (tensor.size_bytes == 0) continue;
        require(tensor.offset >= length_bytes + header && tensor.offset <= file.size() &&
                    tensor.size_bytes <= file.size() - tensor.offset,
                "a tensor lies behind the header, in the file");
    }
    require(length_bytes + header + sum == file.size(), "tensors fill the file");
}

void check_packed(const LayerOutline& outline, const PackedLayer& layer) {
    const std::vector<TensorOutline> outlines = packed_outlines(outline);
    const std::vector<std::span<const std::byte>> parts = packed_parts(layer);
    require(outlines.size() == parts.size(), "a packed layer has the tensors of its outline");
    for (std::size_t i = 0; i < parts.size(); ++i)
        require(tensor_bytes(outlines[i].type, outlines[i].shape) == parts[i].size(), "and their bytes");
    require(outline.input_order == !layer.input_order.empty(),
            "the outline says whether columns are reordered");
    std::vector<std::int32_t> order = layer.input_order;
    std::ranges::sort(order);
    for (std::size_t i = 0; i < order.size(); ++i)
        require(order[i] == static_cast<std::int32_t>(i), "the order of columns is a permutation");
}

/// All layers of a source that `open` opens. Returns whether there was one.
template <class Open>
bool pack_all(const Open& open) {
    bool packed = false;
    try {
        const std::unique_ptr<LayerSource> source = open();
        require(!source->layers().empty(), "a source has layers");
        for (const LayerOutline& layer : source->layers()) {
            check_packed(layer, source->pack(layer));
            packed = true;
        }
    } catch (const runtime::InputError&) {
    } catch (const Error&) {
    }
    return packed;
}

void read_layers(const std::filesystem::path& folder) {
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const auto quantizes = [&](const QuantizeRequest& request) {
        return pack_all([&] { return layer_source(checkpoint, request); });
    };
    bool packed = false;
    for (const QuantFormat format :
         {QuantFormat::w4a16, QuantFormat::w8a16, QuantFormat::w8a8, QuantFormat::fp8}) {
        packed |= quantizes({.format = format, .group = {}});
        if (format == QuantFormat::w4a16)
            packed |= quantizes({.format = format, .group = 32, .zeros = true, .search = false});
    }
    packed |= pack_all([&] {  // as the decoder takes them
        const std::optional<QuantizationConfig> config = QuantizationConfig::read(checkpoint.folder());
        if (!config) throw CheckpointError("no config");
        return coded_layers(checkpoint, *config, std::nullopt);
    });
    if (packed) hone::fuzz::count_read();
}

// What seeds() is made of.

std::string with_config(const std::string& config, const test::TensorFile& tensors) {
    const std::filesystem::path path = hone::fuzz::scratch_folder() / "seed.safetensors";
    tensors.write(path);
    const test::Bytes bytes = test::bytes_of_file(path);
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), length_bytes);
    const std::string file(reinterpret_cast<const char*>(bytes.data()) + length_bytes,
                           bytes.size() - length_bytes);
    return config + '\n' + file.substr(0, header) + '\n' + file.substr(header);
}

std::string quantized(const std::string& values) { return R"({"quantization_config":{)" + values + "}}"; }

/// Columns that share a scale, in the layers below.
enum class Groups : std::uint8_t { whole_rows, of_32, of_32_in_activation_order };

std::uint32_t group_of_column(std::uint32_t column, Groups groups) {
    if (groups == Groups::whole_rows) return 0;
    return groups == Groups::of_32 ? column / 32 : column % 2;
}

/// A layer of 32 rows and 64 columns, 4 or 8 numbers in a word.
test::TensorFile gptq_layer(std::uint64_t in_word, std::uint32_t zeros, Groups groups) {
    test::TensorFile file;
    const std::uint64_t count = groups == Groups::whole_rows ? 1 : 2;
    const std::uint64_t words = 64 / in_word;
    file.set("m.q_proj.qweight", {words, 32}, std::vector<std::uint32_t>(words * 32, 0x76543210));
    file.set("m.q_proj.qzeros", {count, 32 / in_word},
             std::vector<std::uint32_t>(count * 32 / in_word, zeros));
    file.set_halves("m.q_proj.scales", {count, 32}, std::vector<double>(count * 32, 0.5));
    std::vector<std::uint32_t> index;
    for (std::uint32_t column = 0; column < 64; ++column) index.push_back(group_of_column(column, groups));
    file.set("m.q_proj.g_idx", {64}, index);
    return file;
}

test::TensorFile awq_layer() {
    test::TensorFile file;
    file.set("m.up_proj.qweight", {64, 4}, std::vector<std::uint32_t>(256, 0x76543210));
    file.set("m.up_proj.qzeros", {2, 4}, std::vector<std::uint32_t>(8, 0x77777777));
    file.set_halves("m.up_proj.scales", {2, 32}, std::vector<double>(64, 0.5));
    return file;
}

test::TensorFile fp8_layer(const std::string& scale_name, std::vector<std::uint64_t> shape,
                           std::size_t scales) {
    test::TensorFile file;
    file["m.down_proj.weight"] = {StoredType::f8_e4m3, {16, 128}, test::Bytes(16 * 128, std::byte{0x38})};
    file.set_floats("m.down_proj." + scale_name, std::move(shape), std::vector<float>(scales, 0.5F));
    return file;
}

/// What `hone quantize --format w8a8` writes.
test::TensorFile packed_layer() {
    test::TensorFile file;
    file["m.v_proj.codes"] = {StoredType::i8, {8, 96}, test::Bytes(8 * 96, std::byte{0x38})};
    file.set_floats("m.v_proj.scales", {8}, std::vector<float>(8, 0.5F));
    std::vector<std::uint32_t> order;
    for (std::uint32_t column = 0; column < 96; ++column) order.push_back(95 - column);
    file.set("m.v_proj.input_order", {96}, order);
    return file;
}

test::TensorFile number_layer() {
    test::TensorFile file;
    file.set_halves("m.o_proj.weight", {8, 128}, std::vector<double>(8 * 128, 0.25));
    file.set_halves("m.norm.weight", {128}, std::vector<double>(128, 1));
    return file;
}

}  // namespace

const int hone::fuzz::mutations = 2500;

std::vector<Seed> hone::fuzz::seeds() {
    const std::string gptq = R"("quant_method":"gptq",)";
    const std::string plain = gptq + R"("bits":4,"group_size":32,"desc_act":false)";
    const std::string reordered = gptq + R"("bits":4,"group_size":32,"desc_act":true)";
    const std::string wide = gptq + R"("bits":8,"group_size":-1,"desc_act":false)";
    const Groups mixed = Groups::of_32_in_activation_order;
    return {
        {"gptq", with_config(quantized(plain), gptq_layer(8, 0x77777777, Groups::of_32))},
        {"gptq_reordered", with_config(quantized(reordered), gptq_layer(8, 0x77777777, mixed))},
        {"gptq_8_bits", with_config(quantized(wide), gptq_layer(4, 0x7F7F7F7F, Groups::whole_rows))},
        {"awq", with_config(quantized(R"("quant_method":"awq","bits":4,"group_size":32,"version":"gemm")"),
                            awq_layer())},
        {"fp8", with_config(quantized(R"("quant_method":"fp8")"), fp8_layer("weight_scale", {16}, 16))},
        {"fp8_blocks", with_config(quantized(R"("quant_method":"fp8","weight_block_size":[128,128])"),
                                   fp8_layer("weight_scale_inv", {1, 1}, 1))},
        {"packed", with_config(quantized(R"("quant_method":"hone","layout":1,"format":"w8a8","group":0,)"
                                         R"("input_order":true,"dtype":"bf16","layers":{"m.v_proj":[8,96]})"),
                               packed_layer())},
        {"numbers", with_config(R"({"torch_dtype":"float16"})", number_layer())}};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto [config, rest] = hone::fuzz::first_line(hone::fuzz::text_of(data, size));
    const std::string file = file_of(rest);
    const auto bytes = std::as_bytes(std::span(file));
    try {
        check_contents(parse_safetensors(bytes, bytes.size(), "input"), bytes);
    } catch (const runtime::InputError& error) {
        require(std::string_view(error.what()).starts_with("input: "), "a refusal names the file");
        return 0;
    }
    const std::filesystem::path& folder = hone::fuzz::scratch_folder();
    hone::fuzz::write_file(folder / "config.json", config);
    hone::fuzz::write_file(folder / "model.safetensors", file);
    read_layers(folder);
    return 0;
}
