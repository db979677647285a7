// Sample, variants cluster_row and plain: the blocks of a team share a row.
//
// cluster_row: a cluster of blocks, so that even one row brings many multiprocessors to work and no more than
// one pass over memory is needed. Data's way: global -> registers, or by way of registers to shared memory,
// of all blocks of the cluster, once, there on request counted by value; largest logit, histograms and masses
// between them through distributed shared memory; token -> global.
//
// plain: one block a row, for every GPU and any vocabulary. Data's way: global -> registers, at every look
// anew: once for the largest logit, once for each histogram, for the masses and for the token.
//
// The row comes home once. Its largest logit and that one's index meet in a first exchange between the
// blocks. Then logits become weights, the search finds the least weight that is kept (search.cuh), and the
// masses of what is kept meet in the last exchange: u is a random whole number below their sum, and the token
// whose mass covers it, in the order of the vocabulary, is taken. Every block knows where u falls and the one
// that owns the place finds the token; since masses are whole numbers, no sum depends on how the row was cut.
// After a search, blocks of more than a pair read their masses from the histograms, those that count by value
// from the values, and only the owner looks at its tokens, or at a part of them.
//
// Barriers: one in the block and one of the team for each exchange. Blocks read each other's memory in the
// search alone; the last exchange follows it, so nobody ends too early.
#include "sample/search.cuh"

namespace hone::sample::row {

/// Rises with the logit, and falls with the index among equal ones.
__device__ inline uint64 best_key(float logit, int index) {
    const uint32 bits = __float_as_uint(logit + 0.0f);  // one zero, not two
    const uint32 key = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    return static_cast<uint64>(key) << 32 | ~static_cast<uint32>(index);
}
__device__ inline float logit_of(uint64 key) {
    const uint32 bits = static_cast<uint32>(key >> 32);
    return __uint_as_float(bits >> 31 != 0 ? bits & 0x7fffffffu : ~bits);
}
__device__ inline int index_of(uint64 key) { return static_cast<int>(~static_cast<uint32>(key)); }

/// The mass that a draw goes over, and that of the logits as they are, where a log-probability is asked for.
struct Masses {
    uint64 kept;
    uint64 raw;
};

/// What each warp has found to be kept of each part.
struct PartScratch {
    uint64 masses[most_parts][32];
};
// What takes their places is of two types, so that it takes no room.
struct NoSearch {
    template <int threads>
    __device__ void clear() {}
};
struct NoParts {};

/// Shared memory of a block besides the row: the search, and what blocks and warps tell each other.
template <class Search, int blocks, int warps>
struct alignas(16) Scratch {
    [[no_unique_address]]
    typename Conditional<has_filters, typename Search::ScratchType, NoSearch>::type search;
    [[no_unique_address]] typename Conditional<Search::is_short, PartScratch, NoParts>::type parts;
    Masses block_masses[blocks];
    Masses warp_masses[warps];
    uint64 block_best[blocks];
    uint64 warp_best[warps];
};

template <class Team, class Home, int threads>
class Sampler {
  public:
    static constexpr int warps = threads / 32;
    using RowSearch = Search<Team, Home, threads>;
    using ScratchType = Scratch<RowSearch, Team::blocks, warps>;
    static_assert(warps <= 32 && threads % 32 == 0, "a lane stands for a warp");
    static_assert(sizeof(ScratchType) == scratch_bytes(Team::blocks, warps, has_filters, RowSearch::is_short),
                  "as the plan has it");

    __device__ Sampler(const Tensors& tensors, Home& home, ScratchType& scratch)
        : tensors_(tensors), home_(home), scratch_(scratch), row_(Team::row()) {}

