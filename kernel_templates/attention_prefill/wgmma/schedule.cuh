// Variant wgmma (kernel.cu): its tunables, and which tiles a block works on, in which order.
#pragma once

#include "attention_prefill/problem.cuh"
#include "attention_prefill/wgmma/geometry.cuh"
#include "device/mma.cuh"
#include "device/shared_tile.cuh"
#include "device/warpgroup.cuh"

namespace hone::attention_prefill::warpgroup {

inline constexpr Geometry geometry{.head_dim = head_dim,
                                   .consumers = static_cast<int>(Tuned::consumers),
                                   .tile_n = static_cast<int>(Tuned::tile_n),
                                   .stages = static_cast<int>(Tuned::stages),
                                   .query_stages = static_cast<int>(Tuned::query_stages),
                                   .blocks_per_sm = static_cast<int>(Tuned::blocks_per_sm),
                                   .page_size = static_cast<int>(Shape::page_size),
                                   .cache_bytes = sizeof(CacheElement),
                                   .bf16_queries = is_bf16<Element>};

inline constexpr int consumers = geometry.consumers;
inline constexpr int tile_m = geometry.tile_m();
inline constexpr int tile_n = geometry.tile_n;
inline constexpr int stages = geometry.stages;
inline constexpr int query_stages = geometry.query_stages;
inline constexpr int panels = geometry.panels();
inline constexpr bool ping_pong = consumers > 1;
inline constexpr bool query_in_registers = Tuned::query_in_registers != 0;
inline constexpr bool softmax_first = Tuned::softmax_first != 0;
inline constexpr bool dynamic = Tuned::dynamic != 0;
inline constexpr bool programmatic = Tuned::programmatic != 0;
inline constexpr bool late_maxima = Tuned::late_maxima != 0;
/// Threads copy keys and values, and widen codes.
inline constexpr bool by_rows = geometry.by_rows();
/// Of a call over pages there may be a launch for its single tokens in front, beside which this one runs.
/// Threads that copy rows lack the registers to draw tiles.
inline constexpr bool may_be_beside = lengths == Lengths::paged && !by_rows;
/// Whole warps are at work in the producer's warpgroup, not one thread.
inline constexpr bool many_produce = geometry.many_produce();

/// Keys are multiplied as codes, with queries that are two codes each.
inline constexpr bool keys_stay_codes = geometry.keys_stay_codes();

/// What the tensor cores multiply. Other codes become fp16, which takes an instruction for two of them, and
/// weights are rounded to it; queries in bf16 are converted (queries.cuh).
using Operand = Conditional<fp8_cache, fp16, Element>::type;
inline constexpr bool converts_queries = fp8_cache && is_bf16<Element>;

static_assert(head_dim % 8 == 0, "rows of 16-byte chunks");
static_assert(tile_n % 16 == 0 && tile_n <= 256,
              "keys are the columns of one product, the terms of the other");
static_assert(!dynamic || may_be_beside || !many_produce,
              "what one of many producers draws, the others learn through shared memory");
static_assert(by_rows || geometry.boxes() <= 32, "a lane knows the page of a tensor copy");
static_assert(!fp8_cache || head_dim % 16 == 0, "rows of 16-byte chunks of codes");
static_assert(!keys_stay_codes || !query_in_registers, "codes of queries are multiplied from shared memory");
static_assert(!late_maxima || !fp8_cache, "scores that are needed again are products of 16-bit elements");
static_assert(geometry.blocks_per_sm * (geometry.shared_bytes() + reserved_bytes) <= shared_bytes_per_sm,
              "shared memory");

/// tile_m queries of a head, and the blocks of tile_n keys that they see, from `last` down to `first`: at
/// least one, so that a tile without any keys also has its turn.
struct Tile {
    int slot;  ///< sequence * heads + head; -1: no tile
    int row;
    int first;
    int last;
    Sequence sequence;

    __device__ static Tile none() { return {-1, 0, 0, 0, {}}; }
    __device__ bool exists() const { return slot >= 0; }
    /// No sequence but the longest has queries in all tiles.
    __device__ bool empty() const { return packed && row >= sequence.q_len; }
    __device__ int head() const { return slot % heads; }
    __device__ int blocks() const { return last - first + 1; }
};

__device__ inline Tile make_tile(const Call& call, int slot, int row) {
    Tile tile;
    tile.slot = slot;
    tile.row = row * tile_m;
    tile.sequence = call.sequence(slot / heads);
    tile.last = max(0, tile.sequence.end(tile.row + tile_m - 1) - 1) / tile_n;
    tile.first = min(tile.sequence.begin(tile.row) / tile_n, tile.last);
    return tile;
}

/// The tiles of a call in their order (Sections).
class SlotOrder {
  public:
    __device__ SlotOrder(const Call& call, const Sections& sections) : call_(call), sections_(sections) {}

