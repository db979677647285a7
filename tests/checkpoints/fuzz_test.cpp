// Files that are wrong in ways nobody thought of: whatever comes in, a file is read in full or refused with a
// InputError, and nothing outside of it is touched (which the sanitizers see).
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "checkpoints/read/awq.h"
#include "checkpoints/read/fp8.h"
#include "checkpoints/read/gptq.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/support/scratch.h"

using namespace hone::checkpoints;
using namespace hone::test;

namespace {

/// Changes a file in a way that is drawn.
class Mutator {
  public:
    explicit Mutator(unsigned seed) : random_(seed) {}

    [[nodiscard]] Bytes mutated(Bytes file) {
        for (std::size_t i = below(4) + 1; i > 0; --i) mutate(file);
        return file;
    }

  private:
    [[nodiscard]] std::size_t below(std::size_t end) {
        return end == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
    }

    void mutate(Bytes& file) {
        switch (below(7)) {
            case 0: flip(file, file.size()); break;
            case 1: flip(file, std::min<std::size_t>(file.size(), 8)); break;  // the length
            case 2: file.resize(below(file.size() + 1)); break;
            case 3: file.resize(file.size() + below(100)); break;
            case 4: change_digit(file); break;
            default: change_header(file); break;
        }
    }

    void flip(Bytes& file, std::size_t end) {
        if (end > 0) file[below(end)] ^= static_cast<std::byte>(1U << below(8));
    }

    void change_digit(Bytes& file) {
        for (int tries = 0; tries < 200 && !file.empty(); ++tries) {
            std::byte& byte = file[below(std::min<std::size_t>(file.size(), 2000))];
            if (byte < std::byte{'0'} || byte > std::byte{'9'}) continue;
            byte = static_cast<std::byte>('0' + below(10));
            return;
        }
    }

    /// Puts in, takes out or doubles a piece of the header, whose length is kept right.
    void change_header(Bytes& file) {
        static const std::vector<std::string> pieces{"{",
                                                     "}",
                                                     "[",
                                                     "]",
                                                     ",",
                                                     ":",
                                                     "\"",
                                                     "0",
                                                     "-1",
                                                     "1e9",
                                                     "null",
                                                     "{}",
                                                     "[]",
                                                     " ",
                                                     "\"U8\"",
                                                     "\"I32\"",
                                                     "\"F8_E4M3\"",
                                                     "\"shape\":",
                                                     "\\u0000",
                                                     "18446744073709551615",
                                                     "\xFF",
                                                     "[[",
                                                     "{\"",
                                                     "__metadata__",
                                                     "4294967296",
                                                     "9223372036854775807",
                                                     "\"data_offsets\":[0,0]"};
        std::uint64_t length = 0;
        if (file.size() < 9) return;
        std::memcpy(&length, file.data(), 8);
        if (length == 0 || length > file.size() - 8) return;
        const std::size_t at = 8 + below(length);
        const auto position = file.begin() + static_cast<std::ptrdiff_t>(at);
        const std::size_t count = below(std::min<std::size_t>(40, 8 + length - at)) + 1;
        if (below(3) == 0) {
            file.erase(position, position + static_cast<std::ptrdiff_t>(count));
            length -= count;
        } else if (below(2) == 0) {
            const Bytes piece(position, position + static_cast<std::ptrdiff_t>(count));
            file.insert(position, piece.begin(), piece.end());
            length += count;
        } else {
            const auto piece = std::as_bytes(std::span(pieces[below(pieces.size())]));
            file.insert(position, piece.begin(), piece.end());
            length += piece.size();
        }
        std::memcpy(file.data(), &length, 8);
    }

    std::mt19937 random_;
};

/// The bytes of all tensors, each inside of the file.
std::size_t bytes_of_tensors(const SafetensorsContents& contents, const Bytes& file) {
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : contents.tensors) {
        REQUIRE(tensor_bytes(tensor.type, tensor.shape) == tensor.size_bytes);
        REQUIRE(tensor.offset <= file.size());
        REQUIRE(tensor.size_bytes <= file.size() - tensor.offset);
        bytes += tensor.size_bytes;
    }
    return bytes;
}

