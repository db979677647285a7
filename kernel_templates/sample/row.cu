// Sample, variants cluster_row and plain: the blocks of a team share a row.
//
// cluster_row: a cluster of blocks, so that even one row brings many multiprocessors to work and no more than
// one pass over memory is needed. Data's way: global -> registers, or by way of registers to shared memory,
// of all blocks of the cluster, once, there on request counted by value; largest logit, histograms and masses
// between them through distributed shared memory (sampler.cuh); token -> global.
//
// plain: one block a row, for every GPU and any vocabulary. Data's way: global -> registers, at every look
// anew: once for the largest logit, once for each histogram, for the masses and for the token.
#include "sample/sampler.cuh"

namespace hone::sample::row {

inline constexpr int threads = static_cast<int>(Tuned::threads);
inline constexpr LoadHint load_hint = static_cast<LoadHint>(Tuned::load_hint);
inline constexpr int blocks = static_cast<int>(Tuned::cluster);
inline constexpr bool in_shared = Tuned::home == 1 || Tuned::home == 2;
inline constexpr bool counts_values = Tuned::home == 2;

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
        fill<threads>(values, slots);
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
    scratch.template clear<threads>();
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