    __device__ int tiles() const { return sections_.rows * call_.batch * heads; }

    __device__ Tile tile(int index) const {
        const Place place = causal && !windowed ? sections_.by_sections(index, call_.batch * heads)
                                                : sections_.by_heads(index);
        return make_tile(call_, place.slot, place.row);
    }

    /// `first` becomes the block's first tile.
    __device__ static SlotOrder begin(const Call& call, const Sections& sections, Tile& first) {
        const SlotOrder order(call, sections);
        first = order.tile(blockIdx.x);
        return order;
    }

  private:
    const Call& call_;
    const Sections& sections_;
};

/// The same where packed queries meet keys in pages, prompts beside single tokens: the rows of tiles of all
/// sequences stand on one line.
class PackedOrder {
  public:
    __device__ PackedOrder(const Call& call, const Sections& sections)
        : PackedOrder(call, sections, line_of(call.q_starts, call.batch, tile_m, call.least_queries)) {}

    /// No fewer than there are blocks.
    __device__ int tiles() const { return max(sections_.rows * heads, static_cast<int>(gridDim.x)); }

    __device__ Tile tile(int index) const {
        return tile(index, [this](int row) { return line_.sequence_at(row); });
    }

    /// By all lanes of a warp. `first` becomes the block's first tile, which may be empty.
    __device__ static PackedOrder begin(const Call& call, const Sections& sections, Tile& first);

  private:
    __device__ PackedOrder(const Call& call, const Sections& sections, const Line& line)
        : PackedOrder(call, sections, line, line.rows()) {}
    __device__ PackedOrder(const Call& call, const Sections& sections, const Line& line, int rows)
        : call_(call), line_(line), sections_{min(rows, 2 * sections.rows), sections.heads, sections.count} {}

    template <class SequenceAt>
    __device__ Tile tile(int index, SequenceAt sequence_at) const {
        if (index >= sections_.rows * heads) return {0, 0, 0, 0, {}};
        const Place place =
            causal && !windowed ? sections_.by_sections(index, heads) : sections_.by_heads(index);
        const int sequence = sequence_at(place.row);
        return make_tile(call_, sequence * heads + place.slot, max(0, place.row - line_.first_row(sequence)));
    }

    const Call& call_;
    Line line_;
    Sections sections_;
};

/// The line of a call of few sequences, as all lanes of a warp see it together, each the sequence of its
/// number: one way to memory, where a search goes from start to start.
class LineOfLanes {
  public:
    __device__ static bool serves(const Call& call) { return call.batch < 32; }

    __device__ explicit LineOfLanes(const Call& call) : lane_(static_cast<int>(threadIdx.x) % 32) {
        const int start = call.q_starts[min(lane_, call.batch)];
        const int queries = call.q_starts[min(lane_ + 1, call.batch)] - start;
        const int tokens = __shfl_sync(0xffffffffu, start, min(call.batch, 31));
        const int some = __ffs(static_cast<int>(__ballot_sync(0xffffffffu, start >= tokens))) - 1;
        const uint32 enough = __ballot_sync(0xffffffffu, lane_ < some && queries >= call.least_queries);
        first_ = enough != 0 ? __ffs(static_cast<int>(enough)) - 1 : some;
        end_ = enough != 0 ? 32 - __clz(static_cast<int>(enough)) : some;
        const uint32 places =
            (static_cast<uint32>(start) + static_cast<uint32>(lane_) * (tile_m - 1)) / tile_m;
        row_ = static_cast<int>(places - __shfl_sync(0xffffffffu, places, first_));
    }
    __device__ Line line(const Call& call) const { return {call.q_starts, tile_m, first_, end_}; }
    __device__ int rows() const { return max(0, __shfl_sync(0xffffffffu, row_, end_)); }
    __device__ int sequence_at(int row) const {
        const uint32 behind = __ballot_sync(0xffffffffu, lane_ > first_ && lane_ < end_ && row_ > row);
        return behind != 0 ? __ffs(static_cast<int>(behind)) - 2 : end_ - 1;
    }

