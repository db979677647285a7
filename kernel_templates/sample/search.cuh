// Finds the least mass that top-k and top-p keep.
//
// Two histograms find a threshold exactly. The first counts all tokens by the bin of their mass and sums the
// rest of their significands, so a bin's mass is known exactly; the second counts the tokens of the one bin
// in which the threshold lies by that rest, and its bins are single masses. Both are searched alike: every
// block posts the totals of 32 groups of 64 bins to all blocks, a barrier, every warp finds the group by a
// scan over its lanes, and every block reads the group's bins of all blocks. A histogram is left as it is
// once its barrier has passed.
//
// Count and rests of the first histogram share a word, so that a token costs one addition in shared memory.
// Where the histogram shows fewer tokens than were seen, a bin of some block had more than fit, and all
// blocks count again into two words (rows of equal logits, very high temperatures). A home that has counted
// its tokens by value brings values instead, which go into two words at once.
//
// Where tokens are counted by value, few values share a bin as a rule, and the second histogram is not
// needed.
//
// The histograms stay behind and tell a block the mass of what it keeps, without another look at its tokens.
#pragma once

#include "device/team.cuh"
#include "sample/home.cuh"

namespace hone::sample {

using hone::inclusive_sum;

/// A token in a word of the first histogram; rests of 2^10 tokens stand below it.
inline constexpr uint32 packed_one = 1u << 22;

/// Shared memory of a search.
template <int blocks, int stages>
struct SearchScratch {
    uint32 words[stages][bins];  ///< counts; of the first histogram above the rests, where they fit
    uint32 rests[bins];
    uint32 seen[32];                       ///< tokens of each warp in the first histogram
    uint4 totals[stages][blocks][groups];  ///< count, offsets in the group, rests, tokens seen
    uint4 group_totals[stages][groups];
    uint32 sums[searches][2][group_bins];

    /// Histograms and sums begin as zeros. By all threads; seen by them after the next barrier.
    template <int threads>
    __device__ void clear() {
        clear_words<threads>(&words[0][0], stages * bins);
        clear_words<threads>(rests, bins);
        clear_words<threads>(&sums[0][0][0], searches * 2 * group_bins);
    }
};

/// Tokens and their mass.
struct Part {
    uint32 count;
    uint64 mass;

    __device__ Part operator+(const Part& other) const { return {count + other.count, mass + other.mass}; }
    __device__ Part operator-(const Part& other) const { return {count - other.count, mass - other.mass}; }
};
__device__ inline Part inclusive_sum(const Part& part) {
    return {inclusive_sum(part.count), inclusive_sum(part.mass)};
}
__device__ inline Part of_lane(const Part& part, int lane) {
    return {__shfl_sync(all_lanes, part.count, lane), __shfl_sync(all_lanes, part.mass, lane)};
}

/// How far from the top a threshold lies: so many tokens, or so much mass.
struct Target {
    bool is_mass;
    uint64 amount;

    __device__ bool reached(const Part& part) const { return (is_mass ? part.mass : part.count) >= amount; }
    __device__ Target beyond(const Part& part) const {
        return {is_mass, amount - (is_mass ? part.mass : part.count)};
    }
};

/// One of the two histograms: what a bin of it means.
struct Level {
    bool is_fine;
    uint32 coarse_bin;  ///< the bin that the fine histogram splits

    __device__ uint32 significand(uint32 bin) const {
        constexpr uint32 leading = group_bins;
        return is_fine ? (leading + coarse_bin % group_bins) * bins + bin
                       : (leading + bin % group_bins) * bins;
    }
    __device__ uint32 step() const { return is_fine ? 1 : bins; }
    __device__ Part part(uint32 first_bin, uint32 count, uint32 offsets, uint32 rests) const {
        const uint64 sum = static_cast<uint64>(count) * significand(first_bin) +
                           static_cast<uint64>(offsets) * step() + rests;
        return {count, mass_of_sum(sum, is_fine ? coarse_bin : first_bin)};
    }
};

/// Where a threshold lies: the bin, what stands above it, and what stands in it.
struct Crossing {
    uint32 bin;
    Part above;
    Part own;
};

/// The least mass that is kept, and all that is kept.
struct Threshold {
    uint32 mass;
    Part kept;
};

template <class Team, class Home, int threads>
class Search {
  public:
    static constexpr bool is_short = Home::counts_values;
    using ScratchType = SearchScratch<Team::blocks, search_stages(is_short)>;

