// Compiled images. An input that begins with "ptxas" is the compiler's report on one, which is read for its
// registers and bytes. Another one is an image in the cache as cells: six texts of its key, three numbers of
// its resources, the column that is damaged afterwards ("": none) with its new cell, and the image's bytes.
#include <optional>

#include "runtime/compile/compiler.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/table_writer.h"

namespace {

using namespace hone::cache;
using namespace hone::fuzz;

constexpr std::size_t cells_of_image = 12;

constexpr const char* ptxas_report =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'group_rows' for 'sm_90a'\n"
    "ptxas info    : Function properties for group_rows\n"
    "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
    "ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem\n"
    "ptxas info    : Compile time = 12.345 ms\n";

void check_report(const std::string& log) {
    const Resources resources = hone::runtime::parse_ptxas_report(log);
    require(resources.registers >= 0 && resources.shared_bytes >= 0 && resources.spill_bytes >= 0,
            "resources are no negative numbers");
    require(hone::runtime::parse_ptxas_report(log + '\n' + log) == resources,
            "two like kernels need what one does");
    if (resources != Resources{}) count_read();
}

struct Input {
    ImageKey key;
    Image image;
    std::string damaged_column;
    Cell damage;
};

std::optional<Input> input_from(std::string_view text) {
    const std::vector<std::string_view> cells = split(text, cell_end);
    if (cells.size() != cells_of_image) return std::nullopt;
    const auto number = [&](std::size_t i) {
        const Cell cell = cell_from(cells[i]);
        const auto* integer = std::get_if<std::int64_t>(&cell);
        return integer == nullptr ? 0 : static_cast<int>(*integer);
    };
    Input input{.key = {std::string(cells[0]), std::string(cells[1]), std::string(cells[2]),
                        std::string(cells[3]), std::string(cells[4]), std::string(cells[5])},
                .image = {.cubin = {}, .resources = {number(6), number(7), number(8)}},
                .damaged_column = std::string(cells[9]),
                .damage = cell_from(cells[10])};
    for (const char byte : cells[11]) input.image.cubin.push_back(static_cast<std::byte>(byte));
    return input;
}

bool same(const Image& a, const Image& b) { return a.cubin == b.cubin && a.resources == b.resources; }

/// A column that says when, and not what.
bool is_time(const std::string& column) { return column == "created_at" || column == "last_used"; }

/// What is stored is found. What was damaged afterwards is found as it was stored, or not at all; and where
/// it is not found, `verify` says so and `gc` clears it away.
void check_image(const Input& input) {
    static const std::filesystem::path file = scratch_folder() / "images.db";
    static TableWriter writer(file);
    static Cache cache = Cache::open(file);
    writer.clear("image");
    cache.store_image(input.key, input.image);
    const std::optional<Image> stored = cache.image(input.key);
    require(stored && same(*stored, input.image), "an image that was stored is found");
    const bool damaged = writer.update("image", input.damaged_column, input.damage);
    const VerifyReport report = cache.verify();
    require(report.ok || damaged, "images that nobody damaged are sound");
    const std::optional<Image> found = cache.image(input.key);
    require(!found || same(*found, input.image), "no image is found that was not stored");
    require(found || !report.ok, "an image that is not found was damaged, and verify says so");
    require(found || !is_time(input.damaged_column), "an image's times do not make it unusable");
    count_read();
    if (found) return;
    static_cast<void>(cache.gc());
    require(cache.verify().ok, "gc clears damaged images away");
}

std::string joined(const std::vector<std::string>& cells) {
    std::string text = cells.front();
    for (std::size_t i = 1; i < cells.size(); ++i) text += cell_end + cells[i];
    return text;
}

}  // namespace

const int hone::fuzz::mutations = 1500;

std::vector<hone::fuzz::Seed> hone::fuzz::seeds() {
    const auto row = [](const std::string& column, const std::string& cell) {
        return joined({"0123456789abcdef0123456789abcdef", "dtype=bf16 hidden=4096", "group_rows threads=128",
                       "sm_90a", "13.0", "--std=c++20", "i40", "i1024", "i0", column, cell,
                       "\x7f"
                       "ELF bytes of an image"});
    };
    return {{"report.txt", ptxas_report},
            {"sound", row("", "")},
            {"damaged_bytes", row("cubin", "bother bytes")},
            {"damaged_length", row("length", "i5")},
            {"used_later", row("last_used", "i1790000000000")}};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = text_of(data, size);
    if (text.starts_with("ptxas")) {
        check_report(std::string(text));
    } else if (const std::optional<Input> input = input_from(text)) {
        check_image(*input);
    }
    return 0;
}