  private:
    int lane_;
    int first_;  ///< as Line's, and the end of its sequences
    int end_;
    int row_;  ///< where the lane's sequence begins
};

__device__ inline PackedOrder PackedOrder::begin(const Call& call, const Sections& sections, Tile& first) {
    const bool few = LineOfLanes::serves(call);
    const LineOfLanes lanes(call);
    const Line line = few ? lanes.line(call) : line_of(call.q_starts, call.batch, tile_m, call.least_queries);
    const PackedOrder order(call, sections, line, few ? lanes.rows() : line.rows());
    first =
        order.tile(blockIdx.x, [&](int row) { return few ? lanes.sequence_at(row) : line.sequence_at(row); });
    return order;
}

using Order = Conditional<lengths == Lengths::paged, PackedOrder, SlotOrder>::type;

/// Deals the order to the blocks, for the producer: the block's first tile is its own number. Each further
/// one is whatever is next when it asks, or fixed: the same place in the next round, rounds in turn forward
/// and backward. The count stands in a word of the workspace, whose content nobody knows: the first to come
/// makes it `mark`, and whoever draws last clears it, so that it is unmarked between calls. A word that is no
/// count carries the mark once in 2^36, and as two floats begins with a NaN that no arithmetic makes.
template <bool dynamic>
class Deal {
  public:
    __device__ Deal(void* workspace, int tiles) : word_(static_cast<uint64*>(workspace)), tiles_(tiles) {}

    /// No more blocks are launched than there are tiles.
    __device__ int first() const { return blockIdx.x; }

    /// Before the first draw: the word carries the mark.
    __device__ void open() const {
        if constexpr (!dynamic) return;
        uint64 seen = *static_cast<const volatile uint64*>(word_);
        while (seen >> count_bits != mark >> count_bits) {
            const uint64 before = atomicCAS(word_, seen, mark);
            if (before == seen) return;
            seen = before;
        }
    }
    /// Only issues the atomic operation: number() is what waits for it.
    __device__ uint64 draw() {
        if constexpr (dynamic) return atomicAdd(word_, uint64{1});
        const int position = round_ % 2 == 0 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
        return static_cast<uint64>(round_++) * gridDim.x + position;
    }
    /// Number of the tile drawn, -1 when there is none.
    __device__ int number(uint64 drawn) const {
        const int count = static_cast<int>(drawn & ((uint64{1} << count_bits) - 1));
        const int index = count + static_cast<int>(gridDim.x);
        // Every block draws until there is none: as often as there are tiles, all together.
        if (dynamic && count == tiles_ - 1) *static_cast<volatile uint64*>(word_) = 0;
        return index < tiles_ ? index : -1;
    }

  private:
    static constexpr int count_bits = 28;
    static constexpr uint64 mark = uint64{0xffa57e3c7} << count_bits;

    uint64* word_;
    int tiles_;
    int round_ = 0;
};

/// Whether the launch is one of prompts whose single tokens are in the launch before it, which leaves
/// multiprocessors to this one: it starts beside that one, and ends after it.
__device__ inline bool is_beside(const Call& call) { return may_be_beside && call.least_queries > 1; }
/// For what this launch reads: the one in front has waited for that, if it is beside it.
__device__ inline void wait_at_start(const Call& call) {
    if constexpr (may_be_beside) {
        if (is_beside(call)) return;
    }
    wait_for_predecessor();
}

/// The deal of a launch that may be beside another one, where blocks always draw, since some of them start
/// late. Many producers lack the registers to keep what is drawn, and have time: their first thread draws
/// when they ask for the number, which the others learn from one of two words in shared memory, taken in
/// turn. Who writes the next number there has passed the barrier behind which all had read it.
class DealBeside {
  public:
    __device__ DealBeside(const Call& call, int tiles, uint32 shared)
        : drawn_(call.workspace, tiles),
          own_(call.workspace, tiles),
          shared_(shared),
          draws_(is_beside(call)) {}

    __device__ int first() const { return own_.first(); }
    __device__ void open() const {
        if (draws() && leads()) drawn_.open();
    }
    __device__ uint64 draw() {
        if (!draws()) return own_.draw();
        return many_produce ? 0 : drawn_.draw();
    }
    __device__ int number(uint64 drawn) {
        if (!draws()) return own_.number(drawn);
        return many_produce ? number_for_all() : drawn_.number(drawn);
    }

  private:
    __device__ bool draws() const { return dynamic || draws_; }
    __device__ static bool leads() { return !many_produce || threadIdx.x == 0; }
    __device__ int number_for_all() {
        const uint32 at = shared_ + round_++ % 2 * 8;
        if (leads()) store_shared(at, static_cast<uint32>(drawn_.number(drawn_.draw())));
        named_barrier_sync<geometry.producer_threads()>(1 + 2 * consumers);
        return static_cast<int>(load_shared(at));
    }

    Deal<true> drawn_;
    Deal<false> own_;
    uint32 shared_;
    bool draws_;
    int round_ = 0;
};

}  // namespace hone::attention_prefill::warpgroup
