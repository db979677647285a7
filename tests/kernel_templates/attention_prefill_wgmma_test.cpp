#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "kernel_templates/attention_prefill/wgmma/plan.h"
#include "tests/kernel_templates/attention_prefill_cases.h"

using namespace hone;
using namespace hone::attention_prefill_cases;
using attention_prefill::warpgroup::Geometry;
using attention_prefill::warpgroup::Sections;
using attention_prefill::warpgroup::WgmmaConfig;

namespace {

const DeviceTraits h100 = *representative_device({9, 0, true});

Geometry geometry_of(const Problem& problem, const Candidate& candidate) {
    return attention_prefill::warpgroup::geometry(attention_prefill::AttentionProblem(problem),
                                                  values_of<WgmmaConfig>(candidate.config));
}

/// Calls `check` with candidates from all over each problem's space, and the problem as numbers.
template <class Check>
void for_many_candidates(Check check) {
    for (const std::string& shape : shapes) {
        for (const std::string& size : sizes) {
            const Problem problem = problem_of(shape + " " + size);
            const Variant& wgmma = *find_variant(*problem.family, "wgmma");
            const std::vector<Config> configs = enumerate(problem, wgmma, h100);
            for (std::size_t i = 0; i < configs.size(); i += 1 + configs.size() / 50) {
                const Candidate candidate{&wgmma, configs[i]};
                INFO(to_string(problem) << " | " << to_string(candidate));
                check(problem, attention_prefill::AttentionProblem(problem), candidate);
            }
        }
    }
}

Sections sections_of(const Plan& plan) {
    return {.rows = static_cast<int>(plan.values[0].number),
            .heads = static_cast<int>(plan.values[1].number),
            .count = static_cast<int>(plan.values[2].number)};
}

double predicted(const std::string& problem, const std::string& tunables) {
    const Problem parsed = problem_of(problem);
    const Candidate candidate = *parse_candidate(*parsed.family,
                                                 "wgmma stages=2 dynamic=1 softmax_first=1 late_maxima=0 "
                                                 "programmatic=0 query_in_registers=0 query_stages=1 " +
                                                     tunables);
    return candidate.variant->predict_us(parsed, candidate.config, h100);
}

}  // namespace

TEST_CASE("wgmma covers 16-bit attention whose rows have whole chunks, and is its fallback on sm_90a") {
    for_every_problem_and_device([](const Problem& problem, const DeviceTraits& traits) {
        const auto p = attention_prefill::AttentionProblem(problem);
        const Variant& wgmma = *find_variant(*problem.family, "wgmma");
        const bool covered = p.dtype != Dtype::fp32 && p.head_dim % (p.fp8_cache() ? 16 : 8) == 0 &&
                             traits.arch() == Arch{9, 0, true};
        const bool offered = wgmma.fallback(problem, traits).has_value();
        // Wider rows may leave too few registers for a cap beside a mask.
        CHECK((p.head_dim <= 192 ? offered == covered : covered || !offered));
        if (offered) CHECK(fallback(problem, traits)->variant == &wgmma);
    });
}