    __device__ Search(const Home& home, ScratchType& scratch) : home_(home), scratch_(scratch) {}

    /// The least mass that both keep; 0 where all stay. All threads of all blocks together.
    __device__ uint32 run(uint32 top_k, float top_p) {
        const bool has_top_p = top_p < 1.0f;
        if (top_k == 0 && !has_top_p) return 0;
        count_tokens();
        coarse_until_ = inclusive_sum(coarse_);
        Threshold found{0, of_lane(coarse_until_, 31)};
        if (top_k != 0 && top_k < found.kept.count) found = find({false, top_k}, 0);
        if (has_top_p) found = find({true, part_of(found.kept.mass, top_p)}, 1);
        return found.mass;
    }

    /// Whether kept_mass(least) is known. After run().
    __device__ bool knows(uint32 least) const { return is_counted_ && least == max(kept_.least, 1u); }
    /// The thread's part of this block's masses that are kept.
    __device__ uint64 kept_mass() const {
        uint64 sum = 0;
        for (int bin = threadIdx.x; bin < bins; bin += threads) {
            if (bin >= kept_.first_bin) sum += coarse_part(bin).mass;
            if (bin < kept_.first_fine_bin) continue;
            const uint32 tokens = scratch_.words[kept_.stage][bin];
            sum += Level{true, static_cast<uint32>(kept_.first_bin - 1)}.part(bin, tokens, 0, 0).mass;
        }
        return sum;
    }

  private:
    __device__ void count_tokens() {
        is_counted_ = true;
        if constexpr (Home::counts_values) {
            count_values();
        } else {
            count_packed();
        }
        for (;;) {
            coarse_ = group_parts({false, 0}, 0);
            if (!is_packed_ || seen_ == warp_sum(coarse_.count)) return;
            Team::sync();
            is_packed_ = false;
            count_apart();
        }
    }
    __device__ void count_values() {
        is_packed_ = false;
        is_counted_ = true;
        home_.visit_counted([&](uint32 bits, uint32 tokens) {
            atomicAdd(&scratch_.words[0][Bin::of(bits)], tokens);
            atomicAdd(&scratch_.rests[Bin::of(bits)], tokens * Bin::rest(bits));
        });
    }
    /// Counts this block's tokens by bins, and how many they are.
    __device__ void count_packed() {
        uint32 seen = 0;
        const uint32 first = shared_address(scratch_.words[0]) - Bin::first * 4;
        count([&](uint32 mass) {
            const uint32 bits = Bin::bits(mass);
            add_where(mass, first + (bits >> 17 << 2), packed_one | Bin::rest(bits));
            seen += mass != 0 ? 1 : 0;
        });
        seen = warp_sum(seen);
        if (lane_index() == 0) scratch_.seen[warp_index()] = seen;
    }
    __device__ void count_apart() {
        for (int bin = threadIdx.x; bin < bins; bin += threads) scratch_.words[0][bin] = 0;
        __syncthreads();
        count([&](uint32 mass) {
            if (mass == 0) return;
            asm volatile("" : "+r"(mass));  // nothing of this rare count is made before it
            const uint32 bits = Bin::bits(mass);
            atomicAdd(&scratch_.words[0][Bin::of(bits)], 1u);
            atomicAdd(&scratch_.rests[Bin::of(bits)], Bin::rest(bits));
        });
    }
    /// Calls add(mass) for every token.
    template <class Add>
    __device__ void count(Add add) const {
#pragma unroll(Home::unroll)
        for (int step = 0; step < Home::steps; ++step) {
            uint32 masses[Home::vector];
            home_.masses(step, masses);
#pragma unroll
            for (int i = 0; i < Home::vector; ++i) add(masses[i]);
        }
    }

    /// Tokens that this block's warp `warp` has seen.
    __device__ uint32 seen_by(const Level& level, int warp) const {
        return level.is_fine || !is_packed_ || warp >= threads / 32 ? 0 : scratch_.seen[warp];
    }

