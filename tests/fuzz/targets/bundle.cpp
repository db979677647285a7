// Bundles: text to winners. An input that begins with '{' is a whole bundle; another one is the array of its
// winners, which gets the right checksum.
#include <algorithm>
#include <iterator>
#include <utility>

#include "cache/bundle.h"
#include "cache/error.h"
#include "cache/layers.h"
#include "cache/packaged.h"
#include "cache/packed_bundle.h"
#include "cache/sha256.h"
#include "kernel_templates/catalog.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/made_trials.h"

namespace {

using namespace hone::cache;
using hone::fuzz::require;

constexpr std::string_view array_begins = "\"winners\": ";

std::string whole(std::string_view array) {
    return "{\n\"schema\": \"hone.tuned/3\",\n\"sha256\": \"" + sha256_hex(array) +
           "\",\n\"winners\": " + std::string(array) + "\n}\n";
}

std::string array_of(const std::string& bundle) {
    const std::size_t begin = bundle.find(array_begins) + array_begins.size();
    return bundle.substr(begin, bundle.size() - 3 - begin);
}

/// What ships with a build is the same text, and dispatch reads the same winners from it.
void check_packing(const std::string& bundle, const std::vector<Trial>& trials) {
    const PackedBundle packed = pack_bundle(bundle);
    std::vector<PackagedRows> rows;
    for (const PackedRows& of : packed.rows)
        rows.push_back({of.family, of.static_fields, of.block, of.length});
    const PackagedBundle shipped{.name = "shipped", .head = packed.head, .rows = rows, .tail = packed.tail};
    require(text_of(shipped) == bundle, "what ships is the bundle's text");
    std::vector<Trial> winners;
    for (const PackagedRows& of : rows) {
        for (Trial& winner : read_packaged_winners(lines_of(shipped, of.family, of.static_fields), "shipped"))
            winners.push_back(std::move(winner));
    }
    std::vector<Trial> expected;
    std::ranges::copy_if(trials, std::back_inserter(expected), &Trial::winner);
    require(winners == expected, "dispatch reads the winners of what ships");
}

}  // namespace

const int hone::fuzz::mutations = 3000;

std::vector<hone::fuzz::Seed> hone::fuzz::seeds() {
    const std::vector<Trial> all = made_winners();
    return {{"all_families.json", write_bundle(all)},
            {"none.json", write_bundle({})},
            {"one.array", array_of(write_bundle({all.front()}))},
            {"two.array", array_of(write_bundle({all[1], all[2]}))}};
}

/// What is read can be written, is read from that as the same winners, and lies in the design space: trust in
/// a winner on its own GPU depends on its template alone.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input = hone::fuzz::text_of(data, size);
    std::vector<Trial> winners;
    try {
        winners = read_bundle(input.starts_with('{') ? std::string(input) : whole(input), "input");
    } catch (const BundleError& error) {
        require(std::string_view(error.what()).starts_with("input: "), "a refusal names the file");
        return 0;
    }
    hone::fuzz::count_read();
    const std::string again = write_bundle(winners);
    const std::vector<Trial> reread = read_bundle(again, "again");
    require(reread.size() == winners.size(), "as many winners are read from what was written");
    require(write_bundle(reread) == again, "writing what was read gives the same bytes");
    check_packing(again, reread);
    for (const Trial& winner : winners) {
        const Trust trust = trust_of(winner, winner.key.gpu, winner.toolchain);
        require(trust == Trust::exact || trust == Trust::stale, "an imported winner can be used");
    }
    return 0;
}