TEST_CASE("wgmma: blocks fit the multiprocessor together, and no more are launched than there are tiles") {
    for_many_candidates([](const Problem& problem, const auto& p, const Candidate& candidate) {
        const Geometry g = geometry_of(problem, candidate);
        const Plan plan = candidate.variant->plan(problem, candidate.config, h100);
        const Launch& launch = plan.launches[0];
        CHECK(plan.launch_count == 1);
        CHECK(launch.shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
        CHECK(g.blocks_per_sm * (g.shared_bytes() + 1024) <= h100.shared_bytes_per_sm);
        CHECK(launch.block.x == static_cast<std::uint32_t>(g.threads()));
        CHECK(g.consumers * g.consumer_registers() + g.producers() * g.producer_registers() <=
              (g.consumers + g.producers()) * (g.moves_registers() ? g.launch_registers() : 255));
        const std::int64_t tiles = p.batch * p.heads * ceil_div(p.q_len, g.tile_m());
        CHECK(launch.grid.x == std::min<std::int64_t>(tiles, h100.sm_count * g.blocks_per_sm));
        CHECK(plan.runs_beside == (p.lengths == attention_prefill::Lengths::paged && !g.by_rows()));
        CHECK(plan.workspace_bytes == (tunable(candidate, "dynamic") != 0 || plan.runs_beside ? 8 : 0));
        CHECK(launch.kernel == &candidate.variant->kernels[0]);
        const double us = candidate.variant->predict_us(problem, candidate.config, h100);
        CHECK(us > 0);
        CHECK(us < 1e8);
    });
}

TEST_CASE("wgmma: tensor maps describe the call's tensors, packed ones with the tokens that the call says") {
    using namespace attention_prefill;
    for_many_candidates([](const Problem& problem, const auto& p, const Candidate& candidate) {
        const Plan plan = candidate.variant->plan(problem, candidate.config, h100);
        REQUIRE(plan.tensor_map_count == 3);
        for (int i = 0; i < 3; ++i) {
            const TensorMap& map = plan.tensor_maps[static_cast<std::size_t>(i)];
            const int first_stride =
                std::array{q_batch_stride, k_batch_stride, v_batch_stride}[static_cast<std::size_t>(i)];
            CHECK(map.pointer == std::array{q, k, v}[static_cast<std::size_t>(i)]);
            CHECK(map.rank == 4);
            CHECK(map.extents[0] == p.head_dim);
            CHECK(map.extents[2] == (i == 0 ? p.heads : p.kv_heads));
            CHECK(map.stride_scalars[0] == first_stride + 1);
            CHECK(map.stride_scalars[1] == first_stride + 2);
            const bool copies_codes = i == 1 && geometry_of(problem, candidate).keys_stay_codes();
            const bool by_rows = i != 0 && geometry_of(problem, candidate).by_rows() && !copies_codes;
            CHECK(map.dtype == (i == 0 ? p.dtype : p.cache_dtype()));
            CHECK(map.box[0] * (copies_codes ? 1 : 2) == map.swizzle_bytes);
            CHECK(map.box[1] == (i == 0 ? 64 : by_rows ? 1 : geometry_of(problem, candidate).box_rows()));
            if (p.packed()) {
                CHECK(map.extent_scalars[1] == (i == 0 ? q_tokens : kv_tokens));
                CHECK(map.extents[3] == 1);
                CHECK(map.stride_scalars[2] == TensorMap::no_gaps);
            } else {
                CHECK(map.extent_scalars[1] == TensorMap::fixed);
                CHECK(map.extents[1] == (i == 0 ? p.q_len : p.kv_len));
                CHECK(map.extents[3] == p.batch);
                CHECK(map.stride_scalars[2] == first_stride);
            }
        }
    });
}

TEST_CASE("wgmma: every tile has its turn once, and in a section longer ones come first") {
    std::set<std::tuple<int, int, int, std::int64_t>> seen;
    for_many_candidates([&](const Problem& problem, const auto& p, const Candidate& candidate) {
        const Sections order = sections_of(candidate.variant->plan(problem, candidate.config, h100));
        const int slots = static_cast<int>(p.batch * p.heads);
        if (!seen.insert({order.rows, order.heads, order.count, slots}).second) return;
        std::vector<int> of_heads(static_cast<std::size_t>(slots * order.rows));
        std::vector<int> of_sections = of_heads;
        const auto at = [&](std::vector<int>& counts, attention_prefill::warpgroup::Place place) -> int& {
            return counts.at(static_cast<std::size_t>(place.slot * order.rows + place.row));
        };
        bool in_order = true;
        int section = -1;
        int row = 0;
        for (int index = 0; index < slots * order.rows; ++index) {
            ++at(of_heads, order.by_heads(index));
            const auto place = order.by_sections(index, slots);
            ++at(of_sections, place);
            const int own = std::min(place.slot / order.heads, order.count - 1);
            in_order &= own > section || (own == section && place.row <= row);
            section = own;
            row = place.row;
        }
        CHECK(in_order);
        CHECK(std::ranges::all_of(of_heads, [](int count) { return count == 1; }));
        CHECK(std::ranges::all_of(of_sections, [](int count) { return count == 1; }));
    });
    CHECK(seen.size() > 30);
}

TEST_CASE("wgmma: on a line of packed sequences every tile has a place, and hardly any place is empty") {
    using attention_prefill::warpgroup::Line;
    std::mt19937 random(11);
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    for (int round = 0; round < 300; ++round) {
        const int tile_m = draw(0, 1) == 0 ? 64 : 128;
        const int batch = draw(1, 70);
        std::vector<int> starts{0};
        for (int i = 0; i < batch; ++i) {
            const int kind = draw(0, 5);
            const int length = kind == 0 ? 0 : kind <= 2 ? 1 : kind == 3 ? 64 * draw(0, 4) : draw(1, 700);
            starts.push_back(starts.back() + (round % 7 == 0 ? 0 : length));
        }
        const int least = draw(0, 2);
        const Line line = attention_prefill::warpgroup::line_of(starts.data(), batch, tile_m, least);
        const auto queries = [&](int sequence) {
            const auto at = static_cast<std::size_t>(sequence);
            return starts[at + 1] - starts[at];
        };
        for (int i = 0; i < line.first; ++i) CHECK(queries(i) < least);
        if (line.first < line.sequences) CHECK(queries(line.first) >= least);
        for (int i = line.sequences; i < batch; ++i) CHECK(queries(i) < std::max(least, 1));
        if (line.first < line.sequences) CHECK(queries(line.sequences - 1) >= least);
        std::set<std::pair<int, int>> seen;
        int empty = 0;
        for (int row = 0; row < line.rows(); ++row) {
            const int sequence = line.sequence_at(row);
            const int own = row - line.first_row(sequence);
            REQUIRE(own >= 0);
            if (own * tile_m < queries(sequence)) {
                CHECK(seen.insert({sequence, own}).second);
            } else {
                ++empty;
            }
        }
        std::size_t wanted = 0;
        for (int i = line.first; i < line.sequences; ++i)
            wanted += static_cast<std::size_t>((queries(i) + tile_m - 1) / tile_m);
        CHECK(seen.size() == wanted);
        CHECK(empty <= line.sequences);
    }
}

TEST_CASE(
    "wgmma: a line of single tokens has a row for each, and one of nothing none, whatever comes behind") {
    using attention_prefill::warpgroup::line_of;
    std::vector<int> starts(301);
    for (int i = 0; i <= 300; ++i) starts[static_cast<std::size_t>(i)] = std::min(i, 200);
    CHECK(line_of(starts.data(), 300, 128, 1).rows() == 200);
    CHECK(line_of(starts.data(), 300, 64, 1).sequences == 200);
    CHECK(line_of(starts.data(), 300, 128, 2).rows() == 0);
    starts[300] = 1000;
    CHECK(line_of(starts.data(), 300, 128, 2).rows() == 7);
    CHECK(line_of(starts.data(), 300, 128, 2).sequence_at(0) == 299);
    for (int i = 1; i <= 300; ++i) starts[static_cast<std::size_t>(i)] = 1000 + std::min(i, 200);
    CHECK(line_of(starts.data(), 300, 128, 2).rows() == 8);  // the prompt in front
    CHECK(line_of(starts.data(), 300, 128, 2).sequences == 1);
    std::ranges::fill(starts, 0);
    CHECK(line_of(starts.data(), 300, 128, 1).rows() == 0);
}

TEST_CASE("wgmma: starts that no call may have lead to no row outside of the line") {
    const std::vector<int> starts{7, -5, 2147483647, -2147483647, 12, 3, 100};
    for (const int least : {1, 2, 1000}) {
        const auto line = attention_prefill::warpgroup::line_of(starts.data(), 6, 64, least);
        CHECK(line.rows() >= 0);
        for (int row = 0; row < std::min(line.rows(), 1000); ++row) {
            CHECK(line.sequence_at(row) >= 0);
            CHECK(line.sequence_at(row) < 6);
        }
    }
}

TEST_CASE("wgmma: tensor copies bring pages of whole swizzle patterns that fill stages, threads all else") {
    const auto by_rows = [](int page_size, int tile_n, int cache_bytes = 2) {
        return Geometry{.head_dim = 128, .tile_n = tile_n, .page_size = page_size, .cache_bytes = cache_bytes}
            .by_rows();
    };
    CHECK(!by_rows(0, 176));
    CHECK(!by_rows(64, 64));
    CHECK(!by_rows(256, 128));
    for (const int page_size : {1, 4, 48, 192}) CHECK(by_rows(page_size, 128));
    for (const int page_size : {8, 16, 64}) CHECK(!by_rows(page_size, 128));
    CHECK(by_rows(0, 128, 1));
    CHECK(by_rows(256, 128, 1));
}

TEST_CASE("wgmma: each warp that issues tensor copies has some of every stage, so that none falls behind") {
    for (const int page_size : {0, 8, 16, 32, 64, 128, 256}) {
        for (const int tile_n : {64, 80, 96, 112, 128, 144, 176}) {
            const Geometry g{.head_dim = 128, .tile_n = tile_n, .page_size = page_size};
            if (g.by_rows()) continue;
            CHECK(g.boxes() * g.box_rows() == tile_n);
            CHECK(g.box_warps() <= g.boxes());
            CHECK(g.box_warps() == std::min(4, g.boxes()));
            CHECK(g.producer_threads() == (g.boxes() == 1 ? 1 : 32 * g.box_warps()));
            CHECK(g.shared_bytes() - g.alignment >= g.next_tiles_at() + g.next_tiles_bytes());
        }
    }
}

TEST_CASE(
    "wgmma: codes wait in the producers' registers, sixteen a panel and pass, and take no shared memory") {
    const Geometry same{.head_dim = 128, .tile_n = 128, .page_size = 16};
    Geometry codes = same;
    codes.cache_bytes = 1;
    CHECK(codes.drawn_at() == same.drawn_at());
    CHECK(same.code_chunks() == 0);
    CHECK(codes.code_chunks() * codes.producer_threads() * 16 == 128 * 128);
    CHECK(codes.producer_registers() == 32 + 2 * 4 * codes.code_chunks());
    codes.bf16_queries = true;  // keys stay codes, which tensor copies bring
    CHECK(codes.keys_stay_codes());
    CHECK(same.drawn_at() - codes.drawn_at() == codes.stages * 128 * 128);
    CHECK(codes.producer_registers() == 56);
    for (const auto& [page_size, head_dim] : {std::pair{48, 128}, {16, 64}, {16, 192}}) {
        Geometry others = codes;
        others.page_size = page_size;
        others.head_dim = head_dim;
        CHECK(!others.keys_stay_codes());
    }
    codes.tile_n = 80;  // two passes of 64 rows
    codes.head_dim = 72;
    CHECK(codes.code_chunks() == 2 * 2);
}

TEST_CASE("wgmma: three consumers are for heads of up to 64 that have more than 128 queries") {
    const auto most = [](const std::string& head_dim, const std::string& queries) {
        const Problem problem =
            problem_of("dtype=fp16 causal=no heads=16 kv_heads=16 batch=1 head_dim=" + head_dim +
                       " q_len=" + queries + " kv_len=2048");
        std::int64_t consumers = 0;
        for (const Config& config : enumerate(problem, *find_variant(*problem.family, "wgmma"), h100))
            consumers = std::max(consumers, values_of<WgmmaConfig>(config).consumers);
        return consumers;
    };
    CHECK(most("64", "2048") == 3);
    CHECK(most("64", "128") == 2);
    CHECK(most("64", "64") == 1);
    CHECK(most("72", "2048") == 2);
    CHECK(most("128", "2048") == 2);
}

TEST_CASE("wgmma: keys in pages are mapped by pages, and queries are packed as ever") {
    for (const int page_size : {1, 16, 128}) {
        const Problem problem =
            problem_of("dtype=bf16 causal=yes lengths=paged page_size=" + std::to_string(page_size) +
                       " heads=32 kv_heads=8 head_dim=128 batch=4 q_len=1024 kv_len=4096");
        const Variant& wgmma = *find_variant(*problem.family, "wgmma");
        const Candidate candidate{&wgmma, *wgmma.fallback(problem, h100)};
        const Plan plan = wgmma.plan(problem, candidate.config, h100);
        REQUIRE(plan.tensor_map_count == 3);
        CHECK(plan.tensor_maps[0].extents[3] == 1);
        CHECK(plan.tensor_maps[0].extent_scalars[1] == attention_prefill::q_tokens);
        CHECK(geometry_of(problem, candidate).by_rows() == (page_size == 1));
        for (const std::size_t map : {1U, 2U}) {
            CHECK(plan.tensor_maps[map].extents[1] == static_cast<std::uint32_t>(page_size));
            CHECK(plan.tensor_maps[map].extent_scalars[3] == attention_prefill::pool_pages);
            CHECK(plan.tensor_maps[map].extent_scalars[1] == TensorMap::fixed);
            CHECK(plan.tensor_maps[map].box[1] ==
                  std::min<std::int64_t>(page_size, tunable(candidate, "tile_n")));
        }
        CHECK(plan.tensor_maps[1].stride_scalars[2] == attention_prefill::k_batch_stride);
    }
}

TEST_CASE("wgmma: the cost model is near measured times, and orders what was measured") {
    struct Measured {
        std::string problem, tunables;
        double us;
    };
    const std::string full = "dtype=bf16 heads=16 kv_heads=16 head_dim=128 ";
    const std::string causal = full + "causal=yes ";
    const std::string llama = "dtype=fp16 causal=yes heads=32 kv_heads=32 head_dim=128 ";
    const std::string gpt2 = "dtype=fp16 causal=yes heads=12 kv_heads=12 head_dim=64 ";
    const std::string wide = "dtype=bf16 causal=yes heads=8 kv_heads=8 head_dim=256 ";
    const std::string pair = "consumers=2 blocks_per_sm=1 section_mib=24 tile_n=";
    const std::string beside = "consumers=1 blocks_per_sm=2 section_mib=24 tile_n=";
    // An H100: fastest first where a problem stands more than once.
    const std::vector<Measured> measured{
        {full + "batch=32 q_len=512 kv_len=512", pair + "128", 142.1},
        {full + "batch=8 q_len=2048 kv_len=2048", pair + "128", 455.9},
        {full + "batch=1 q_len=16384 kv_len=16384", pair + "176", 3274},
        {full + "batch=1 q_len=16384 kv_len=16384", pair + "128", 3381},
        {causal + "batch=32 q_len=512 kv_len=512", "consumers=2 blocks_per_sm=1 section_mib=8 tile_n=128",
         106.8},
        {causal + "batch=32 q_len=512 kv_len=512", pair + "128", 127.5},
        {causal + "batch=2 q_len=8192 kv_len=8192", pair + "128", 908.8},
        {causal + "batch=2 q_len=8192 kv_len=8192", pair + "112", 967},
        {causal + "batch=2 q_len=8192 kv_len=8192", beside + "64", 1115},
        {llama + "batch=1 q_len=4096 kv_len=4096", pair + "128", 259.8},
        {llama + "batch=1 q_len=4096 kv_len=4096", beside + "64", 302.1},
        {gpt2 + "batch=1 q_len=1024 kv_len=1024", beside + "128", 12.7},
        {gpt2 + "batch=1 q_len=1024 kv_len=1024", pair + "128", 15.2},
        {wide + "batch=4 q_len=4096 kv_len=4096", pair + "80", 411.4},
    };
    for (std::size_t i = 0; i < measured.size(); ++i) {
        const Measured& m = measured[i];
        INFO(m.problem << " | " << m.tunables);
        const double us = predicted(m.problem, m.tunables);
        CHECK(us == doctest::Approx(m.us).epsilon(0.25));
        if (i > 0 && measured[i - 1].problem == m.problem)
            CHECK(us > predicted(measured[i - 1].problem, measured[i - 1].tunables));
    }
}