    __device__ void run() {
        const Request request = tensors_.request(row_);
        const uint64 best = exchange_best(home_.load(tensors_, row_, searches(request)));
        const float largest = logit_of(best);
        const bool is_first = Team::rank() == 0 && threadIdx.x == 0;
        if (fabsf(largest) == infinity) {
            if (is_first) tensors_.write_infinite(row_, index_of(best), largest);
            return;
        }
        if (request.is_greedy) {
            uint64 raw = 0;
            if constexpr (has_log_probability) raw = exchange({0, raw_mass(largest)}).all.raw;
            if (is_first) tensors_.write(row_, index_of(best), largest, raw);
            return;
        }
        draw(request, largest);
    }

  private:
    __device__ uint64 exchange_best(float largest) {
        const uint64 mine = warp_max(best_key(largest, home_.index_of(largest)));
        if (lane_index() == 0) scratch_.warp_best[warp_index()] = mine;
        __syncthreads();
        Team::await_start();
        if (warp_index() == 0) {
            const uint64 block = warp_max(lane_index() < warps ? scratch_.warp_best[lane_index()] : 0);
            Team::post(&scratch_.block_best[Team::rank()], lane_index(), block);
        }
        Team::sync();
        return warp_max(lane_index() < Team::blocks ? scratch_.block_best[lane_index()] : 0);
    }

    /// The lane's mass at temperature 1.
    __device__ uint64 raw_mass(float largest) const {
        const Scaling scaling = Capped::scaling(largest, 1.0f);
        uint64 sum = 0;
#pragma unroll(Home::unroll)
        for (int step = 0; step < Home::steps; ++step) {
            float logits[Home::vector];
            home_.logits(step, logits);
#pragma unroll
            for (int i = 0; i < Home::vector; ++i) sum += Capped::mass(logits[i], scaling);
        }
        return sum;
    }

    struct Totals {
        Masses all;
        uint64 until;  ///< mass of the blocks up to lane i
        uint64 own;    ///< mass of block i
    };
    /// Tells all blocks the masses of this one, and adds up those of all.
    __device__ Totals exchange(const Masses& mine) {
        const Masses warp = warp_total(mine);
        if (lane_index() == 0) scratch_.warp_masses[warp_index()] = warp;
        __syncthreads();
        if (warp_index() == 0) {
            const Masses lane = lane_index() < warps ? scratch_.warp_masses[lane_index()] : Masses{0, 0};
            Team::post(&scratch_.block_masses[Team::rank()], lane_index(), warp_total(lane));
        }
        Team::sync();
        const Masses block = lane_index() < Team::blocks ? scratch_.block_masses[lane_index()] : Masses{0, 0};
        const uint64 until = inclusive_sum(block.kept);
        return {warp_total(block), until, block.kept};
    }
    __device__ static Masses warp_total(const Masses& lanes) {
        return {warp_sum(lanes.kept), has_log_probability ? warp_sum(lanes.raw) : 0};
    }

    /// Whether masses are sorted into histograms.
    __device__ static bool searches(const Request& request) {
        return has_filters && !request.is_greedy && (request.top_k != 0 || request.top_p < 1.0f);
    }

    __device__ void draw(const Request& request, float largest) {
        const uint64 raw = has_log_probability ? raw_mass(largest) : 0;
        home_.weigh(Capped::scaling(largest, request.temperature));
        uint32 least = 1;
        bool is_known = false;  // histograms have this block's mass
        uint64 kept = 0;
        if constexpr (has_filters) {
            RowSearch search(home_, scratch_.search);
            least = max(least, mass_from(request.min_p));
            least = max(least, search.run(request.top_k, request.top_p));
            if constexpr (Home::counts_values) {
                is_known = searches(request);
                if (is_known) kept = kept_of_parts(least);
            } else if constexpr (Team::blocks > 2 && !Home::looks_are_cheap) {
                is_known = search.knows(least);
                if (is_known) kept = search.kept_mass();
            }
        }
        if (!is_known) kept = kept_mass(least);
        const Totals blocks = exchange({kept, raw});
        uint64 drawn = high_product(request.random, blocks.all.kept);
        if (first_lane(drawn < blocks.until) != Team::rank()) return;
        drawn -= __shfl_sync(all_lanes, blocks.until - blocks.own, Team::rank());
        if (is_known) {
            if constexpr (Home::counts_values) look_at_part_of(drawn);
            const uint64 warp = warp_sum(kept_mass(least));
            if (lane_index() == 0) scratch_.warp_masses[warp_index()].kept = warp;
            __syncthreads();
        }
        take(drawn, least, largest, blocks.all.raw);
    }

