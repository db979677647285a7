// Finds the least mass that top-k and top-p keep.
//
// Two histograms find a threshold exactly. The first counts all tokens by the bin of their mass and sums the
// rest of their significands, so a bin's mass is known exactly; the second counts the tokens of the one bin
// in which the threshold lies by that rest, and its bins are single masses. Both are searched alike: every
// block posts the totals of 32 groups of 64 bins to all blocks, a barrier, every warp finds the group by a
// scan over its lanes, and every block reads the group's bins of all blocks. A histogram is left as it is
// once its barrier has passed.
//
// Count and rests of the first histogram share a word, so that a token costs one addition in shared memory. A
// block with a bin of more tokens than fit finds it by counting, and counts again into two words (rows of
// equal logits, very high temperatures).
#pragma once

#include "sample/home.cuh"
#include "sample/scratch.cuh"

namespace hone::sample {

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
    uint32 coarse_bin;  ///< of the fine histogram

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
    using ScratchType = Scratch<Team::blocks, threads / 32>;

    __device__ Search(const Home& home, ScratchType& scratch) : home_(home), scratch_(scratch) {}

    /// The least mass that both keep; 0 where all stay. All threads of all blocks together.
    __device__ uint32 run(uint32 top_k, float top_p) {
        const bool has_top_p = top_p < 1.0f;
        if (top_k == 0 && !has_top_p) return 0;
        if (!count_packed()) count_apart();
        coarse_ = group_parts({false, 0}, 0);
        coarse_until_ = inclusive_sum(coarse_);
        Threshold found{0, of_lane(coarse_until_, 31)};
        if (top_k != 0 && top_k < found.kept.count) found = find({false, top_k}, 0);
        if (has_top_p) found = find({true, part_of(found.kept.mass, top_p)}, 1);
        return found.mass;
    }

  private:
    /// Counts this block's tokens by bins; false where one has too many for its word.
    __device__ bool count_packed() {
        uint32 seen = 0;
        count([&](uint32 bits) {
            atomicAdd(&scratch_.search.words[0][Bin::of(bits)], packed_one | Bin::rest(bits));
            ++seen;
        });
        __syncthreads();
        uint32 found = 0;
        for (int bin = threadIdx.x; bin < bins; bin += threads)
            found += scratch_.search.words[0][bin] / packed_one;
        const uint32 lost = warp_sum(seen) - warp_sum(found);
        if (lane_index() == 0) scratch_.search.lost[warp_index()] = lost;
        __syncthreads();
        is_packed_ = warp_sum(lane_index() < threads / 32 ? scratch_.search.lost[lane_index()] : 0) == 0;
        return is_packed_;
    }
    __device__ void count_apart() {
        for (int bin = threadIdx.x; bin < bins; bin += threads) scratch_.search.words[0][bin] = 0;
        __syncthreads();
        count([&](uint32 bits) {
            atomicAdd(&scratch_.search.words[0][Bin::of(bits)], 1u);
            atomicAdd(&scratch_.search.rests[Bin::of(bits)], Bin::rest(bits));
        });
    }
    /// Calls add(bits) for every mass above 0.
    template <class Add>
    __device__ void count(Add add) const {
#pragma unroll(Home::unroll)
        for (int step = 0; step < Home::steps; ++step) {
            uint32 masses[Home::vector];
            home_.masses(step, masses);
#pragma unroll
            for (int i = 0; i < Home::vector; ++i) {
                if (masses[i] != 0) add(Bin::bits(masses[i]));
            }
        }
    }

    /// Posts this block's totals of all groups, once its histogram is complete, and adds up those of all
    /// blocks. In lane i group 31 - i: sums from lane 0 on are sums from the largest weight on.
    __device__ Part group_parts(const Level& level, int stage) {
        __syncthreads();
        for (int group = warp_index(); group < groups; group += threads / 32) {
            const uint4 totals = block_totals(level, stage, group * group_bins + 2 * lane_index());
            Team::post(&scratch_.search.totals[stage][Team::rank()][group], lane_index(), totals);
        }
        Team::sync();
        uint4& sum = scratch_.search.group_totals[stage][lane_index()];
        if (warp_index() == 0) sum = team_totals(stage, lane_index());
        __syncthreads();
        const int group = groups - 1 - lane_index();
        const uint4 totals = scratch_.search.group_totals[stage][group];
        return level.part(group * group_bins, totals.x, totals.y, totals.z);
    }
    /// A lane adds two bins. The last word says how the block counted.
    __device__ uint4 block_totals(const Level& level, int stage, int bin) const {
        const uint2 word = *reinterpret_cast<const uint2*>(&scratch_.search.words[stage][bin]);
        uint2 count = word;
        uint2 rest{0, 0};
        if (!level.is_fine) {
            rest = is_packed_ ? uint2{word.x % packed_one, word.y % packed_one}
                              : *reinterpret_cast<const uint2*>(&scratch_.search.rests[bin]);
            if (is_packed_) count = {word.x / packed_one, word.y / packed_one};
        }
        const uint32 offset = bin % group_bins;
        return {warp_sum(count.x + count.y), warp_sum(count.x * offset + count.y * (offset + 1)),
                level.is_fine ? 0 : warp_sum(rest.x + rest.y), is_packed_ ? 1u : 0u};
    }
    __device__ uint4 team_totals(int stage, int group) const {
        uint4 sum{0, 0, 0, 0};
#pragma unroll
        for (int block = 0; block < Team::blocks; ++block) {
            const uint4 totals = scratch_.search.totals[stage][block][group];
            sum.x += totals.x;
            sum.y += totals.y;
            sum.z += totals.z;
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
        const uint32 word = Team::read(&scratch_.search.words[stage][bin], block);
        if (level.is_fine) {
            count += word;
        } else if (scratch_.search.totals[0][block][0].w != 0) {
            count += word / packed_one;
            rest += word % packed_one;
        } else {
            count += word;
            rest += Team::read(&scratch_.search.rests[bin], block);
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

    __device__ Threshold find(const Target& target, int which) {
        const Crossing coarse =
            locate({false, 0}, 0, coarse_, coarse_until_, target, scratch_.search.sums[which]);
        if (coarse.own.count == 1) return {Bin::mass(coarse.bin, 0), coarse.above + coarse.own};
        const Level level{true, coarse.bin};
        const int stage = 1 + which;
        uint32* counts = scratch_.search.words[stage];
        home_.visit_bin(coarse.bin, [&](uint32 bits) { atomicAdd(&counts[Bin::rest(bits)], 1u); });
        const Part parts = group_parts(level, stage);
        const Crossing fine = locate(level, stage, parts, inclusive_sum(parts), target.beyond(coarse.above),
                                     scratch_.search.sums[2 + which]);
        return {Bin::mass(coarse.bin, fine.bin), coarse.above + fine.above + fine.own};
    }

    const Home& home_;
    ScratchType& scratch_;
    bool is_packed_ = true;
    Part coarse_;
    Part coarse_until_;
};

}  // namespace hone::sample
