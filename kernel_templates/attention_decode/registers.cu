// Attention decode, variant registers: a warp reads 16 (or 32) tokens of the cache at a time straight into
// the operands of mma.sync, without shared memory; the warps of a block take turns at the units of a
// fragment, each with its own online softmax, and meet at its end (join.cuh).
//
// Data's way: K and V global -> registers -> tensor cores; codes of fp8 become 16-bit numbers on the way
// between the two. While a unit's K is multiplied its V is under way; the next unit's K is asked for as soon
// as this one's is used up, the next V after this one's: there is always a unit under way, also over the end
// of a fragment. Sums registers -> shared -> global.
//
// Operands: lane l = 4 g + t. S^T[16 tokens, rows] = K q^T: the lane reads 16 bytes, its share of a span
// (LaneRows), of tokens g and g + 8, and the same columns of q's row g; which column is which does not matter
// to a sum as long as both agree. O^T[columns, rows] += V^T P^T: the lane reads its share of a chunk of
// tokens 2t, 2t + 1, 2t + 8, 2t + 9; bytes are permuted into pairs of tokens, its column 2 i as row g of the
// chunk's i-th instruction and 2 i + 1 as row g + 8.
//
// Tokens that nobody may see are not read: accesses move to the nearest visible one of the unit, and units
// without any are left out. So nothing stale is ever multiplied.
#include "attention_decode/combine.cuh"
#include "attention_decode/fragments.cuh"
#include "device/widen_fp8.cuh"

namespace hone::attention_decode::registers {

inline constexpr LaneRows lane_rows{.head_dim = head_dim, .cache_bytes = sizeof(CacheElement)};
inline constexpr int token_blocks = unit / 16;
inline constexpr int k_columns = lane_rows.k_columns();
inline constexpr int k_span = lane_rows.k_span();
inline constexpr int k_steps = lane_rows.k_steps();
inline constexpr int v_columns = lane_rows.v_columns();
inline constexpr int v_chunk = lane_rows.v_chunk();
inline constexpr int v_chunks = lane_rows.v_chunks();
inline constexpr int v_blocks = lane_rows.v_blocks();
static_assert(unit % 16 == 0, "16 tokens an instruction");
static_assert(head_dim % k_columns == 0, "a head is whole accesses of 16 bytes");
static_assert(cluster == 1, "for chips without clusters");

/// Whether 16 aligned tokens stand on one page.
inline constexpr bool whole_pages = paged && page_size % 16 == 0;

/// This warp's units, one after the other over all fragments: where the unit stands, and which of its tokens
/// may be read.
class Walk {
  public:
    __device__ Walk(const Tensors& tensors, Schedule& schedule)
        : tensors_(tensors), schedule_(schedule), fragment_(schedule.next()) {
        open();
    }

    /// The fragment and the first token of the unit, and whether any of its tokens may be read.
    __device__ const Fragment& fragment() const { return fragment_; }
    __device__ int token() const { return token_; }
    __device__ bool present() const { return first_ < last_; }

    /// Every warp makes as many steps in a fragment, at least one.
    __device__ void advance() {
        token_ += warps * unit;
        steps_left_ -= 1;
        if (steps_left_ > 0) {
            set_bounds();
            if constexpr (whole_pages) {
#pragma unroll
                for (int b = 0; b < token_blocks; ++b) pages_[b] = next_pages_[b];
                find_pages(next_pages_, token_ + warps * unit);
            }
            return;
        }
        fragment_ = schedule_.next();
        open();
    }

    /// Offset in the cache of token `index` of the unit's 16 numbered `block`, or of the nearest that may be
    /// read.
    __device__ int64 row_offset(int block, int index) const {
        const int token = min(max(token_ + 16 * block + index, first_), last_ - 1);
        const int head = kv_head_of(fragment_.list);
        if constexpr (!paged) {
            return tensors_.cache_offset(fragment_.sequence, head) + token * tensors_.cache_token_stride;
        } else {
            const int page = whole_pages ? pages_[block] : tensors_.page_of(fragment_.sequence, token);
            return tensors_.cache_offset(page, head) + token % page_size * tensors_.cache_token_stride;
        }
    }

  private:
    __device__ void open() {
        steps_left_ = max(1, (fragment_.units + warps - 1) / warps);
        token_ = fragment_.first_token + static_cast<int>(threadIdx.x) / 32 * unit;
        set_bounds();
        if constexpr (whole_pages) {
            find_pages(pages_, token_);
            find_pages(next_pages_, token_ + warps * unit);
        }
    }
    __device__ int end() const {
        return min(fragment_.length, fragment_.first_token + fragment_.units * unit);
    }
    __device__ int first_visible() const { return tensors_.visible(fragment_.length).first; }
    __device__ void set_bounds() {
        first_ = max(first_visible(), token_);
        last_ = min(end(), token_ + unit);
    }
    /// Asks for the pages of the unit at `token`, if it is read.
    __device__ void find_pages(int (&pages)[token_blocks], int token) const {
        if (token >= end()) return;
#pragma unroll
        for (int b = 0; b < token_blocks; ++b) {
            const int visible = min(max(token + 16 * b, first_visible()), end() - 1);
            pages[b] = tensors_.page_of(fragment_.sequence, visible);
        }
    }