    /// The lane's share of what this block keeps, by values; that of each part and warp stays behind.
    __device__ uint64 kept_of_parts(uint32 least) {
        uint64 kept[Home::parts] = {};
        home_.add_kept(least, kept);
        uint64 sum = 0;
#pragma unroll
        for (int part = 0; part < Home::parts; ++part) {
            sum += kept[part];
            const uint64 warp = warp_sum(kept[part]);
            if (lane_index() == 0) scratch_.parts.masses[part][warp_index()] = warp;
        }
        return sum;
    }
    /// Turns to the part whose masses cover `drawn`, which counts from its first token afterwards.
    __device__ void look_at_part_of(uint64& drawn) {
        int found = 0;
#pragma unroll
        for (int part = 0; part + 1 < Home::parts; ++part) {
            const uint64 own = warp_sum(lane_index() < warps ? scratch_.parts.masses[part][lane_index()] : 0);
            const bool is_beyond = found == part && drawn >= own;
            if (is_beyond) drawn -= own;
            found += is_beyond ? 1 : 0;
        }
        home_.look_at(found);
    }

    __device__ uint64 kept_mass(uint32 least) const {
        uint64 sum = 0;
#pragma unroll(Home::unroll)
        for (int step = 0; step < home_.looks(); ++step) sum += kept_mass(least, step);
        return sum;
    }
    /// The mass that stays of the lane's packet.
    __device__ uint64 kept_mass(uint32 least, int step) const {
        uint32 masses[Home::vector];
        if (!home_.masses_from(least, step, masses)) return 0;
        uint64 sum = 0;
#pragma unroll
        for (int i = 0; i < Home::vector; ++i) sum += masses[i] >= least ? masses[i] : 0u;
        return sum;
    }

    /// Finds the token of this block whose mass covers `drawn`, which counts from the block's first.
    __device__ void take(uint64 drawn, uint32 least, float largest, uint64 raw) const {
        const uint64 mine = lane_index() < warps ? scratch_.warp_masses[lane_index()].kept : 0;
        const uint64 until = inclusive_sum(mine);
        const int warp = first_lane(drawn < until);
        if (warp != warp_index()) return;
        uint64 rest = drawn - __shfl_sync(all_lanes, until - mine, warp);
        const int step = find_step(least, rest);
        take_of(step, rest, least, largest, raw);
    }
    /// The step whose masses cover `rest`, which counts from its first token afterwards. Lanes stand for
    /// steps.
    __device__ int find_step(uint32 least, uint64& rest) const {
        constexpr int chunk = Home::steps < 32 ? Home::steps : 32;
#pragma unroll(Home::unroll)
        for (int first = 0; first < home_.looks(); first += chunk) {
            uint64 mine = 0;
#pragma unroll(Home::unroll)
            for (int i = 0; i < chunk; ++i) {
                if (first + i >= home_.looks()) continue;
                const uint64 sum = warp_sum(kept_mass(least, first + i));
                if (lane_index() == i) mine = sum;
            }
            const uint64 until = inclusive_sum(mine);
            const int found = first_lane(rest < until);
            if (found < 32) {
                rest -= __shfl_sync(all_lanes, until - mine, found);
                return first + found;
            }
            rest -= __shfl_sync(all_lanes, until, 31);
        }
        return Home::steps;
    }
    /// Finds the token in a step.
    __device__ void take_of(int step, uint64 rest, uint32 least, float largest, uint64 raw) const {
        uint32 masses[Home::vector];
        home_.masses_at(step, masses);
        uint64 own = 0;
#pragma unroll
        for (int i = 0; i < Home::vector; ++i) {
            if (masses[i] < least) masses[i] = 0;
            own += masses[i];
        }
        uint64 sum = inclusive_sum(own) - own;
        if (rest < sum || rest >= sum + own) return;
        int index = 0;
#pragma unroll
        for (int i = 0; i < Home::vector; ++i) {
            sum += masses[i];
            if (sum <= rest) index = i + 1;
        }
        tensors_.write(row_, home_.token(step) + index, largest, raw);
    }