    /// Posts this block's totals of all groups, once its histogram is complete, and adds up those of all
    /// blocks. In lane i group 31 - i: sums from lane 0 on are sums from the largest weight on.
    __device__ Part group_parts(const Level& level, int stage) {
        __syncthreads();
        for (int group = warp_index(); group < groups; group += threads / 32) {
            uint4 totals = block_totals(level, stage, group * group_bins + 2 * lane_index());
            totals.w = seen_by(level, group);
            Team::post(&scratch_.totals[stage][Team::rank()][group], lane_index(), totals);
        }
        Team::sync();
        uint4& sum = scratch_.group_totals[stage][lane_index()];
        if (warp_index() == 0) sum = team_totals(stage, lane_index());
        __syncthreads();
        const int group = groups - 1 - lane_index();
        const uint4 totals = scratch_.group_totals[stage][group];
        if (!level.is_fine) seen_ = warp_sum(totals.w);
        return level.part(group * group_bins, totals.x, totals.y, totals.z);
    }
    /// A lane adds two bins.
    __device__ uint4 block_totals(const Level& level, int stage, int bin) const {
        const uint2 word = *reinterpret_cast<const uint2*>(&scratch_.words[stage][bin]);
        uint2 count = word;
        uint2 rest{0, 0};
        if (!level.is_fine) {
            rest = is_packed_ ? uint2{word.x % packed_one, word.y % packed_one}
                              : *reinterpret_cast<const uint2*>(&scratch_.rests[bin]);
            if (is_packed_) count = {word.x / packed_one, word.y / packed_one};
        }
        const uint32 offset = bin % group_bins;
        return {warp_sum(count.x + count.y), warp_sum(count.x * offset + count.y * (offset + 1)),
                level.is_fine ? 0 : warp_sum(rest.x + rest.y), 0};
    }
    __device__ uint4 team_totals(int stage, int group) const {
        uint4 sum{0, 0, 0, 0};
#pragma unroll
        for (int block = 0; block < Team::blocks; ++block) {
            const uint4 totals = scratch_.totals[stage][block][group];
            sum.x += totals.x;
            sum.y += totals.y;
            sum.z += totals.z;
            sum.w += totals.w;
        }
        return sum;
    }

    /// The bin of a target that the groups reach. `sums` are zeros.
    __device__ Crossing locate(const Level& level, int stage, const Part& groups_part, const Part& until,
                               const Target& target, uint32 (&sums)[2][group_bins]) {
        const int lane = first_lane(target.reached(until));
        const uint32 first_bin = (groups - 1 - lane) * group_bins;
        const Part above = of_lane(until - groups_part, lane);
        add_bins(level, stage, first_bin, sums);
        __syncthreads();
        return cross(level, first_bin, above, target, sums);
    }
    /// Adds up the bins of a group over all blocks; several threads share a bin where there are enough.
    __device__ void add_bins(const Level& level, int stage, uint32 first_bin, uint32 (&sums)[2][group_bins]) {
        constexpr int enough = threads < group_bins ? 1 : threads / group_bins;
        constexpr int readers = Team::blocks < enough ? Team::blocks : enough;
        for (int i = threadIdx.x; i < group_bins * readers; i += threads) {
            uint32 count = 0, rest = 0;
#pragma unroll
            for (int block = 0; block < Team::blocks; block += readers)
                add_bin(level, stage, first_bin + i % group_bins, block + i / group_bins, count, rest);
            atomicAdd(&sums[0][i % group_bins], count);
            if (!level.is_fine) atomicAdd(&sums[1][i % group_bins], rest);
        }
    }
    __device__ void add_bin(const Level& level, int stage, int bin, int block, uint32& count,
                            uint32& rest) const {
        const uint32 word = Team::read(&scratch_.words[stage][bin], block);
        if (level.is_fine) {
            count += word;
        } else if (is_packed_) {
            count += word / packed_one;
            rest += word % packed_one;
        } else {
            count += word;
            rest += Team::read(&scratch_.rests[bin], block);
        }
    }
    /// A lane has two neighbouring bins, the first lane the upper ones.
    __device__ static Crossing cross(const Level& level, uint32 first_bin, const Part& above,
                                     const Target& target, const uint32 (&sums)[2][group_bins]) {
        const int high = group_bins - 1 - 2 * lane_index();
        const Part upper = level.part(first_bin + high, sums[0][high], 0, sums[1][high]);
        const Part lower = level.part(first_bin + high - 1, sums[0][high - 1], 0, sums[1][high - 1]);
        const Part before = above + inclusive_sum(upper + lower) - (upper + lower);
        const bool is_upper = target.reached(before + upper);
        const int lane = first_lane(target.reached(before + upper + lower));
        const Crossing mine = is_upper ? Crossing{first_bin + high, before, upper}
                                       : Crossing{first_bin + high - 1, before + upper, lower};
        return {__shfl_sync(all_lanes, mine.bin, lane), of_lane(mine.above, lane), of_lane(mine.own, lane)};
    }

