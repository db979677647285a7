// Finds the least weight that top-k and top-p keep.
//
// Two histograms find a threshold exactly. The first counts all tokens by the bin of their weight and sums
// the rest of their significands, so a bin's mass is known exactly; the second counts the tokens of the one
// bin in which the threshold lies by that rest, and its bins are single weights. Both are searched alike:
// every block posts the totals of 32 groups of 64 bins to all blocks, a barrier, every warp finds the group
// by a scan over its lanes, and every block reads the group's bins of all blocks. A histogram is left as it
// is once its barrier has passed.
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

/// The least weight that is kept, by its bits, and all that is kept.
struct Threshold {
    uint32 bits;
    Part kept;
};

template <class Team, class Home, int threads>
class Search {
  public:
    using ScratchType = Scratch<Team::blocks, threads / 32>;

    __device__ Search(const Home& home, ScratchType& scratch) : home_(home), scratch_(scratch) {}

    /// Bits of the least weight that both keep; 0 where all stay. All threads of all blocks together.
    __device__ uint32 run(uint32 top_k, float top_p) {
        const bool has_top_p = top_p < 1.0f;
        if (top_k == 0 && !has_top_p) return 0;
        count_all();
        coarse_ = group_parts({false, 0}, 0);
        coarse_until_ = inclusive_sum(coarse_);
        Threshold found{0, of_lane(coarse_until_, 31)};
        if (top_k != 0 && top_k < found.kept.count) found = find({false, top_k}, 0);
        if (has_top_p) found = find({true, part_of(found.kept.mass, top_p)}, 1);
        return found.bits;
    }

  private:
    __device__ void count_all() {
#pragma unroll(Home::unroll)
        for (int step = 0; step < Home::steps; ++step) {
            float weights[Home::vector];
            home_.weights(step, weights);
#pragma unroll
            for (int i = 0; i < Home::vector; ++i) {
                const uint32 bits = __float_as_uint(weights[i]);
                if (bits == 0) continue;
                atomicAdd(&scratch_.search.counts[0][Bin::of(bits)], 1u);
                atomicAdd(&scratch_.search.rests[Bin::of(bits)], Bin::rest(bits));
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
    /// A lane adds two bins.
    __device__ uint4 block_totals(const Level& level, int stage, int bin) const {
        const uint2 count = *reinterpret_cast<const uint2*>(&scratch_.search.counts[stage][bin]);
        uint2 rest{0, 0};
        if (!level.is_fine) rest = *reinterpret_cast<const uint2*>(&scratch_.search.rests[bin]);
        const uint32 offset = bin % group_bins;
        return {warp_sum(count.x + count.y), warp_sum(count.x * offset + count.y * (offset + 1)),
                level.is_fine ? 0 : warp_sum(rest.x + rest.y), 0};
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
        add_bins(scratch_.search.counts[stage] + first_bin, sums[0]);
        if (!level.is_fine) add_bins(scratch_.search.rests + first_bin, sums[1]);
        __syncthreads();
        return cross(level, first_bin, above, target, sums);
    }
    /// Adds up the bins of a group over all blocks; several threads share a bin where there are enough.
    __device__ void add_bins(const uint32* bins_of_group, uint32 (&sums)[group_bins]) {
        constexpr int enough = threads < group_bins ? 1 : threads / group_bins;
        constexpr int readers = Team::blocks < enough ? Team::blocks : enough;
        for (int i = threadIdx.x; i < group_bins * readers; i += threads) {
            const int bin = i % group_bins;
            uint32 sum = 0;
#pragma unroll
            for (int block = 0; block < Team::blocks; block += readers)
                sum += Team::read(bins_of_group + bin, block + i / group_bins);
            atomicAdd(&sums[bin], sum);
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
        if (coarse.own.count == 1) return {Bin::bits(coarse.bin), coarse.above + coarse.own};
        const Level level{true, coarse.bin};
        const int stage = 1 + which;
        uint32* counts = scratch_.search.counts[stage];
        home_.visit_bin(coarse.bin, [&](uint32 bits) { atomicAdd(&counts[Bin::rest(bits)], 1u); });
        const Part parts = group_parts(level, stage);
        const Crossing fine = locate(level, stage, parts, inclusive_sum(parts), target.beyond(coarse.above),
                                     scratch_.search.sums[2 + which]);
        return {Bin::bits(coarse.bin) | fine.bin << 6, coarse.above + fine.above + fine.own};
    }

    const Home& home_;
    ScratchType& scratch_;
    Part coarse_;
    Part coarse_until_;
};

}  // namespace hone::sample