    const Tensors& tensors_;
    Schedule& schedule_;
    Fragment fragment_;
    int steps_left_;
    int token_;
    int first_;
    int last_;
    int pages_[token_blocks];
    int next_pages_[token_blocks];
};

/// An access to the cache of so many columns, 16 or 8 bytes.
template <int columns>
__device__ inline void load_cache(uint32 (&words)[columns * sizeof(CacheElement) / 4],
                                  const CacheElement* address) {
    if constexpr (columns * sizeof(CacheElement) == 16) {
        const uint4 packet = load_stream<static_cast<StreamHint>(Tuned::load_hint)>(address);
        memcpy(words, &packet, sizeof(packet));
    } else {
        const uint2 packet = load_word<LoadHint::no_allocate, 8>(address);
        memcpy(words, &packet, sizeof(packet));
    }
}
template <int count>
__device__ inline void clear(uint32 (&words)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) words[i] = 0;
}

/// A unit's words: of K tokens g and g + 8, of V tokens 2t, 2t + 1, 2t + 8 and 2t + 9 of each 16.
struct Held {
    uint32 k[token_blocks][k_steps][2][4];
    uint32 v[token_blocks][v_chunks][4][lane_rows.v_words()];

    __device__ void load_k(const Tensors& tensors, const Walk& walk) {
        if (!walk.present()) return;
        const int g = threadIdx.x % 32 / 4;
        const int column = threadIdx.x % 4 * k_columns;
#pragma unroll
        for (int b = 0; b < token_blocks; ++b) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const CacheElement* row = tensors.k_cache + walk.row_offset(b, g + 8 * half) + column;
#pragma unroll
                for (int step = 0; step < k_steps; ++step) {
                    if (head_dim % k_span == 0 || k_span * step + column < head_dim)
                        load_cache<k_columns>(k[b][step][half], row + k_span * step);
                    else
                        clear(k[b][step][half]);
                }
            }
        }
    }

    __device__ void load_v(const Tensors& tensors, const Walk& walk) {
        if (!walk.present()) return;
        const int t = threadIdx.x % 4;
        const int column = threadIdx.x % 32 / 4 * v_columns;
#pragma unroll
        for (int b = 0; b < token_blocks; ++b) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const CacheElement* row =
                    tensors.v_cache + walk.row_offset(b, 2 * t + i % 2 + i / 2 * 8) + column;
#pragma unroll
                for (int chunk = 0; chunk < v_chunks; ++chunk) {
                    if (head_dim % v_chunk == 0 || v_chunk * chunk + column < head_dim)
                        load_cache<v_columns>(v[b][chunk][i], row + v_chunk * chunk);
                    else
                        clear(v[b][chunk][i]);
                }
            }
        }
    }
};

/// Right operands of K q^T: of row g, the lane's columns of each span.
struct Query {
    uint32 words[row_blocks][k_steps][k_columns / 2];
    float factor;  ///< of scores (convert_queries)

    __device__ void load(const Tensors& tensors, const Fragment& fragment) {
        const int column = threadIdx.x % 4 * k_columns;
#pragma unroll
        for (int n = 0; n < row_blocks; ++n) {
            const Element* row = query_row(tensors, fragment, n);
#pragma unroll
            for (int step = 0; step < k_steps; ++step) {
                clear(words[n][step]);
                if (row == nullptr || (head_dim % k_span != 0 && k_span * step + column >= head_dim))
                    continue;
#pragma unroll
                for (int i = 0; i < k_columns / 8; ++i) {
                    const uint4 packet =
                        load_word<LoadHint::normal, 16>(row + k_span * step + column + 8 * i);
                    memcpy(words[n][step] + 4 * i, &packet, sizeof(packet));
                }
            }
        }
        factor = convert_queries(words);
    }
};

/// Two words of 4 columns of two tokens each, as the left operand of a product of 16 columns.
struct KOperand {
    uint32 a[4];

    __device__ static KOperand of(const uint32 (&low)[4], const uint32 (&high)[4], int i) {
        if constexpr (!fp8_cache)
            return {low[2 * i], high[2 * i], low[2 * i + 1], high[2 * i + 1]};
        else
            return {widen_pair<Operand, 0, 1>(low[i]), widen_pair<Operand, 0, 1>(high[i]),
                    widen_pair<Operand, 2, 3>(low[i]), widen_pair<Operand, 2, 3>(high[i])};
    }
};