    const Tensors& tensors_;
    Home& home_;
    ScratchType& scratch_;
    int64 row_;
};

inline constexpr int threads = static_cast<int>(Tuned::threads);
inline constexpr LoadHint load_hint = static_cast<LoadHint>(Tuned::load_hint);
inline constexpr int blocks = static_cast<int>(Tuned::cluster);
inline constexpr bool in_shared = Tuned::home == 1 || Tuned::home == 2;
inline constexpr bool counts_values = Tuned::home == 2;
static_assert(!counts_values || Shape::softcap == 0, "values stand as far from the largest as their logits");

using Team = TeamOf<blocks>::type;
using RowLayout = Layout<Team, threads, static_cast<int>(Tuned::vector)>;
using ElementsHome =
    Conditional<counts_values, ValueHome<RowLayout, load_hint>, SharedHome<RowLayout, load_hint>>::type;
using LoadedHome = Conditional<in_shared, ElementsHome, RegisterHome<RowLayout, load_hint>>::type;
using Home = Conditional<Tuned::home == 3, GlobalHome<RowLayout>, LoadedHome>::type;
using RowSampler = Sampler<Team, Home, threads>;

/// Words in which values are counted.
inline constexpr int slots = counts_values ? value_parts(RowLayout::geometry, has_filters) * value_slots : 0;

/// Blocks that share a multiprocessor, 1024 threads of 64 registers, as far as their rows let them.
constexpr int resident() {
    constexpr int shared_bytes = 228 * 1024;
    constexpr int row_bytes = RowLayout::geometry.block_tokens() * static_cast<int>(sizeof(Element));
    constexpr int fit =
        shared_bytes / (static_cast<int>(sizeof(RowSampler::ScratchType)) + 4 * slots + row_bytes + 1024);
    if (!in_shared || fit < 1 || threads > 512) return 1;
    return fit < 1024 / threads ? fit : 1024 / threads;
}

/// Behind the scratch lie the slots of values, as zeros, and the elements.
template <class Home>
__device__ inline Home home_at(void* memory) {
    Home home{};
    auto* values = static_cast<uint32*>(memory);
    if constexpr (counts_values) {
        home.counts = values;
        clear_words<threads>(values, slots);
        __syncthreads();
        values += slots;
    }
    if constexpr (in_shared) home.elements = reinterpret_cast<Element*>(values);
    return home;
}

__device__ inline void run(const Tensors& tensors) {
    extern __shared__ uint4 memory[];
    auto& scratch = *reinterpret_cast<RowSampler::ScratchType*>(memory);
    Team::start();
    if constexpr (Tuned::programmatic != 0) release_successor();
    scratch.search.template clear<threads>();
    Home home = home_at<Home>(&scratch + 1);
    if constexpr (Tuned::programmatic != 0) wait_for_predecessor();
    RowSampler(tensors, home, scratch).run();
}

}  // namespace hone::sample::row

extern "C" __global__ void __launch_bounds__(hone::sample::row::threads, hone::sample::row::resident())
    sample_row(HONE_PARAMETERS(sample_row)) {
    const hone::sample::Tensors tensors{HONE_ARGUMENTS(sample_row)};
    hone::sample::row::run(tensors);
}
