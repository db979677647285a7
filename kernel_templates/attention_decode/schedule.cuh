// Who reads what. The tokens of all sequences, for all lists of rows, form one line of units (`unit` tokens,
// aligned to their position in the sequence); the line is cut into equal parts, one a slot, whatever the
// lengths. A slot is a block, or with clusters a cluster's share of a single list. What a slot reads of one
// list is a fragment; a list that is cut has pieces in several slots, at most two in each: one that an
// earlier slot began (piece 0), and one that a later slot goes on with (piece 1).
//
// Rows: the query heads that share a key-value head, times the query tokens, are the rows of one small
// product; row = query token * group + head in the group. A block takes `block_rows` of them, a list.
//
// Order of the line: sequence, list, unit. With lists side by side every list has its own line of sequences
// and units, and slots of the same number read the same tokens of neighbouring heads: what lies together in
// memory is read together where heads lie inside of a token.
//
// Lengths lie on the device: every warp adds up the units of all sequences by itself. A sequence without
// tokens has no place on the line, since one each would make long ways of the padding of a batch; its zeros
// are written apart (join.cuh). A cluster that has no tokens to read writes them itself. A sequence that is
// not served has no place either.
#pragma once

#include "attention_decode/geometry.cuh"
#include "attention_decode/tensors.cuh"

namespace hone::attention_decode {

/// How the pieces of a list meet where no cluster reads it.
enum class Join : int { second_launch = 0, last_block = 1 };
inline constexpr Join join_way = static_cast<Join>(Tuned::join);

template <class T>
constexpr int cluster_of() {
    if constexpr (requires { T::cluster; }) return static_cast<int>(T::cluster);
    return 1;
}
/// Blocks that share a list through distributed shared memory; 1: lists are cut anywhere.
inline constexpr int cluster = cluster_of<Tuned>();
/// Tokens.
inline constexpr int unit = static_cast<int>(Tuned::unit);

inline constexpr Geometry geometry{.group = group,
                                   .kv_heads = kv_heads,
                                   .head_dim = head_dim,
                                   .q_tokens = q_tokens,
                                   .cache_bytes = sizeof(CacheElement),
                                   .rows_a_block = static_cast<int>(Tuned::rows),
                                   .warps = static_cast<int>(Tuned::warps),
                                   .cluster = cluster,
                                   .side_by_side = Tuned::side_by_side != 0};
inline constexpr int warps = geometry.warps;
inline constexpr int compute_threads = 32 * warps;
inline constexpr int block_rows = geometry.block_rows();
inline constexpr int row_groups = geometry.row_groups();
inline constexpr int lists = geometry.lists();
inline constexpr int lines = geometry.lines();
inline constexpr int line_lists = geometry.line_lists();

__device__ inline int kv_head_of(int list) { return list / row_groups; }
__device__ inline int first_row_of(int list) { return list % row_groups * block_rows; }
/// Query token and head of a list's row, counted over the lists of its key-value head.
__device__ inline int token_of(int row) { return row / group; }
__device__ inline int head_of(int list, int row) { return kv_head_of(list) * group + row % group; }

/// Sequences may have no place on the line.
inline constexpr bool skips_empty = has_lengths && cluster == 1;

/// Units of a sequence; 0 where it is not served, or has no tokens and no cluster.
__device__ inline int units_of(const Tensors& tensors, int length) {
    if constexpr (packed || skips_empty) {
        if (length < (skips_empty ? 1 : 0)) return 0;
    }
    const Visible visible = tensors.visible(length);
    return max(1, (visible.last + unit - 1) / unit - visible.first / unit);
}

/// The slots whose pieces make up a list: `first` alone where it is not cut.
struct Pieces {
    int first;
    int last;

    __device__ int count() const { return last - first + 1; }
};

/// The pieces of the list that has `count` units from `start` on, on a line of `line_units`.
__device__ inline Pieces pieces_of(int start, int count, int line_units, int slots) {
    const auto slot_of = [&](int position) {
        return static_cast<int>(((static_cast<int64>(position) + 1) * slots - 1) / line_units);
    };
    return {slot_of(start), slot_of(start + count - 1)};
}

struct Fragment {
    int sequence;
    int list;
    int length;
    int first_token;  ///< the first unit's
    int units;
    bool present;  ///< there is one; in a cluster also without units
    bool begins;   ///< the list's first unit is in it
    bool ends;     ///< the last is

    __device__ bool whole() const { return begins && ends; }
};

/// The line of sequences, and where a position on it is.
class Line {
  public:
    __device__ explicit Line(const Tensors& tensors) : tensors_(tensors) {
        const int batch = static_cast<int>(tensors.batch);
        if constexpr (!has_lengths) {
            units_ = batch * units_of(tensors, tensors.length(0));
            return;
        }
        int sum = 0;
        for (int sequence = threadIdx.x % 32; sequence < batch; sequence += 32)
            sum += units_of(tensors, tensors.length(sequence));
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, distance);
        units_ = sum;
    }