/// Layers 'g' of GPTQ, 'a' of AWQ and 'f' of FP8, 32 columns and 8 rows each, and 'o' of GPTQ, 64 columns in
/// activation order.
TensorFile all_layers() {
    TensorFile file;
    file.set("g.qweight", {4, 8}, std::vector<std::uint32_t>(32, 0x76543210));
    file.set("g.qzeros", {1, 1}, {0x77777777});
    file.set_halves("g.scales", {1, 8}, std::vector<double>(8, 0.5));
    file.set("g.g_idx", {32}, std::vector<std::uint32_t>(32));
    file.set("o.qweight", {8, 8}, std::vector<std::uint32_t>(64, 0x76543210));
    file.set("o.qzeros", {2, 1}, {0x77777777, 0x77777777});
    file.set_halves("o.scales", {2, 8}, std::vector<double>(16, 0.5));
    std::vector<std::uint32_t> groups;
    for (std::uint32_t column = 0; column < 64; ++column) groups.push_back(column % 2);
    file.set("o.g_idx", {64}, groups);
    file.set("a.qweight", {32, 1}, std::vector<std::uint32_t>(32, 0x76543210));
    file.set("a.qzeros", {1, 1}, {0x77777777});
    file.set_halves("a.scales", {1, 8}, std::vector<double>(8, 0.5));
    file["f.weight"] = {StoredType::f8_e4m3, {8, 32}, Bytes(256)};
    file.set_floats("f.weight_scale_inv", {1, 1}, {0.5F});
    return file;
}

/// True when the layer was read.
template <class Read>
bool was_read(const Read& read) {
    try {
        const auto weight = read();
        CHECK(weight.codes.size() == static_cast<std::size_t>(weight.out * weight.in));
        return true;
    } catch (const hone::runtime::InputError&) {
        return false;
    }
}

/// Layer 'o', whose column_order is a permutation of [0, in), or empty.
GroupedWeight reordered(const Checkpoint& checkpoint) {
    const GptqConfig config{.bits = 4, .group = 32, .desc_act = true};
    GroupedWeight weight = read_gptq(checkpoint, "o", config);
    CHECK(is_reordered(checkpoint, "o", config) == !weight.column_order.empty());
    std::vector<std::int32_t> order = weight.column_order;
    std::ranges::sort(order);
    for (std::size_t i = 0; i < order.size(); ++i) REQUIRE(order[i] == static_cast<std::int32_t>(i));
    CHECK((order.empty() || std::ssize(order) == weight.in));
    return weight;
}

}  // namespace

TEST_CASE("no mutation of a file makes parsing it crash, throw anything else, or reach beyond the file") {
    const Scratch scratch;
    all_layers().write(scratch.path("m.safetensors"));
    const std::vector<Bytes> seeds{
        bytes_of_file(scratch.path("m.safetensors")), raw_safetensors("{}", 0),
        raw_safetensors(
            R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
            R"("b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})",
            9)};
    Mutator mutator(20240611);
    int parsed = 0;
    int refused = 0;
    for (int i = 0; i < 30'000; ++i) {
        const Bytes file = mutator.mutated(seeds[static_cast<std::size_t>(i) % seeds.size()]);
        try {
            const SafetensorsContents contents = hone::test::parsed(file, "m.safetensors");
            std::uint64_t length = 0;
            std::memcpy(&length, file.data(), 8);
            REQUIRE(bytes_of_tensors(contents, file) == file.size() - 8 - length);
            ++parsed;
        } catch (const hone::runtime::InputError& error) {
            REQUIRE(std::string(error.what()).starts_with("m.safetensors: "));
            ++refused;
        }
    }
    CHECK(parsed > 1000);  // the mutations reach behind the first check
    CHECK(refused > 10'000);
}

TEST_CASE("no mutation of a checkpoint makes reading its layers crash") {
    const Scratch scratch;
    const auto path = scratch.path("model.safetensors");
    all_layers().write(path);
    const Bytes seed = bytes_of_file(path);
    Mutator mutator(7);
    int read = 0;
    int refused = 0;
    for (int i = 0; i < 5000; ++i) {
        write_bytes(path, mutator.mutated(seed));
        try {
            const Checkpoint checkpoint = Checkpoint::open(path);
            for (const bool desc_act : {false, true}) {
                const GptqConfig config{.bits = 4, .group = desc_act ? 32 : 0, .desc_act = desc_act};
                read += was_read([&] { return read_gptq(checkpoint, "g", config); }) ? 1 : 0;
            }
            read += was_read([&] { return reordered(checkpoint); }) ? 1 : 0;
            read += was_read([&] { return read_awq(checkpoint, "a", {.group = 32}); }) ? 1 : 0;
            read += was_read([&] { return read_fp8(checkpoint, "f"); }) ? 1 : 0;
        } catch (const hone::runtime::InputError&) {
            ++refused;
        }
    }
    CHECK(read > 500);
    CHECK(refused > 1000);
}