__device__ inline void score(Scores<token_blocks>& scores, const Held& held, const Query& query) {
#pragma unroll
    for (int step = 0; step < k_steps; ++step) {
#pragma unroll
        for (int b = 0; b < token_blocks; ++b) {
#pragma unroll
            for (int i = 0; i < k_columns / 4; ++i) {
                const KOperand k = KOperand::of(held.k[b][step][0], held.k[b][step][1], i);
#pragma unroll
                for (int n = 0; n < row_blocks; ++n)
                    multiply_16<Operand>(scores.sums[b][n], k.a[0], k.a[1], k.a[2], k.a[3],
                                         query.words[n][step][2 * i], query.words[n][step][2 * i + 1]);
            }
        }
    }
}

/// Columns 2 i and 2 i + 1 of two tokens as pairs of tokens.
struct TokenPairs {
    uint32 even;
    uint32 odd;

    template <int words>
    __device__ static TokenPairs of(const uint32 (&low)[words], const uint32 (&high)[words], int i) {
        if constexpr (!fp8_cache) {
            return {__byte_perm(low[i], high[i], 0x5410), __byte_perm(low[i], high[i], 0x7632)};
        } else {
            const uint32 codes = __byte_perm(low[i / 2], high[i / 2], i % 2 == 0 ? 0x5140 : 0x7362);
            return {widen_pair<Operand, 0, 1>(codes), widen_pair<Operand, 2, 3>(codes)};
        }
    }
};

/// O^T += V^T P^T. Block (v_columns / 2) chunk + i of the sums has the lane's columns 2 i and 2 i + 1.
__device__ inline void add(Sums<v_blocks>& sums, const Held& held, const Weights<token_blocks>& weights) {
#pragma unroll
    for (int b = 0; b < token_blocks; ++b) {
#pragma unroll
        for (int block = 0; block < v_blocks; ++block) {
            const auto& tokens = held.v[b][block / (v_columns / 2)];
            const int i = block % (v_columns / 2);
            const TokenPairs low = TokenPairs::of(tokens[0], tokens[1], i);
            const TokenPairs high = TokenPairs::of(tokens[2], tokens[3], i);
#pragma unroll
            for (int n = 0; n < row_blocks; ++n)
                multiply_16<Operand>(sums.blocks[n][block], low.even, low.odd, high.even, high.odd,
                                     weights.words[b][n][0], weights.words[b][n][1]);
        }
    }
}

__device__ inline void leave(Shared& shared, const Sums<v_blocks>& sums, const Softmax& softmax) {
    const int first = threadIdx.x % 32 / 4 * v_columns;
    leave_rows(shared, softmax, [&](int n, int e, float* row) {
#pragma unroll
        for (int i = 0; i < v_blocks / 2; ++i) {
            const float(&low)[4] = sums.blocks[n][2 * i].values;
            const float(&high)[4] = sums.blocks[n][2 * i + 1].values;
            const int column = i / (v_columns / 4) * v_chunk + first + i % (v_columns / 4) * 4;
            if (head_dim % v_chunk == 0 || column < head_dim)
                *reinterpret_cast<float4*>(row + column) = float4{low[e], low[2 + e], high[e], high[2 + e]};
        }
    });
}

__device__ inline void run(const Tensors& tensors, Shared& shared) {
    Schedule schedule(tensors);
    if (join_way == Join::last_block && threadIdx.x == 0) shared.ended = schedule.ended();
    Walk walk(tensors, schedule);
    Held held;
    held.load_k(tensors, walk);
    held.load_v(tensors, walk);
    Query query;
    query.load(tensors, walk.fragment());
    store_empty(tensors);
    Softmax softmax(tensors);
    Sums<v_blocks> sums;
    while (walk.fragment().present) {
        const Fragment fragment = walk.fragment();
        const int steps = max(1, (fragment.units + warps - 1) / warps);
        softmax.start(fragment.list, query.factor);
        sums.clear();
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            const bool present = walk.present();
            const int token = walk.token();
            Scores<token_blocks> scores{};
            if (present) score(scores, held, query);
            walk.advance();
            held.load_k(tensors, walk);
            if (present) {
                Weights<token_blocks> weights;
                if (softmax.step(scores, weights, token, fragment.length)) sums.shrink(softmax);
                add(sums, held, weights);
            }
            held.load_v(tensors, walk);
        }
        softmax.finish();
        query.load(tensors, walk.fragment());
        leave(shared, sums, softmax);
        join_block(tensors, shared, fragment);
    }
    if constexpr (join_way == Join::last_block) join_ended(tensors, shared);
}

}  // namespace hone::attention_decode::registers

extern "C" __global__ void __launch_bounds__(hone::attention_decode::compute_threads, Tuned::blocks_per_sm)
    attention_decode_registers(HONE_PARAMETERS(attention_decode_registers)) {
    const hone::attention_decode::Tensors tensors{HONE_ARGUMENTS(attention_decode_registers)};
    extern __shared__ __align__(16) unsigned char memory[];
    hone::wait_for_predecessor();
    hone::release_successor();
    hone::attention_decode::registers::run(tensors,
                                           *reinterpret_cast<hone::attention_decode::Shared*>(memory));
}
