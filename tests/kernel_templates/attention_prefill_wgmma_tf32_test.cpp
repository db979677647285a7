#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "kernel_templates/attention_prefill/variants.h"
#include "kernel_templates/attention_prefill/wgmma_tf32/plan.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"

using namespace hone;
using attention_prefill::wgmma_tf32;
using attention_prefill::tf32::Geometry;
using attention_prefill::tf32::panel_offset;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem("attention_prefill " + text); }

Geometry geometry_of(const Problem& problem, const Config& config) {
    return attention_prefill::tf32::geometry(attention_prefill::AttentionProblem(problem),
                                             values_of<attention_prefill::tf32::WgmmaTf32Config>(config));
}

/// Element of which operand and row, at which column; -1 behind the head.
using Element = std::tuple<char, int, int>;
using Shared = std::map<unsigned, Element>;

void put(Shared& shared, unsigned address, const Element& element) {
    CHECK(shared.emplace(address, element).second);
}

/// What the splitters write: keys as they are, of values chunks of every other key of one column.
Shared split_stage(const Geometry& g) {
    Shared shared;
    const auto column_of = [&g](int column) { return column < g.head_dim ? column : -1; };
    for (int i = 0; i < g.rounds() * 2; ++i) {
        for (int thread = 0; thread < 128; ++thread) {
            const int key = (i * 128 + thread) / (g.lane_columns() / 4);
            const int chunk = (i * 128 + thread) % (g.lane_columns() / 4);
            if (key >= g.tile_n || 4 * chunk >= g.depth()) continue;
            const unsigned at =
                static_cast<unsigned>(chunk / 8 * g.key_panel_bytes()) + panel_offset(key, chunk % 8);
            for (int c = 0; c < 4; ++c)
                put(shared, at + 4 * static_cast<unsigned>(c), {'k', key, column_of(4 * chunk + c)});
        }
    }
    for (int i = 0; i < g.rounds() * 128; ++i) {
        const int slice = i / g.lane_columns();
        const int column = i % g.lane_columns();
        if (column >= g.depth()) continue;
        for (int key = 0; key < 8; ++key) {
            const unsigned at = static_cast<unsigned>(g.values_at() + slice / 4 * g.value_panel_bytes()) +
                                panel_offset(column, slice % 4 * 2 + key % 2);
            put(shared, at + 4 * static_cast<unsigned>(key / 2), {'v', column_of(column), 8 * slice + key});
        }
    }
    return shared;
}

/// Where the tensor cores look for an element of a K-major panel: 16-byte chunks are exchanged within 1024
/// bytes after the slice's offset is added (PTX ISA, swizzling modes).
Element read(const Shared& shared, int panel, int row, int slice, int k) {
    const unsigned address = static_cast<unsigned>(panel + row * 128 + slice * 32 + k * 4);
    const auto found = shared.find(address ^ ((address >> 7 & 7) << 4));
    REQUIRE(found != shared.end());
    return found->second;
}

}  // namespace

TEST_CASE("attention_prefill wgmma_tf32: stages fit, registers suffice, a block has a tile") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const int head_dim : {4, 36, 64, 72, 96, 128}) {
        for (const int q_len : {1, 100, 4096}) {
            const Problem problem = problem_of(
                "dtype=fp32 causal=yes heads=8 kv_heads=2 batch=3 head_dim=" + std::to_string(head_dim) +
                " q_len=" + std::to_string(q_len) + " kv_len=4096");
            const std::vector<Config> configs = enumerate(problem, wgmma_tf32, h100);
            CHECK(!configs.empty());
            const std::optional<Config> safe = wgmma_tf32.fallback(problem, h100);
            REQUIRE(safe.has_value());
            CHECK(allowed(problem, {&wgmma_tf32, *safe}, h100));
            for (const Config& config : configs) {
                INFO(to_string(problem) << " | " << to_string(Candidate{&wgmma_tf32, config}));
                const Geometry g = geometry_of(problem, config);
                const Launch launch = wgmma_tf32.plan(problem, config, h100).launches[0];
                CHECK(launch.shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
                CHECK(launch.shared_bytes <= h100.max_shared_bytes_per_block);
                CHECK(launch.grid.x == 24 * ceil_div(q_len, g.tile_m()));
                CHECK(launch.block.x == static_cast<std::uint32_t>(128 * (1 + g.consumers)));
                CHECK(g.keys_at() % 1024 == 0);
                CHECK(g.value_panel_bytes() % 1024 == 0);
                if (g.moves_registers()) {
                    CHECK(g.splitter_registers() + g.consumers * g.consumer_registers() <=
                          g.launch_registers() * (1 + g.consumers));
                    CHECK(g.splitter_registers() % 8 == 0);
                }
                CHECK(wgmma_tf32.predict_us(problem, config, h100) > 0);
            }
        }
    }
}

TEST_CASE("attention_prefill wgmma_tf32: other types and larger heads belong to other variants") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const std::string problem :
         {"dtype=bf16 head_dim=128", "dtype=fp32 head_dim=132", "dtype=fp32 head_dim=66"}) {
        CHECK(!wgmma_tf32.fallback(problem_of(problem + " heads=8 kv_heads=8 batch=1 q_len=512 kv_len=512"),
                                   h100));
    }
}

TEST_CASE("attention_prefill wgmma_tf32: what the splitters write is what tensor cores and weights want") {
    for (const int head_dim : {128, 96, 72, 64, 36, 8}) {
        for (const int tile_n : {32, 64, 96, 128}) {
            INFO(head_dim << " " << tile_n);
            const Geometry g{.head_dim = head_dim, .tile_n = tile_n};
            const Shared shared = split_stage(g);
            const auto column_of = [&](int column) { return column < head_dim ? column : -1; };
            for (int slice = 0; slice < g.depth() / 8; ++slice) {
                for (int key = 0; key < tile_n; ++key) {
                    for (int k = 0; k < 8; ++k) {
                        CHECK(read(shared, slice / 4 * g.key_panel_bytes(), key, slice % 4, k) ==
                              Element{'k', key, column_of(8 * slice + k)});
                    }
                }
            }
            // A lane with accumulators (row, 8 j + 2 t) and (row, 8 j + 2 t + 1) gives them as columns t and
            // t + 4 of the left operand.
            for (int slice = 0; slice < tile_n / 8; ++slice) {
                for (int column = 0; column < g.depth(); ++column) {
                    for (int k = 0; k < 8; ++k) {
                        const int key = 8 * slice + 2 * (k % 4) + k / 4;
                        CHECK(read(shared, g.values_at() + slice / 4 * g.value_panel_bytes(), column,
                                   slice % 4, k) == Element{'v', column_of(column), key});
                    }
                }
            }
        }
    }
}