    /// A bin of this block's first histogram.
    __device__ Part coarse_part(uint32 bin) const {
        const uint32 word = scratch_.words[0][bin];
        return is_packed_ ? Level{false, 0}.part(bin, word / packed_one, 0, word % packed_one)
                          : Level{false, 0}.part(bin, word, 0, scratch_.rests[bin]);
    }

    /// Where top-k and top-p share a histogram, makes it zeros for the second.
    __device__ void clear_again(int stage) {
        if (kept_.stage != stage) return;
        Team::sync();
        clear_words<threads>(scratch_.words[stage], bins);
        __syncthreads();
    }

    __device__ Threshold find(const Target& target, int which) {
        const Crossing coarse = locate({false, 0}, 0, coarse_, coarse_until_, target, scratch_.sums[which]);
        if (coarse.own.count == 1) {
            const uint32 mass = Bin::mass(coarse.bin, 0);
            kept_ = {mass, static_cast<int>(coarse.bin), bins, kept_.stage};
            return {mass, coarse.above + coarse.own};
        }
        if constexpr (Home::counts_values) {
            Threshold found;
            if (find_among_few(target, coarse, found)) return found;
        }
        const Level level{true, coarse.bin};
        const int stage = is_short ? 1 : 1 + which;
        if constexpr (is_short) clear_again(stage);
        uint32* counts = scratch_.words[stage];
        home_.visit_bin(coarse.bin,
                        [&](uint32 bits, uint32 tokens) { atomicAdd(&counts[Bin::rest(bits)], tokens); });
        const Part parts = group_parts(level, stage);
        const Crossing fine = locate(level, stage, parts, inclusive_sum(parts), target.beyond(coarse.above),
                                     scratch_.sums[2 + which]);
        const uint32 mass = Bin::mass(coarse.bin, fine.bin);
        kept_ = {mass, static_cast<int>(coarse.bin) + 1, static_cast<int>(fine.bin), stage};
        return {mass, coarse.above + fine.above + fine.own};
    }

    /// Where a bin has no more values than a warp has lanes: their tokens are read from all blocks at once.
    __device__ bool find_among_few(const Target& target, const Crossing& coarse, Threshold& found) const {
        int slot;
        if (!home_.slots_of_bin(coarse.bin, slot)) return false;
        uint32 mass = slot >= 0 ? home_.mass_of_slot(slot) : 0;
        if (mass != 0 && Bin::of(Bin::bits(mass)) != coarse.bin) mass = 0;
        uint32 tokens = 0;
        if (mass != 0) {
#pragma unroll
            for (int i = 0; i < Team::blocks * Home::parts; ++i) {
                const int part = i % Home::parts;
                tokens += Team::read(&home_.counts[part * value_slots + slot], i / Home::parts);
            }
        }
        const Part until = coarse.above + inclusive_sum(Part{tokens, static_cast<uint64>(tokens) * mass});
        const int lane = first_lane(target.reached(until));
        if (lane == 32) return false;
        found.mass = __shfl_sync(all_lanes, mass, lane);
        const uint32 kept = __ballot_sync(all_lanes, mass >= found.mass);  // values of equal mass among them
        found.kept = of_lane(until, 31 - __clz(static_cast<int>(kept)));
        return true;
    }

    const Home& home_;
    ScratchType& scratch_;
    bool is_packed_ = true;
    bool is_counted_ = false;
    uint32 seen_ = 0;  ///< by all blocks, for the first histogram
    Part coarse_;
    Part coarse_until_;
    /// What is kept, in bins: those of the first histogram from one on, and those of the second that stand
    /// below.
    struct Kept {
        uint32 least;
        int first_bin;
        int first_fine_bin;  ///< `bins`: none
        int stage;           ///< stage of the second histogram; 0 before there is one
    };
    Kept kept_{0, 0, bins, 0};
};

}  // namespace hone::sample