    /// Units of all lists.
    __device__ int units() const { return units_ * line_lists; }
    /// Slots of a line whose lists so many blocks read. Each has at least a unit; blocks past them are idle.
    __device__ int slots(int blocks) const { return min(blocks / lines, units()); }
    /// First unit of a slot.
    __device__ int cut(int slot, int slots) const {
        return static_cast<int>(static_cast<int64>(slot) * units() / slots);
    }

    /// The sequence at a position on the line, and the position of the sequence's first unit.
    __device__ void find(int position, int& sequence, int& start) const {
        if constexpr (!has_lengths) {
            const int units = units_of(tensors_, tensors_.length(0)) * line_lists;
            sequence = position / units;
            start = sequence * units;
            return;
        }
        const int batch = static_cast<int>(tensors_.batch);
        const int lane = threadIdx.x % 32;
        start = 0;
        for (sequence = 0; sequence < batch; sequence += 32) {
            const int mine = sequence + lane;
            const int units = mine < batch ? units_of(tensors_, tensors_.length(mine)) * line_lists : 0;
            int end = units;
#pragma unroll
            for (int distance = 1; distance < 32; distance *= 2) {
                const int before = __shfl_up_sync(0xffffffffu, end, distance);
                if (lane >= distance) end += before;
            }
            const unsigned behind = __ballot_sync(0xffffffffu, position < start + end);
            if (behind != 0) {
                const int found = __ffs(static_cast<int>(behind)) - 1;
                sequence += found;
                start += __shfl_sync(0xffffffffu, end - units, found);
                return;
            }
            start += __shfl_sync(0xffffffffu, end, 31);
        }
    }

  private:
    const Tensors& tensors_;
    int units_;  ///< units in one list
};

/// A list that an earlier slot began and this one ends.
struct Ended {
    int sequence;
    int list;
    Pieces pieces;
};

/// The fragments of this block, one after the other. All warps that ask get the same answers.
class Schedule {
  public:
    __device__ explicit Schedule(const Tensors& tensors) : tensors_(tensors) {
        if constexpr (cluster > 1) {
            take_share();
            return;
        }
        const Line line(tensors);
        const int slot = static_cast<int>(blockIdx.x) / lines;
        const int slots = line.slots(static_cast<int>(gridDim.x));
        present_ = slot < slots;
        if (!present_) return;
        const int first = line.cut(slot, slots);
        left_ = line.cut(slot + 1, slots) - first;
        int start;
        line.find(first, sequence_, start);
        length_ = tensors.length(sequence_);
        units_ = units_of(tensors_, length_);
        list_ = lines > 1 ? static_cast<int>(blockIdx.x) % lines : (first - start) / units_;
        offset_ = (first - start) % units_;
        if constexpr (join_way == Join::last_block) {
            if (offset_ > 0 && offset_ + left_ >= units_)
                ended_ = {sequence_, list_, pieces_of(first - offset_, units_, line.units(), slots)};
        }
    }

    /// The last is not present.
    __device__ Fragment next() {
        const int units = min(left_, units_ - offset_);
        Fragment fragment{.sequence = sequence_,
                          .list = list_,
                          .length = length_,
                          .first_token = (tensors_.visible(length_).first / unit + offset_) * unit,
                          .units = units,
                          .present = present_,
                          .begins = offset_ == 0,
                          .ends = offset_ + units == units_};
        if (!present_) return fragment;
        left_ -= units;
        present_ = left_ > 0;
        if (present_) advance();
        return fragment;
    }

    /// With more than one piece, if there is such a list.
    __device__ const Ended& ended() const { return ended_; }

  private:
    __device__ void take_share() {
        const int task = static_cast<int>(blockIdx.x) / cluster;
        const int rank = static_cast<int>(blockIdx.x) % cluster;
        sequence_ = task / lists;
        list_ = task % lists;
        length_ = tensors_.length(sequence_);
        units_ = units_of(tensors_, length_);
        offset_ = units_ * rank / cluster;
        left_ = units_ * (rank + 1) / cluster - offset_;
        present_ = !packed || units_ > 0;
    }
    /// To the next list of the line, of which there is one.
    __device__ void advance() {
        offset_ = 0;
        if constexpr (lines == 1) {
            if (++list_ < lists) return;
            list_ = 0;
        }
        do {
            length_ = tensors_.length(++sequence_);
            units_ = units_of(tensors_, length_);
        } while ((packed || skips_empty) && units_ == 0);
    }

    const Tensors& tensors_;
    Ended ended_{};
    int sequence_ = 0;
    int list_ = 0;
    int length_ = 0;
    int units_ = 0;   ///< units in the list at hand
    int offset_ = 0;  ///< next unit of it
    int left_ = 0;    ///< units of this block
    bool present_ = false;
};

}  // namespace hone::attention_decode
