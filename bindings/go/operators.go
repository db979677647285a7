// Code generated from kernel_templates/*/operators.py and generate/enums.py by `./hone generate`. DO NOT EDIT.

package hone

// #include <hone.h>
import "C"

import "unsafe"

// What a call may answer.
const (
	StatusOk Status = 0
	// rows, or a size of the call, is negative or above the prepared maximum
	StatusBadRows Status = 1
	// a tensor that this operator needs is {null}
	StatusNullPointer Status = 2
	// a pointer or row stride is not a multiple of the kernel's access width
	StatusMisaligned Status = 3
	// a row stride is smaller than a row, or not one that goes with the others
	StatusBadStride Status = 4
	// a handle is {null}, or of another operator than the function's
	StatusBadHandle Status = 5
	// struct_size is no size that this library knows, or a later field is set
	StatusBadStruct Status = 6
	// the handle was made before fork()
	StatusForked Status = 7
	// the driver refused
	StatusLaunchFailed Status = 8
	// epsilon is negative, infinite or NaN
	StatusBadEpsilon Status = 9
	// scale is infinite or NaN, or softcap is not above 0
	StatusBadScale Status = 10
	// checked indices: a length or position past its room, or decreasing starts
	StatusBadLengths Status = 11
	// a paged cache without pages; checked indices: a page or slot outside
	StatusBadPages Status = 12
	// checked indices, quantizing weights: not possible under stream capture
	StatusCapturing Status = 13
	// checked indices: an id or position without a row in its table, a pair of a routing missing
	StatusBadIndices Status = 14
	// a size, dtype or option that the operator does not take
	StatusBadArgument Status = 20
	// no driver, too old a driver, no such device
	StatusNoGpu Status = 21
	// NVRTC is missing or refused the kernel
	StatusCompileFailed Status = 22
	// a compile was needed that is not allowed
	StatusFrozen Status = 23
	// host memory is exhausted
	StatusOutOfMemory Status = 24
	// anything else: a dead device, device memory, ...
	StatusFailed Status = 25
)

// Dtype: the element type of tensors.
type Dtype int32

const (
	DtypeFp32 Dtype = 0
	DtypeFp16 Dtype = 1
	DtypeBf16 Dtype = 2
)

// NormOutput: what a norm writes to `out`. Quantized rows are symmetric with one scale each: out *
// scale approximates y, and scale = max|y| / 127 (int8) or max|y| / 448 (fp8).
type NormOutput int32

const (
	// the operator's dtype
	NormOutputSame NormOutput = 0
	NormOutputInt8 NormOutput = 1
	// E4M3
	NormOutputFp8 NormOutput = 2
)

// Activation: what becomes of an element of a product.
type Activation int32

const (
	ActivationNone Activation = 0
	// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
	ActivationGeluTanh Activation = 1
	// 0.5 x (1 + erf(x / sqrt(2)))
	ActivationGeluErf Activation = 2
	// x / (1 + exp(-x))
	ActivationSilu Activation = 3
	ActivationRelu Activation = 4
	// gated experts alone, as gpt-oss has them: g / (1 + exp(-1.702 g)) * (u + 1), where g is the
	// gate's product, at most 7, and u the other one, from -7 to 7
	ActivationSwigluOai Activation = 5
)

// QuantFormat: how a weight is stored: value = (code - zero point) * scale. docs/formats.md says
// where each bit stands.
type QuantFormat int32

const (
	// codes 0 to 15 in blocks of 64 x 64; zero points 0 to 15, or 8 for all
	QuantFormatW4a16 QuantFormat = 0
	// codes -127 to 127 in blocks of 64 x 64
	QuantFormatW8a16 QuantFormat = 1
	// codes -127 to 127, [out, in]; x is multiplied as such codes, too
	QuantFormatW8a8 QuantFormat = 2
	// codes are E4M3 numbers, [out, in]; so is x
	QuantFormatFp8 QuantFormat = 3
)

// KvDtype: what a KV cache holds.
type KvDtype int32

const (
	// the operator's dtype
	KvDtypeSame KvDtype = 0
	// E4M3 codes; code * scale of its kv head approximates the element
	KvDtypeFp8E4m3 KvDtype = 1
)

// RopeStyle: which elements of a head turn together.
type RopeStyle int32

const (
	// i and i + rotary_dim / 2, as in Llama
	RopeStyleHalf RopeStyle = 0
	// 2 i and 2 i + 1, as in GPT-J
	RopeStyleInterleaved RopeStyle = 1
)

// IndexType: the type of ids on the device.
type IndexType int32

const (
	IndexTypeInt32 IndexType = 0
	IndexTypeInt64 IndexType = 1
)

// AttentionAppend: A decoding step's attention of one new token a sequence, with what goes before
// it, in one launch: what RopeKvAppend does with q, k and v, and Attention of the rotated query
// over the cache, the new key and value included. Queries and keys are rounded to dtype between
// rotation and product, as there. q, k and v may be parts of one row, as a projection of all three
// leaves them; q is not written.
//
// What is not q, k or v may be read before the kernels enqueued ahead of this one have ended: older
// rows of the cache, lengths, pages, tables and weights must not be written by those, but by work
// that ended before them, such as the launch of another graph.
//
// Fast is the kernel of sm_90 for 16-bit elements, heads of multiples of 8 elements and rotations
// of multiples of 16. The other one is right everywhere, and slower than the two operators.
type AttentionAppend struct {
	// heads of q and out
	Heads int64
	// heads of k and v, a divisor of `heads`; 0: as many
	KvHeads int64
	// 1 to 256
	HeadDim int64
	// leading elements of a head that turn, even; 0: none; -1: all
	RotaryDim int64
	// most sequences of one call
	MaxBatch int64
	// most keys of a sequence: its capacity in the cache
	MaxKvLen int64
	// element type of q, k, v, the cache, the norms' weights and out
	Dtype Dtype
	Style RopeStyle
	// each head of q and k is normalized first: x * rsqrt(mean(x^2) + epsilon) * weight
	Norm bool
	// scores s become softcap * tanh(s / softcap), after scale
	Softcap bool
	// most keys that a query sees, its own included; 0: all
	Window int64
	// tokens of a page of the cache; 0: not paged
	PageSize int64
	// with a norm: its weights count as 1 + weight, which is not rounded
	UnitOffset bool
}

// NewAttentionAppend has the library's defaults.
func NewAttentionAppend() AttentionAppend {
	var c C.hone_attention_append
	mustInit(C.hone_attention_append_init(&c, C.size_t(unsafe.Sizeof(c))))
	return AttentionAppend{
		Heads:      int64(c.heads),
		KvHeads:    int64(c.kv_heads),
		HeadDim:    int64(c.head_dim),
		RotaryDim:  int64(c.rotary_dim),
		MaxBatch:   int64(c.max_batch),
		MaxKvLen:   int64(c.max_kv_len),
		Dtype:      Dtype(c.dtype),
		Style:      RopeStyle(c.style),
		Norm:       c.norm != 0,
		Softcap:    c.softcap != 0,
		Window:     int64(c.window),
		PageSize:   int64(c.page_size),
		UnitOffset: c.unit_offset != 0,
	}
}

func (d AttentionAppend) c() C.hone_attention_append {
	var c C.hone_attention_append
	mustInit(C.hone_attention_append_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.heads = C.int64_t(d.Heads)
	c.kv_heads = C.int64_t(d.KvHeads)
	c.head_dim = C.int64_t(d.HeadDim)
	c.rotary_dim = C.int64_t(d.RotaryDim)
	c.max_batch = C.int64_t(d.MaxBatch)
	c.max_kv_len = C.int64_t(d.MaxKvLen)
	c.dtype = C.int32_t(d.Dtype)
	c.style = C.int32_t(d.Style)
	c.norm = flag(d.Norm)
	c.softcap = flag(d.Softcap)
	c.window = C.int64_t(d.Window)
	c.page_size = C.int64_t(d.PageSize)
	c.unit_offset = flag(d.UnitOffset)
	return c
}

// PrepareAttentionAppend loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareAttentionAppend(d AttentionAppend) (*PreparedAttentionAppend, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_attention_append_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedAttentionAppend{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d AttentionAppend) Explain(r *Runtime, batch, kvLen int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_attention_append_explain(r.c, &given, C.int64_t(batch), C.int64_t(kvLen),
			C.hone_text_format(format), text, capacity, length)
	})
}

// AttentionAppendArgs: Device pointers, strides and numbers of one call. Strides are in elements, 0
// meaning no gaps, as in AttentionArgs; 16 bytes always suffice as alignment. `out` overlaps
// nothing else.
type AttentionAppendArgs struct {
	// [batch, heads, head_dim]
	Q DevicePointer
	// [batch, kv_heads, head_dim]
	K DevicePointer
	// [batch, kv_heads, head_dim]
	V DevicePointer
	// [batch, heads, head_dim]
	Out DevicePointer
	// [batch, kv_len, kv_heads, head_dim]; or [pool_pages, page_size, kv_heads, head_dim]
	KCache DevicePointer
	// as k_cache, with the same strides
	VCache DevicePointer
	// [table_rows, rotary_dim / 2]; needed when anything turns
	Cos DevicePointer
	// [table_rows, rotary_dim / 2]; needed when anything turns
	Sin DevicePointer
	// [batch]; keys of each sequence, 0 to kv_len, the new one included; 0: nothing is appended, and
	// out gets zeros
	KvLengths DevicePointer
	// [batch, page_table_stride]; needed when the cache is paged: the pages of each sequence
	PageTable DevicePointer
	// [head_dim], dtype; needed when the operator has a norm
	QWeight DevicePointer
	// [head_dim], dtype; needed when the operator has a norm
	KWeight DevicePointer
	// WorkspaceBytes(), aligned to 256; 0 when that is 0
	Workspace      DevicePointer
	QTokenStride   int64
	QHeadStride    int64
	KTokenStride   int64
	KHeadStride    int64
	VTokenStride   int64
	VHeadStride    int64
	OutTokenStride int64
	OutHeadStride  int64
	// `batch` of a sequence, or a page
	CacheBatchStride int64
	CacheTokenStride int64
	CacheHeadStride  int64
	// entries of a row; 0: as many pages as kv_len takes
	PageTableStride int64
	// pages of the cache; needed when it is paged
	PoolPages int64
	// positions that cos and sin know, kv_len at least; needed when anything turns
	TableRows int64
	// factor of q k^T; 0 or less: 1 / sqrt(head_dim)
	Scale float32
	// above 0; needed when the operator has a softcap
	Softcap float32
	// the norms', from 0
	Epsilon float32
}

// NewAttentionAppendArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewAttentionAppendArgs() AttentionAppendArgs {
	var c C.hone_attention_append_args
	mustInit(C.hone_attention_append_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return AttentionAppendArgs{
		QTokenStride:     int64(c.q_token_stride),
		QHeadStride:      int64(c.q_head_stride),
		KTokenStride:     int64(c.k_token_stride),
		KHeadStride:      int64(c.k_head_stride),
		VTokenStride:     int64(c.v_token_stride),
		VHeadStride:      int64(c.v_head_stride),
		OutTokenStride:   int64(c.out_token_stride),
		OutHeadStride:    int64(c.out_head_stride),
		CacheBatchStride: int64(c.cache_batch_stride),
		CacheTokenStride: int64(c.cache_token_stride),
		CacheHeadStride:  int64(c.cache_head_stride),
		PageTableStride:  int64(c.page_table_stride),
		PoolPages:        int64(c.pool_pages),
		TableRows:        int64(c.table_rows),
		Scale:            float32(c.scale),
		Softcap:          float32(c.softcap),
		Epsilon:          float32(c.epsilon),
	}
}

func (args *AttentionAppendArgs) write(c *C.hone_attention_append_args) {
	mustInit(C.hone_attention_append_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.q), args.Q)
	setPointer(unsafe.Pointer(&c.k), args.K)
	setPointer(unsafe.Pointer(&c.v), args.V)
	setPointer(unsafe.Pointer(&c.out), args.Out)
	setPointer(unsafe.Pointer(&c.k_cache), args.KCache)
	setPointer(unsafe.Pointer(&c.v_cache), args.VCache)
	setPointer(unsafe.Pointer(&c.cos), args.Cos)
	setPointer(unsafe.Pointer(&c.sin), args.Sin)
	setPointer(unsafe.Pointer(&c.kv_lengths), args.KvLengths)
	setPointer(unsafe.Pointer(&c.page_table), args.PageTable)
	setPointer(unsafe.Pointer(&c.q_weight), args.QWeight)
	setPointer(unsafe.Pointer(&c.k_weight), args.KWeight)
	setPointer(unsafe.Pointer(&c.workspace), args.Workspace)
	c.q_token_stride = C.int64_t(args.QTokenStride)
	c.q_head_stride = C.int64_t(args.QHeadStride)
	c.k_token_stride = C.int64_t(args.KTokenStride)
	c.k_head_stride = C.int64_t(args.KHeadStride)
	c.v_token_stride = C.int64_t(args.VTokenStride)
	c.v_head_stride = C.int64_t(args.VHeadStride)
	c.out_token_stride = C.int64_t(args.OutTokenStride)
	c.out_head_stride = C.int64_t(args.OutHeadStride)
	c.cache_batch_stride = C.int64_t(args.CacheBatchStride)
	c.cache_token_stride = C.int64_t(args.CacheTokenStride)
	c.cache_head_stride = C.int64_t(args.CacheHeadStride)
	c.page_table_stride = C.int64_t(args.PageTableStride)
	c.pool_pages = C.int64_t(args.PoolPages)
	c.table_rows = C.int64_t(args.TableRows)
	c.scale = C.float(args.Scale)
	c.softcap = C.float(args.Softcap)
	c.epsilon = C.float(args.Epsilon)
}

// PreparedAttentionAppend is a prepared operator whose calls take AttentionAppendArgs.
type PreparedAttentionAppend struct {
	*prepared
}

// Run enqueues a call. kv_len is the most that any sequence has, from 1; with batch 0 nothing is
// done.
func (p *PreparedAttentionAppend) Run(stream Stream, args *AttentionAppendArgs, batch, kvLen int64) error {
	var c C.hone_attention_append_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_attention_append_run(p.c, stream.c(), &c, C.int64_t(batch), C.int64_t(kvLen))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedAttentionAppend) WorkspaceBytes(batch, kvLen int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_attention_append_workspace(p.c, C.int64_t(batch), C.int64_t(kvLen), bytes)
	})
}

// Attention: out = softmax(scale * q k^T + mask) v for each sequence and head, accumulated in fp32.
// `heads / kv_heads` neighbouring heads of q share one of k and v. Causal is aligned at the end: of
// a sequence with q_len queries and kv_len keys, query i sees key j <= i + kv_len - q_len. A query
// that sees no key gets zeros, and -infinity as its log-sum-exp; what stands in k and v beyond a
// sequence's end, also NaN, changes nothing.
//
// One operator serves prefill and decode: calls of up to 16 queries a sequence (not packed) take
// kernels that read a KV cache at the speed of memory, others those of prefill, which read codes of
// fp8, too. Packed queries over a paged cache are chunks of prompts, prompts behind a cached prefix
// and single tokens in one call, which enqueues kernels of both kinds, beside each other, where it
// may have single tokens: of each only what is its own is read. Lengths, starts and page tables are
// on the device: a captured graph may be replayed with others.
type Attention struct {
	// heads of q and out
	Heads int64
	// heads of k and v, a divisor of `heads`; 0: as many
	KvHeads int64
	// 1 to 256
	HeadDim int64
	// most sequences of one call
	MaxBatch int64
	// most queries of a sequence
	MaxQLen int64
	// most keys of a sequence: its capacity in a cache
	MaxKvLen int64
	// fewest queries of a call, from 1: kernels for fewer are not prepared
	MinQLen int64
	// element type of q and out, and of k and v
	Dtype Dtype
	// element type of k and v; fp8: codes, with k_scale and v_scale
	KvDtype KvDtype
	Causal  bool
	// kv_lengths says how many keys each sequence has; else all have kv_len
	Lengths bool
	// q_starts and kv_starts cut packed tensors into sequences, not with `lengths`; with a page_size
	// only q is packed, and kv_lengths says how many keys there are in pages
	Packed bool
	// scores s become softcap * tanh(s / softcap), after scale, before the mask
	Softcap bool
	// the log-sum-exp of the scores is written, too
	Lse bool
	// most keys that a query sees, its own included; needs causal; 0: all
	Window int64
	// tokens of a page of the KV cache; 0: not paged
	PageSize int64
	// a learned logit a head, beside scores times scale, counts in the softmax's sum and in lse, and
	// has no value
	Sinks bool
}

// NewAttention has the library's defaults.
func NewAttention() Attention {
	var c C.hone_attention
	mustInit(C.hone_attention_init(&c, C.size_t(unsafe.Sizeof(c))))
	return Attention{
		Heads:    int64(c.heads),
		KvHeads:  int64(c.kv_heads),
		HeadDim:  int64(c.head_dim),
		MaxBatch: int64(c.max_batch),
		MaxQLen:  int64(c.max_q_len),
		MaxKvLen: int64(c.max_kv_len),
		MinQLen:  int64(c.min_q_len),
		Dtype:    Dtype(c.dtype),
		KvDtype:  KvDtype(c.kv_dtype),
		Causal:   c.causal != 0,
		Lengths:  c.lengths != 0,
		Packed:   c.packed != 0,
		Softcap:  c.softcap != 0,
		Lse:      c.lse != 0,
		Window:   int64(c.window),
		PageSize: int64(c.page_size),
		Sinks:    c.sinks != 0,
	}
}

func (d Attention) c() C.hone_attention {
	var c C.hone_attention
	mustInit(C.hone_attention_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.heads = C.int64_t(d.Heads)
	c.kv_heads = C.int64_t(d.KvHeads)
	c.head_dim = C.int64_t(d.HeadDim)
	c.max_batch = C.int64_t(d.MaxBatch)
	c.max_q_len = C.int64_t(d.MaxQLen)
	c.max_kv_len = C.int64_t(d.MaxKvLen)
	c.min_q_len = C.int64_t(d.MinQLen)
	c.dtype = C.int32_t(d.Dtype)
	c.kv_dtype = C.int32_t(d.KvDtype)
	c.causal = flag(d.Causal)
	c.lengths = flag(d.Lengths)
	c.packed = flag(d.Packed)
	c.softcap = flag(d.Softcap)
	c.lse = flag(d.Lse)
	c.window = C.int64_t(d.Window)
	c.page_size = C.int64_t(d.PageSize)
	c.sinks = flag(d.Sinks)
	return c
}

// PrepareAttention loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareAttention(d Attention) (*PreparedAttention, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_attention_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedAttention{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d Attention) Explain(r *Runtime, batch, qLen, kvLen int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_attention_explain(r.c, &given, C.int64_t(batch), C.int64_t(qLen), C.int64_t(kvLen),
			C.hone_text_format(format), text, capacity, length)
	})
}

// AttentionArgs: Device pointers, strides and numbers of one call. Strides are elements between
// neighbours of a tensor [batch, tokens, heads, head_dim], whose last dimension is contiguous; 0:
// between heads head_dim, between tokens all heads of a token, between sequences (batch) all tokens
// of one, that stride apart. Of a paged cache the batch stride is the distance of two pages, of
// packed tensors it means nothing. 16 bytes always suffice as alignment of pointers and strides.
// `out` may be q itself, with the same strides; other overlaps are not allowed. k and v may be
// tensors or caches: a call of up to 16 queries (not packed) needs the same strides for both, and
// single tokens among packed queries are as fast as such a call where they have them.
type AttentionArgs struct {
	// [batch, q_len, heads, head_dim]; packed: [q_tokens, heads, head_dim]
	Q DevicePointer
	// [batch, kv_len, kv_heads, head_dim]; packed: [kv_tokens, kv_heads, head_dim]; paged:
	// [pool_pages, page_size, kv_heads, head_dim]
	K DevicePointer
	// as k
	V DevicePointer
	// as q
	Out DevicePointer
	// [batch, heads, q_len]; packed: [heads, q_tokens]; natural logarithm
	Lse DevicePointer
	// [batch]; 0 to kv_len each, the call's own tokens included; needed when the operator has lengths,
	// or is packed and paged
	KvLengths DevicePointer
	// [batch + 1]; from 0, never decreasing: sequence b has the tokens from starts[b] to starts[b +
	// 1], or none; needed when the operator is packed
	QStarts DevicePointer
	// [batch + 1]; as q_starts, of k and v; needed when the operator is packed and not paged
	KvStarts DevicePointer
	// [batch, page_table_stride]; the pages of each sequence, 0 to pool_pages - 1; entries beyond a
	// sequence's length are not used
	PageTable DevicePointer
	// [kv_heads]; needed when the cache is fp8
	KScale DevicePointer
	// [kv_heads]; needed when the cache is fp8
	VScale DevicePointer
	// [heads]; natural logits, not scaled nor capped; needed when the operator has sinks
	Sinks DevicePointer
	// WorkspaceBytes(), aligned to 256; 0 when that is 0
	Workspace      DevicePointer
	QBatchStride   int64
	QTokenStride   int64
	QHeadStride    int64
	KBatchStride   int64
	KTokenStride   int64
	KHeadStride    int64
	VBatchStride   int64
	VTokenStride   int64
	VHeadStride    int64
	OutBatchStride int64
	OutTokenStride int64
	OutHeadStride  int64
	// entries of a row; 0: as many pages as kv_len takes
	PageTableStride int64
	// pages of the cache; needed when it is paged
	PoolPages int64
	// tokens of all sequences of a packed call; 0: nothing is done
	QTokens int64
	// the same of k and v, from 1; unused when they are paged
	KvTokens int64
	// sequences of more than one query, where queries are packed over pages and the host knows that so
	// many stand behind all others, which have one or none; 0: not known, q_starts tells
	Prompts int64
	// factor of q k^T; 0 or less: 1 / sqrt(head_dim)
	Scale float32
	// above 0; needed when the operator has a softcap
	Softcap float32
}

// NewAttentionArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewAttentionArgs() AttentionArgs {
	var c C.hone_attention_args
	mustInit(C.hone_attention_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return AttentionArgs{
		QBatchStride:    int64(c.q_batch_stride),
		QTokenStride:    int64(c.q_token_stride),
		QHeadStride:     int64(c.q_head_stride),
		KBatchStride:    int64(c.k_batch_stride),
		KTokenStride:    int64(c.k_token_stride),
		KHeadStride:     int64(c.k_head_stride),
		VBatchStride:    int64(c.v_batch_stride),
		VTokenStride:    int64(c.v_token_stride),
		VHeadStride:     int64(c.v_head_stride),
		OutBatchStride:  int64(c.out_batch_stride),
		OutTokenStride:  int64(c.out_token_stride),
		OutHeadStride:   int64(c.out_head_stride),
		PageTableStride: int64(c.page_table_stride),
		PoolPages:       int64(c.pool_pages),
		QTokens:         int64(c.q_tokens),
		KvTokens:        int64(c.kv_tokens),
		Prompts:         int64(c.prompts),
		Scale:           float32(c.scale),
		Softcap:         float32(c.softcap),
	}
}

func (args *AttentionArgs) write(c *C.hone_attention_args) {
	mustInit(C.hone_attention_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.q), args.Q)
	setPointer(unsafe.Pointer(&c.k), args.K)
	setPointer(unsafe.Pointer(&c.v), args.V)
	setPointer(unsafe.Pointer(&c.out), args.Out)
	setPointer(unsafe.Pointer(&c.lse), args.Lse)
	setPointer(unsafe.Pointer(&c.kv_lengths), args.KvLengths)
	setPointer(unsafe.Pointer(&c.q_starts), args.QStarts)
	setPointer(unsafe.Pointer(&c.kv_starts), args.KvStarts)
	setPointer(unsafe.Pointer(&c.page_table), args.PageTable)
	setPointer(unsafe.Pointer(&c.k_scale), args.KScale)
	setPointer(unsafe.Pointer(&c.v_scale), args.VScale)
	setPointer(unsafe.Pointer(&c.sinks), args.Sinks)
	setPointer(unsafe.Pointer(&c.workspace), args.Workspace)
	c.q_batch_stride = C.int64_t(args.QBatchStride)
	c.q_token_stride = C.int64_t(args.QTokenStride)
	c.q_head_stride = C.int64_t(args.QHeadStride)
	c.k_batch_stride = C.int64_t(args.KBatchStride)
	c.k_token_stride = C.int64_t(args.KTokenStride)
	c.k_head_stride = C.int64_t(args.KHeadStride)
	c.v_batch_stride = C.int64_t(args.VBatchStride)
	c.v_token_stride = C.int64_t(args.VTokenStride)
	c.v_head_stride = C.int64_t(args.VHeadStride)
	c.out_batch_stride = C.int64_t(args.OutBatchStride)
	c.out_token_stride = C.int64_t(args.OutTokenStride)
	c.out_head_stride = C.int64_t(args.OutHeadStride)
	c.page_table_stride = C.int64_t(args.PageTableStride)
	c.pool_pages = C.int64_t(args.PoolPages)
	c.q_tokens = C.int64_t(args.QTokens)
	c.kv_tokens = C.int64_t(args.KvTokens)
	c.prompts = C.int64_t(args.Prompts)
	c.scale = C.float(args.Scale)
	c.softcap = C.float(args.Softcap)
}

// PreparedAttention is a prepared operator whose calls take AttentionArgs.
type PreparedAttention struct {
	*prepared
}

// Run enqueues a call. q_len and kv_len are those of every sequence; where lengths or starts are on
// the device, the most that any has. kv_len from 1; with batch or q_len 0 nothing is done.
func (p *PreparedAttention) Run(stream Stream, args *AttentionArgs, batch, qLen, kvLen int64) error {
	var c C.hone_attention_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_attention_run(p.c, stream.c(), &c, C.int64_t(batch), C.int64_t(qLen), C.int64_t(kvLen))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedAttention) WorkspaceBytes(batch, qLen, kvLen int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_attention_workspace(p.c, C.int64_t(batch), C.int64_t(qLen), C.int64_t(kvLen), bytes)
	})
}

// Embedding: out = table[ids] * scale + position_table[position_ids], the last two where the
// operator has them, computed in fp32 and rounded once. A token whose id or position has no row
// gets zeros.
type Embedding struct {
	// elements of a row, 1 to 262144
	Hidden int64
	// most tokens of one call
	MaxTokens int64
	// element type of the tables and out
	Dtype     Dtype
	Index     IndexType
	Scale     bool
	Positions bool
}

// NewEmbedding has the library's defaults.
func NewEmbedding() Embedding {
	var c C.hone_embedding
	mustInit(C.hone_embedding_init(&c, C.size_t(unsafe.Sizeof(c))))
	return Embedding{
		Hidden:    int64(c.hidden),
		MaxTokens: int64(c.max_tokens),
		Dtype:     Dtype(c.dtype),
		Index:     IndexType(c.index),
		Scale:     c.scale != 0,
		Positions: c.positions != 0,
	}
}

func (d Embedding) c() C.hone_embedding {
	var c C.hone_embedding
	mustInit(C.hone_embedding_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.hidden = C.int64_t(d.Hidden)
	c.max_tokens = C.int64_t(d.MaxTokens)
	c.dtype = C.int32_t(d.Dtype)
	c.index = C.int32_t(d.Index)
	c.scale = flag(d.Scale)
	c.positions = flag(d.Positions)
	return c
}

// PrepareEmbedding loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareEmbedding(d Embedding) (*PreparedEmbedding, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_embedding_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedEmbedding{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d Embedding) Explain(r *Runtime, tokens int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_embedding_explain(r.c, &given, C.int64_t(tokens),
			C.hone_text_format(format), text, capacity, length)
	})
}

// EmbeddingArgs: One call. Rows are contiguous; a stride is the distance between two rows in
// elements, 0 meaning `hidden`. 16 bytes always suffice as alignment of tables, out and strides.
type EmbeddingArgs struct {
	// [tokens]; their type is index
	Ids DevicePointer
	// [vocabulary, hidden], dtype
	Table DevicePointer
	// [tokens]; their type is index; needed when the operator has positions
	PositionIds DevicePointer
	// [position_rows, hidden], dtype; needed when the operator has positions
	PositionTable DevicePointer
	// [tokens, hidden], dtype
	Out DevicePointer
	// rows of the table
	Vocabulary int64
	// rows of the table of positions
	PositionRows        int64
	TableStride         int64
	PositionTableStride int64
	OutStride           int64
	// where the operator has one
	Scale float32
}

// NewEmbeddingArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewEmbeddingArgs() EmbeddingArgs {
	var c C.hone_embedding_args
	mustInit(C.hone_embedding_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return EmbeddingArgs{
		Vocabulary:          int64(c.vocabulary),
		PositionRows:        int64(c.position_rows),
		TableStride:         int64(c.table_stride),
		PositionTableStride: int64(c.position_table_stride),
		OutStride:           int64(c.out_stride),
		Scale:               float32(c.scale),
	}
}

func (args *EmbeddingArgs) write(c *C.hone_embedding_args) {
	mustInit(C.hone_embedding_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.ids), args.Ids)
	setPointer(unsafe.Pointer(&c.table), args.Table)
	setPointer(unsafe.Pointer(&c.position_ids), args.PositionIds)
	setPointer(unsafe.Pointer(&c.position_table), args.PositionTable)
	setPointer(unsafe.Pointer(&c.out), args.Out)
	c.vocabulary = C.int64_t(args.Vocabulary)
	c.position_rows = C.int64_t(args.PositionRows)
	c.table_stride = C.int64_t(args.TableStride)
	c.position_table_stride = C.int64_t(args.PositionTableStride)
	c.out_stride = C.int64_t(args.OutStride)
	c.scale = C.float(args.Scale)
}

// PreparedEmbedding is a prepared operator whose calls take EmbeddingArgs.
type PreparedEmbedding struct {
	*prepared
}

// Run enqueues a call.
func (p *PreparedEmbedding) Run(stream Stream, args *EmbeddingArgs, tokens int64) error {
	var c C.hone_embedding_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_embedding_run(p.c, stream.c(), &c, C.int64_t(tokens))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedEmbedding) WorkspaceBytes(tokens int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_operator_workspace(p.c, C.int64_t(tokens), bytes)
	})
}

// ExpertLinear: A linear layer of a mixture of experts: row p of x, sorted by expert as
// ExpertRouting says, times the weight of expert e with starts[e] <= p < starts[e + 1], accumulated
// in fp32. activation(x * weight^T + bias); gated: activation(x * weight^T + bias) * (x * up^T +
// up_bias), but with swiglu_oai what Activation says of both. With gather, x has a row for each
// token, and place p takes that of token rows[p] / top_k. With combine, out has a row for each
// token: the sum over slots, in their order and in fp32, of routing_weights[token, slot] times the
// result of that pair, which was rounded to dtype before.
type ExpertLinear struct {
	// elements of a row of x, 1 to 262144
	In int64
	// elements of a row of out, 1 to 1048576
	Out int64
	// 1 to 512
	Experts int64
	// experts of a token, 1 to 32
	TopK int64
	// most tokens of one call
	MaxTokens int64
	// element type of x, weights and out
	Dtype      Dtype
	Activation Activation
	// there is a second weight, up
	Gated bool
	Bias  bool
	// x has a row for each token
	Gather bool
	// out has a row for each token
	Combine bool
}

// NewExpertLinear has the library's defaults.
func NewExpertLinear() ExpertLinear {
	var c C.hone_expert_linear
	mustInit(C.hone_expert_linear_init(&c, C.size_t(unsafe.Sizeof(c))))
	return ExpertLinear{
		In:         int64(c.in),
		Out:        int64(c.out),
		Experts:    int64(c.experts),
		TopK:       int64(c.top_k),
		MaxTokens:  int64(c.max_tokens),
		Dtype:      Dtype(c.dtype),
		Activation: Activation(c.activation),
		Gated:      c.gated != 0,
		Bias:       c.bias != 0,
		Gather:     c.gather != 0,
		Combine:    c.combine != 0,
	}
}

func (d ExpertLinear) c() C.hone_expert_linear {
	var c C.hone_expert_linear
	mustInit(C.hone_expert_linear_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.in = C.int64_t(d.In)
	c.out = C.int64_t(d.Out)
	c.experts = C.int64_t(d.Experts)
	c.top_k = C.int64_t(d.TopK)
	c.max_tokens = C.int64_t(d.MaxTokens)
	c.dtype = C.int32_t(d.Dtype)
	c.activation = C.int32_t(d.Activation)
	c.gated = flag(d.Gated)
	c.bias = flag(d.Bias)
	c.gather = flag(d.Gather)
	c.combine = flag(d.Combine)
	return c
}

// PrepareExpertLinear loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareExpertLinear(d ExpertLinear) (*PreparedExpertLinear, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_expert_linear_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedExpertLinear{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d ExpertLinear) Explain(r *Runtime, tokens int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_expert_linear_explain(r.c, &given, C.int64_t(tokens),
			C.hone_text_format(format), text, capacity, length)
	})
}

// ExpertLinearArgs: One call. A stride is the distance between two rows in elements, 0 meaning the
// row's length; weights are contiguous. 16 bytes always suffice as alignment of pointers and
// strides. out overlaps nothing else. `starts` and `rows` are on the device: what they say beyond
// the call's places is not read, and nothing is written there; rows of out that no place has then
// keep what they hold, and are nothing to rely on with combine.
type ExpertLinearArgs struct {
	// [tokens, in] with gather, else [tokens, top_k, in]: tokens * top_k rows by place; dtype
	X DevicePointer
	// [experts + 1]: the first place of each expert, and tokens * top_k
	Starts DevicePointer
	// [tokens, top_k]; needed with gather or combine: the pairs by place, token * top_k + slot
	Rows DevicePointer
	// [tokens, top_k]; needed with combine
	RoutingWeights DevicePointer
	// [experts, out, in], dtype
	Weight DevicePointer
	// [experts, out, in]; needed when the operator is gated
	Up DevicePointer
	// [experts, out], dtype; needed when the operator has a bias
	Bias DevicePointer
	// [experts, out]; needed when the operator is gated and has biases
	UpBias DevicePointer
	// [tokens, out] with combine, else [tokens, top_k, out]: tokens * top_k rows by place; dtype
	Out DevicePointer
	// WorkspaceBytes(), aligned to 256; 0 when that is 0
	Workspace DevicePointer
	XStride   int64
	OutStride int64
}

// NewExpertLinearArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewExpertLinearArgs() ExpertLinearArgs {
	var c C.hone_expert_linear_args
	mustInit(C.hone_expert_linear_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return ExpertLinearArgs{
		XStride:   int64(c.x_stride),
		OutStride: int64(c.out_stride),
	}
}

func (args *ExpertLinearArgs) write(c *C.hone_expert_linear_args) {
	mustInit(C.hone_expert_linear_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.x), args.X)
	setPointer(unsafe.Pointer(&c.starts), args.Starts)
	setPointer(unsafe.Pointer(&c.rows), args.Rows)
	setPointer(unsafe.Pointer(&c.routing_weights), args.RoutingWeights)
	setPointer(unsafe.Pointer(&c.weight), args.Weight)
	setPointer(unsafe.Pointer(&c.up), args.Up)
	setPointer(unsafe.Pointer(&c.bias), args.Bias)
	setPointer(unsafe.Pointer(&c.up_bias), args.UpBias)
	setPointer(unsafe.Pointer(&c.out), args.Out)
	setPointer(unsafe.Pointer(&c.workspace), args.Workspace)
	c.x_stride = C.int64_t(args.XStride)
	c.out_stride = C.int64_t(args.OutStride)
}

// PreparedExpertLinear is a prepared operator whose calls take ExpertLinearArgs.
type PreparedExpertLinear struct {
	*prepared
}

// Run enqueues a call.
func (p *PreparedExpertLinear) Run(stream Stream, args *ExpertLinearArgs, tokens int64) error {
	var c C.hone_expert_linear_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_expert_linear_run(p.c, stream.c(), &c, C.int64_t(tokens))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedExpertLinear) WorkspaceBytes(tokens int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_operator_workspace(p.c, C.int64_t(tokens), bytes)
	})
}

// ExpertRouting: Routing of a mixture of experts: of each token's softmax over all experts the
// top_k largest, in this order, of equal ones the first, with `renormalize` divided by their sum;
// and all pairs of a token and a slot, number token * top_k + slot, sorted by expert, those of one
// expert in their own order. The result is the same in every call. NaN counts as minus infinity.
type ExpertRouting struct {
	// logits a token, 1 to 512
	Experts int64
	// experts that a token goes to, 1 to 32
	TopK int64
	// most tokens of one call
	MaxTokens int64
	// element type of the logits
	Dtype       Dtype
	Renormalize bool
}

// NewExpertRouting has the library's defaults.
func NewExpertRouting() ExpertRouting {
	var c C.hone_expert_routing
	mustInit(C.hone_expert_routing_init(&c, C.size_t(unsafe.Sizeof(c))))
	return ExpertRouting{
		Experts:     int64(c.experts),
		TopK:        int64(c.top_k),
		MaxTokens:   int64(c.max_tokens),
		Dtype:       Dtype(c.dtype),
		Renormalize: c.renormalize != 0,
	}
}

func (d ExpertRouting) c() C.hone_expert_routing {
	var c C.hone_expert_routing
	mustInit(C.hone_expert_routing_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.experts = C.int64_t(d.Experts)
	c.top_k = C.int64_t(d.TopK)
	c.max_tokens = C.int64_t(d.MaxTokens)
	c.dtype = C.int32_t(d.Dtype)
	c.renormalize = flag(d.Renormalize)
	return c
}

// PrepareExpertRouting loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareExpertRouting(d ExpertRouting) (*PreparedExpertRouting, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_expert_routing_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedExpertRouting{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d ExpertRouting) Explain(r *Runtime, tokens int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_expert_routing_explain(r.c, &given, C.int64_t(tokens),
			C.hone_text_format(format), text, capacity, length)
	})
}

// ExpertRoutingArgs: One call. `logits_stride` is the distance between two rows in elements, 0
// meaning `experts`.
type ExpertRoutingArgs struct {
	// [tokens, experts], dtype
	Logits DevicePointer
	// [tokens, top_k]; those of slot 0 first, the largest
	RoutingWeights DevicePointer
	// [experts + 1]: the first place of each expert's pairs, and tokens * top_k
	Starts DevicePointer
	// [tokens, top_k]; the pairs by place: tokens * top_k numbers, token * top_k + slot
	Rows DevicePointer
	// WorkspaceBytes(), aligned to 256; 0 when that is 0
	Workspace    DevicePointer
	LogitsStride int64
}

// NewExpertRoutingArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewExpertRoutingArgs() ExpertRoutingArgs {
	var c C.hone_expert_routing_args
	mustInit(C.hone_expert_routing_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return ExpertRoutingArgs{
		LogitsStride: int64(c.logits_stride),
	}
}

func (args *ExpertRoutingArgs) write(c *C.hone_expert_routing_args) {
	mustInit(C.hone_expert_routing_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.logits), args.Logits)
	setPointer(unsafe.Pointer(&c.routing_weights), args.RoutingWeights)
	setPointer(unsafe.Pointer(&c.starts), args.Starts)
	setPointer(unsafe.Pointer(&c.rows), args.Rows)
	setPointer(unsafe.Pointer(&c.workspace), args.Workspace)
	c.logits_stride = C.int64_t(args.LogitsStride)
}

// PreparedExpertRouting is a prepared operator whose calls take ExpertRoutingArgs.
type PreparedExpertRouting struct {
	*prepared
}

// Run enqueues a call.
func (p *PreparedExpertRouting) Run(stream Stream, args *ExpertRoutingArgs, tokens int64) error {
	var c C.hone_expert_routing_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_expert_routing_run(p.c, stream.c(), &c, C.int64_t(tokens))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedExpertRouting) WorkspaceBytes(tokens int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_operator_workspace(p.c, C.int64_t(tokens), bytes)
	})
}

// Linear: out = activation(x * weight^T + bias) + residual, accumulated in fp32. Rows of x are
// tokens. With a norm x * rsqrt(mean(x^2) + epsilon) * norm_weight, an RmsNorm, takes the place of
// x; it may be rounded to dtype before it is multiplied, as that of an RmsNorm is.
type Linear struct {
	// elements of a row of x, 1 to 262144
	In int64
	// elements of a row of out, 1 to 1048576
	Out int64
	// most tokens of one call
	MaxTokens int64
	// element type of every tensor
	Dtype      Dtype
	Activation Activation
	Bias       bool
	Residual   bool
	// x is normalized first
	Norm bool
}

// NewLinear has the library's defaults.
func NewLinear() Linear {
	var c C.hone_linear
	mustInit(C.hone_linear_init(&c, C.size_t(unsafe.Sizeof(c))))
	return Linear{
		In:         int64(c.in),
		Out:        int64(c.out),
		MaxTokens:  int64(c.max_tokens),
		Dtype:      Dtype(c.dtype),
		Activation: Activation(c.activation),
		Bias:       c.bias != 0,
		Residual:   c.residual != 0,
		Norm:       c.norm != 0,
	}
}

func (d Linear) c() C.hone_linear {
	var c C.hone_linear
	mustInit(C.hone_linear_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.in = C.int64_t(d.In)
	c.out = C.int64_t(d.Out)
	c.max_tokens = C.int64_t(d.MaxTokens)
	c.dtype = C.int32_t(d.Dtype)
	c.activation = C.int32_t(d.Activation)
	c.bias = flag(d.Bias)
	c.residual = flag(d.Residual)
	c.norm = flag(d.Norm)
	return c
}

// PrepareLinear loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareLinear(d Linear) (*PreparedLinear, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_linear_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedLinear{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d Linear) Explain(r *Runtime, tokens int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_linear_explain(r.c, &given, C.int64_t(tokens),
			C.hone_text_format(format), text, capacity, length)
	})
}

// LinearArgs: Rows are contiguous; a stride is the distance between two rows in elements, 0 meaning
// the row's length. 16 bytes always suffice as alignment of pointers and strides. `out` may be the
// residual itself; other overlaps are not allowed. Weights are constants: a kernel may read them
// before the one enqueued right before it has ended, if that lets its successor begin early, as
// Hone's kernels do. Such a kernel must not write them.
type LinearArgs struct {
	// [tokens, in], dtype
	X DevicePointer
	// [out, in], dtype
	Weight DevicePointer
	// [out], dtype; needed when the operator has a bias
	Bias DevicePointer
	// [tokens, out], dtype; needed when the operator has a residual
	Residual DevicePointer
	// [tokens, out], dtype
	Out DevicePointer
	// WorkspaceBytes(), aligned to 256; 0 when that is 0
	Workspace      DevicePointer
	XStride        int64
	WeightStride   int64
	ResidualStride int64
	OutStride      int64
	// [in], dtype; needed when the operator has a norm
	NormWeight DevicePointer
	// the norm's, from 0
	Epsilon float32
}

// NewLinearArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewLinearArgs() LinearArgs {
	var c C.hone_linear_args
	mustInit(C.hone_linear_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return LinearArgs{
		XStride:        int64(c.x_stride),
		WeightStride:   int64(c.weight_stride),
		ResidualStride: int64(c.residual_stride),
		OutStride:      int64(c.out_stride),
		Epsilon:        float32(c.epsilon),
	}
}

func (args *LinearArgs) write(c *C.hone_linear_args) {
	mustInit(C.hone_linear_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.x), args.X)
	setPointer(unsafe.Pointer(&c.weight), args.Weight)
	setPointer(unsafe.Pointer(&c.bias), args.Bias)
	setPointer(unsafe.Pointer(&c.residual), args.Residual)
	setPointer(unsafe.Pointer(&c.out), args.Out)
	setPointer(unsafe.Pointer(&c.workspace), args.Workspace)
	c.x_stride = C.int64_t(args.XStride)
	c.weight_stride = C.int64_t(args.WeightStride)
	c.residual_stride = C.int64_t(args.ResidualStride)
	c.out_stride = C.int64_t(args.OutStride)
	setPointer(unsafe.Pointer(&c.norm_weight), args.NormWeight)
	c.epsilon = C.float(args.Epsilon)
}

// PreparedLinear is a prepared operator whose calls take LinearArgs.
type PreparedLinear struct {
	*prepared
}

// Run enqueues a call.
func (p *PreparedLinear) Run(stream Stream, args *LinearArgs, tokens int64) error {
	var c C.hone_linear_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_linear_run(p.c, stream.c(), &c, C.int64_t(tokens))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedLinear) WorkspaceBytes(tokens int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_operator_workspace(p.c, C.int64_t(tokens), bytes)
	})
}

// FusedFfn: The feed-forward network of a transformer layer. Gated (SwiGLU and its like):
//
//	out = (activation(x * gate^T) * (x * up^T)) * down^T + residual,
//
// else out = activation(x * up^T + up_bias) * down^T + down_bias + residual. The product of the
// first half [tokens, intermediate], rounded to dtype, lies in the workspace. With a norm an
// RmsNorm of x takes the place of x, as in Linear, but not of a residual that is x itself: out = x
// + ffn(norm(x)) is one call.
type FusedFfn struct {
	// elements of a row of x and out
	Hidden int64
	// elements of a row between the halves
	Intermediate int64
	// most tokens of one call
	MaxTokens int64
	// element type of every tensor
	Dtype      Dtype
	Activation Activation
	Gated      bool
	// biases of both halves; not with `gated`
	Bias bool
	// added to out
	Residual bool
	// x is normalized first
	Norm bool
}

// NewFusedFfn has the library's defaults.
func NewFusedFfn() FusedFfn {
	var c C.hone_fused_ffn
	mustInit(C.hone_fused_ffn_init(&c, C.size_t(unsafe.Sizeof(c))))
	return FusedFfn{
		Hidden:       int64(c.hidden),
		Intermediate: int64(c.intermediate),
		MaxTokens:    int64(c.max_tokens),
		Dtype:        Dtype(c.dtype),
		Activation:   Activation(c.activation),
		Gated:        c.gated != 0,
		Bias:         c.bias != 0,
		Residual:     c.residual != 0,
		Norm:         c.norm != 0,
	}
}

func (d FusedFfn) c() C.hone_fused_ffn {
	var c C.hone_fused_ffn
	mustInit(C.hone_fused_ffn_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.hidden = C.int64_t(d.Hidden)
	c.intermediate = C.int64_t(d.Intermediate)
	c.max_tokens = C.int64_t(d.MaxTokens)
	c.dtype = C.int32_t(d.Dtype)
	c.activation = C.int32_t(d.Activation)
	c.gated = flag(d.Gated)
	c.bias = flag(d.Bias)
	c.residual = flag(d.Residual)
	c.norm = flag(d.Norm)
	return c
}

// PrepareFusedFfn loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareFusedFfn(d FusedFfn) (*PreparedFusedFfn, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_fused_ffn_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedFusedFfn{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d FusedFfn) Explain(r *Runtime, tokens int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_fused_ffn_explain(r.c, &given, C.int64_t(tokens),
			C.hone_text_format(format), text, capacity, length)
	})
}

// FusedFfnArgs: As LinearArgs; weights are contiguous. `out` may be the residual itself also where
// that is x.
type FusedFfnArgs struct {
	// [tokens, hidden]
	X DevicePointer
	// [intermediate, hidden]; needed when the operator is gated
	Gate DevicePointer
	// [intermediate, hidden]
	Up DevicePointer
	// [intermediate]; needed when the operator has biases
	UpBias DevicePointer
	// [hidden, intermediate]
	Down DevicePointer
	// [hidden]; needed when the operator has biases
	DownBias DevicePointer
	// [tokens, hidden]; needed when the operator has a residual
	Residual DevicePointer
	// [tokens, hidden]
	Out DevicePointer
	// WorkspaceBytes(), aligned to 256; 0 when that is 0
	Workspace      DevicePointer
	XStride        int64
	ResidualStride int64
	OutStride      int64
	// [hidden]; needed when the operator has a norm
	NormWeight DevicePointer
	// the norm's, from 0
	Epsilon float32
}

// NewFusedFfnArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewFusedFfnArgs() FusedFfnArgs {
	var c C.hone_fused_ffn_args
	mustInit(C.hone_fused_ffn_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return FusedFfnArgs{
		XStride:        int64(c.x_stride),
		ResidualStride: int64(c.residual_stride),
		OutStride:      int64(c.out_stride),
		Epsilon:        float32(c.epsilon),
	}
}

func (args *FusedFfnArgs) write(c *C.hone_fused_ffn_args) {
	mustInit(C.hone_fused_ffn_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.x), args.X)
	setPointer(unsafe.Pointer(&c.gate), args.Gate)
	setPointer(unsafe.Pointer(&c.up), args.Up)
	setPointer(unsafe.Pointer(&c.up_bias), args.UpBias)
	setPointer(unsafe.Pointer(&c.down), args.Down)
	setPointer(unsafe.Pointer(&c.down_bias), args.DownBias)
	setPointer(unsafe.Pointer(&c.residual), args.Residual)
	setPointer(unsafe.Pointer(&c.out), args.Out)
	setPointer(unsafe.Pointer(&c.workspace), args.Workspace)
	c.x_stride = C.int64_t(args.XStride)
	c.residual_stride = C.int64_t(args.ResidualStride)
	c.out_stride = C.int64_t(args.OutStride)
	setPointer(unsafe.Pointer(&c.norm_weight), args.NormWeight)
	c.epsilon = C.float(args.Epsilon)
}

// PreparedFusedFfn is a prepared operator whose calls take FusedFfnArgs.
type PreparedFusedFfn struct {
	*prepared
}

// Run enqueues a call.
func (p *PreparedFusedFfn) Run(stream Stream, args *FusedFfnArgs, tokens int64) error {
	var c C.hone_fused_ffn_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_fused_ffn_run(p.c, stream.c(), &c, C.int64_t(tokens))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedFusedFfn) WorkspaceBytes(tokens int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_operator_workspace(p.c, C.int64_t(tokens), bytes)
	})
}

// RmsNorm: y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements,
// accumulated in fp32. With a residual, x + residual (rounded to dtype) takes the place of x and is
// written to `sum`. With unit_offset, as in Gemma's models, the weight counts as 1 + weight, which
// is not rounded.
type RmsNorm struct {
	// elements of a row, 1 to 262144
	Hidden int64
	// most rows of one call
	MaxRows int64
	// element type of x, residual, weight and sum
	Dtype      Dtype
	Output     NormOutput
	Residual   bool
	UnitOffset bool
}

// NewRmsNorm has the library's defaults.
func NewRmsNorm() RmsNorm {
	var c C.hone_rms_norm
	mustInit(C.hone_rms_norm_init(&c, C.size_t(unsafe.Sizeof(c))))
	return RmsNorm{
		Hidden:     int64(c.hidden),
		MaxRows:    int64(c.max_rows),
		Dtype:      Dtype(c.dtype),
		Output:     NormOutput(c.output),
		Residual:   c.residual != 0,
		UnitOffset: c.unit_offset != 0,
	}
}

func (d RmsNorm) c() C.hone_rms_norm {
	var c C.hone_rms_norm
	mustInit(C.hone_rms_norm_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.hidden = C.int64_t(d.Hidden)
	c.max_rows = C.int64_t(d.MaxRows)
	c.dtype = C.int32_t(d.Dtype)
	c.output = C.int32_t(d.Output)
	c.residual = flag(d.Residual)
	c.unit_offset = flag(d.UnitOffset)
	return c
}

// PrepareRmsNorm loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareRmsNorm(d RmsNorm) (*PreparedNorm, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_rms_norm_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedNorm{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d RmsNorm) Explain(r *Runtime, rows int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_rms_norm_explain(r.c, &given, C.int64_t(rows),
			C.hone_text_format(format), text, capacity, length)
	})
}

// LayerNorm: y = (x - mean(x)) * rsqrt(var(x) + epsilon) * weight + bias over each row; otherwise
// like RmsNorm.
type LayerNorm struct {
	// elements of a row, 1 to 262144
	Hidden int64
	// most rows of one call
	MaxRows int64
	// element type of x, residual, weight, bias and sum
	Dtype      Dtype
	Output     NormOutput
	Residual   bool
	Bias       bool
	UnitOffset bool
}

// NewLayerNorm has the library's defaults.
func NewLayerNorm() LayerNorm {
	var c C.hone_layer_norm
	mustInit(C.hone_layer_norm_init(&c, C.size_t(unsafe.Sizeof(c))))
	return LayerNorm{
		Hidden:     int64(c.hidden),
		MaxRows:    int64(c.max_rows),
		Dtype:      Dtype(c.dtype),
		Output:     NormOutput(c.output),
		Residual:   c.residual != 0,
		Bias:       c.bias != 0,
		UnitOffset: c.unit_offset != 0,
	}
}

func (d LayerNorm) c() C.hone_layer_norm {
	var c C.hone_layer_norm
	mustInit(C.hone_layer_norm_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.hidden = C.int64_t(d.Hidden)
	c.max_rows = C.int64_t(d.MaxRows)
	c.dtype = C.int32_t(d.Dtype)
	c.output = C.int32_t(d.Output)
	c.residual = flag(d.Residual)
	c.bias = flag(d.Bias)
	c.unit_offset = flag(d.UnitOffset)
	return c
}

// PrepareLayerNorm loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareLayerNorm(d LayerNorm) (*PreparedNorm, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_layer_norm_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedNorm{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d LayerNorm) Explain(r *Runtime, rows int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_layer_norm_explain(r.c, &given, C.int64_t(rows),
			C.hone_text_format(format), text, capacity, length)
	})
}

// NormArgs: One call of either norm. Rows are contiguous; a stride is the distance between two rows
// in elements, 0 meaning `hidden`. 16 bytes always suffice as alignment of pointers and strides.
// `out` may be x itself when it has the same dtype, `sum` may be x or residual itself; other
// overlaps are not allowed.
type NormArgs struct {
	// [rows, hidden], dtype
	X DevicePointer
	// [rows, hidden], dtype; needed when the operator has a residual
	Residual DevicePointer
	// [hidden], dtype
	Weight DevicePointer
	// [hidden], dtype; needed when a layer norm has a bias
	Bias DevicePointer
	// [rows, hidden], dtype or codes of one byte
	Out DevicePointer
	// [rows, hidden], dtype; needed when the operator has a residual
	Sum DevicePointer
	// [rows]; needed when the output is quantized
	Scale          DevicePointer
	XStride        int64
	ResidualStride int64
	OutStride      int64
	SumStride      int64
	// from 0
	Epsilon float32
}

// NewNormArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewNormArgs() NormArgs {
	var c C.hone_norm_args
	mustInit(C.hone_norm_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return NormArgs{
		XStride:        int64(c.x_stride),
		ResidualStride: int64(c.residual_stride),
		OutStride:      int64(c.out_stride),
		SumStride:      int64(c.sum_stride),
		Epsilon:        float32(c.epsilon),
	}
}

func (args *NormArgs) write(c *C.hone_norm_args) {
	mustInit(C.hone_norm_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.x), args.X)
	setPointer(unsafe.Pointer(&c.residual), args.Residual)
	setPointer(unsafe.Pointer(&c.weight), args.Weight)
	setPointer(unsafe.Pointer(&c.bias), args.Bias)
	setPointer(unsafe.Pointer(&c.out), args.Out)
	setPointer(unsafe.Pointer(&c.sum), args.Sum)
	setPointer(unsafe.Pointer(&c.scale), args.Scale)
	c.x_stride = C.int64_t(args.XStride)
	c.residual_stride = C.int64_t(args.ResidualStride)
	c.out_stride = C.int64_t(args.OutStride)
	c.sum_stride = C.int64_t(args.SumStride)
	c.epsilon = C.float(args.Epsilon)
}

// PreparedNorm is a prepared operator whose calls take NormArgs.
type PreparedNorm struct {
	*prepared
}

// Run enqueues a call.
func (p *PreparedNorm) Run(stream Stream, args *NormArgs, rows int64) error {
	var c C.hone_norm_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_norm_run(p.c, stream.c(), &c, C.int64_t(rows))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedNorm) WorkspaceBytes(rows int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_operator_workspace(p.c, C.int64_t(rows), bytes)
	})
}

// QuantizeWeights: Codes and scales of weights of 16 or 32 bits, for QuantizedLinear: [max_out, in]
// or fewer rows.
type QuantizeWeights struct {
	// columns, 1 to 262144
	In int64
	// most rows of one call; `in` x max_out is at most 2^36, 1 to 1048576
	MaxOut int64
	// element type of the weight: fp32, fp16 or bf16
	Dtype  Dtype
	Format QuantFormat
	// as in QuantizedLinear
	Group int64
	// w4a16: codes have zero points, one a group
	Zeros bool
	// w8a8, fp8 with group 0: one scale for the whole weight, not one a row
	OneScale bool
	// element type of w4a16's scales: fp16 or bf16; the other formats' are fp32 always
	ScaleDtype Dtype
	// w4a16: takes the scale of each group that leaves the least squared error; else the one that
	// clips nothing
	Search bool
}

// NewQuantizeWeights has the library's defaults.
func NewQuantizeWeights() QuantizeWeights {
	var c C.hone_quantize_weights
	mustInit(C.hone_quantize_weights_init(&c, C.size_t(unsafe.Sizeof(c))))
	return QuantizeWeights{
		In:         int64(c.in),
		MaxOut:     int64(c.max_out),
		Dtype:      Dtype(c.dtype),
		Format:     QuantFormat(c.format),
		Group:      int64(c.group),
		Zeros:      c.zeros != 0,
		OneScale:   c.one_scale != 0,
		ScaleDtype: Dtype(c.scale_dtype),
		Search:     c.search != 0,
	}
}

func (d QuantizeWeights) c() C.hone_quantize_weights {
	var c C.hone_quantize_weights
	mustInit(C.hone_quantize_weights_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.in = C.int64_t(d.In)
	c.max_out = C.int64_t(d.MaxOut)
	c.dtype = C.int32_t(d.Dtype)
	c.format = C.int32_t(d.Format)
	c.group = C.int64_t(d.Group)
	c.zeros = flag(d.Zeros)
	c.one_scale = flag(d.OneScale)
	c.scale_dtype = C.int32_t(d.ScaleDtype)
	c.search = flag(d.Search)
	return c
}

// QuantizeWeightsArgs: codes, scales and zeros as QuantizedLinearArgs says, without gaps; no part
// may overlap another.
type QuantizeWeightsArgs struct {
	// [out, in], dtype
	Weight DevicePointer
	Codes  DevicePointer
	Scales DevicePointer
	// needed when codes have zero points
	Zeros DevicePointer
	// WorkspaceBytes(), aligned to 256; 0 when that is 0
	Workspace DevicePointer
	// between two rows of the weight, in elements; 0: `in`
	WeightStride int64
}

// NewQuantizeWeightsArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewQuantizeWeightsArgs() QuantizeWeightsArgs {
	var c C.hone_quantize_weights_args
	mustInit(C.hone_quantize_weights_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return QuantizeWeightsArgs{
		WeightStride: int64(c.weight_stride),
	}
}

func (args *QuantizeWeightsArgs) write(c *C.hone_quantize_weights_args) {
	mustInit(C.hone_quantize_weights_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.weight), args.Weight)
	setPointer(unsafe.Pointer(&c.codes), args.Codes)
	setPointer(unsafe.Pointer(&c.scales), args.Scales)
	setPointer(unsafe.Pointer(&c.zeros), args.Zeros)
	setPointer(unsafe.Pointer(&c.workspace), args.Workspace)
	c.weight_stride = C.int64_t(args.WeightStride)
}

// QuantizedExpertLinear: ExpertLinear with quantized weights, all of one format: row p of x, sorted
// by expert as ExpertRouting says, times the weight of expert e with starts[e] <= p < starts[e +
// 1], whose elements are (code - zero point) * scale. gather, combine, biases and gates are as
// there.
//
// w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8
// multiply codes with codes, which are made of x first, with a scale for each row (fp8 with a
// group: for each 128 columns of it), the largest magnitude at 127 or 448.
type QuantizedExpertLinear struct {
	// elements of a row of x, 1 to 262144
	In int64
	// elements of a row of out, 1 to 1048576
	Out int64
	// 1 to 512
	Experts int64
	// experts of a token, 1 to 32
	TopK int64
	// most tokens of one call
	MaxTokens int64
	// element type of x, biases and out
	Dtype  Dtype
	Format QuantFormat
	// columns of a weight that share a scale; 0: all of a row. As in QuantizedLinear: w4a16: 32, 64 or
	// 128, dividing `in`; fp8: 128, dividing `in`, for a scale each 128 x 128; others: 0, 0 to 128
	Group int64
	// w4a16: codes have zero points, one a group
	Zeros      bool
	Activation Activation
	// there is a second weight, up
	Gated bool
	Bias  bool
	// x has a row for each token
	Gather bool
	// out has a row for each token
	Combine bool
}

// NewQuantizedExpertLinear has the library's defaults.
func NewQuantizedExpertLinear() QuantizedExpertLinear {
	var c C.hone_quantized_expert_linear
	mustInit(C.hone_quantized_expert_linear_init(&c, C.size_t(unsafe.Sizeof(c))))
	return QuantizedExpertLinear{
		In:         int64(c.in),
		Out:        int64(c.out),
		Experts:    int64(c.experts),
		TopK:       int64(c.top_k),
		MaxTokens:  int64(c.max_tokens),
		Dtype:      Dtype(c.dtype),
		Format:     QuantFormat(c.format),
		Group:      int64(c.group),
		Zeros:      c.zeros != 0,
		Activation: Activation(c.activation),
		Gated:      c.gated != 0,
		Bias:       c.bias != 0,
		Gather:     c.gather != 0,
		Combine:    c.combine != 0,
	}
}

func (d QuantizedExpertLinear) c() C.hone_quantized_expert_linear {
	var c C.hone_quantized_expert_linear
	mustInit(C.hone_quantized_expert_linear_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.in = C.int64_t(d.In)
	c.out = C.int64_t(d.Out)
	c.experts = C.int64_t(d.Experts)
	c.top_k = C.int64_t(d.TopK)
	c.max_tokens = C.int64_t(d.MaxTokens)
	c.dtype = C.int32_t(d.Dtype)
	c.format = C.int32_t(d.Format)
	c.group = C.int64_t(d.Group)
	c.zeros = flag(d.Zeros)
	c.activation = C.int32_t(d.Activation)
	c.gated = flag(d.Gated)
	c.bias = flag(d.Bias)
	c.gather = flag(d.Gather)
	c.combine = flag(d.Combine)
	return c
}

// PrepareQuantizedExpertLinear loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareQuantizedExpertLinear(d QuantizedExpertLinear) (*PreparedQuantizedExpertLinear, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_quantized_expert_linear_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedQuantizedExpertLinear{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d QuantizedExpertLinear) Explain(r *Runtime, tokens int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_quantized_expert_linear_explain(r.c, &given, C.int64_t(tokens),
			C.hone_text_format(format), text, capacity, length)
	})
}

// QuantizedExpertLinearArgs: One call. A stride is the distance between two rows in elements, 0
// meaning the row's length; weights have no gaps. 16 bytes always suffice as alignment of pointers
// and strides. out overlaps nothing else. Codes, scales and zero points of a weight are those of
// QuantizedLinearArgs, expert after expert. What ExpertLinearArgs says of `starts` and `rows` holds
// here, too.
type QuantizedExpertLinearArgs struct {
	// [tokens, in] with gather, else [tokens, top_k, in]: tokens * top_k rows by place; dtype
	X DevicePointer
	// [experts + 1]: the first place of each expert, and tokens * top_k
	Starts DevicePointer
	// [tokens, top_k]; needed with gather or combine: the pairs by place, token * top_k + slot
	Rows DevicePointer
	// [tokens, top_k]; needed with combine
	RoutingWeights DevicePointer
	// [experts, out, in]
	Weight DevicePointer
	Scales DevicePointer
	Zeros  DevicePointer
	// [experts, out, in]; needed when the operator is gated
	Up       DevicePointer
	UpScales DevicePointer
	UpZeros  DevicePointer
	// [experts, out], dtype; needed when the operator has a bias
	Bias DevicePointer
	// [experts, out]; needed when the operator is gated and has biases
	UpBias DevicePointer
	// [tokens, out] with combine, else [tokens, top_k, out]: tokens * top_k rows by place; dtype
	Out DevicePointer
	// WorkspaceBytes(), aligned to 256; 0 when that is 0
	Workspace DevicePointer
	XStride   int64
	OutStride int64
}

// NewQuantizedExpertLinearArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewQuantizedExpertLinearArgs() QuantizedExpertLinearArgs {
	var c C.hone_quantized_expert_linear_args
	mustInit(C.hone_quantized_expert_linear_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return QuantizedExpertLinearArgs{
		XStride:   int64(c.x_stride),
		OutStride: int64(c.out_stride),
	}
}

func (args *QuantizedExpertLinearArgs) write(c *C.hone_quantized_expert_linear_args) {
	mustInit(C.hone_quantized_expert_linear_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.x), args.X)
	setPointer(unsafe.Pointer(&c.starts), args.Starts)
	setPointer(unsafe.Pointer(&c.rows), args.Rows)
	setPointer(unsafe.Pointer(&c.routing_weights), args.RoutingWeights)
	setPointer(unsafe.Pointer(&c.weight), args.Weight)
	setPointer(unsafe.Pointer(&c.scales), args.Scales)
	setPointer(unsafe.Pointer(&c.zeros), args.Zeros)
	setPointer(unsafe.Pointer(&c.up), args.Up)
	setPointer(unsafe.Pointer(&c.up_scales), args.UpScales)
	setPointer(unsafe.Pointer(&c.up_zeros), args.UpZeros)
	setPointer(unsafe.Pointer(&c.bias), args.Bias)
	setPointer(unsafe.Pointer(&c.up_bias), args.UpBias)
	setPointer(unsafe.Pointer(&c.out), args.Out)
	setPointer(unsafe.Pointer(&c.workspace), args.Workspace)
	c.x_stride = C.int64_t(args.XStride)
	c.out_stride = C.int64_t(args.OutStride)
}

// PreparedQuantizedExpertLinear is a prepared operator whose calls take QuantizedExpertLinearArgs.
type PreparedQuantizedExpertLinear struct {
	*prepared
}

// Run enqueues a call.
func (p *PreparedQuantizedExpertLinear) Run(stream Stream, args *QuantizedExpertLinearArgs, tokens int64) error {
	var c C.hone_quantized_expert_linear_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_quantized_expert_linear_run(p.c, stream.c(), &c, C.int64_t(tokens))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedQuantizedExpertLinear) WorkspaceBytes(tokens int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_operator_workspace(p.c, C.int64_t(tokens), bytes)
	})
}

// QuantizedLinear: out = activation(x * weight^T + bias) + residual, accumulated in fp32 (w8a8: in
// 32-bit integers), where an element of weight is (code - zero point) * scale. Rows of x are
// tokens.
//
// w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8
// multiply codes with codes: either the caller gives those of x (quantized_x), as an RmsNorm writes
// them, or they are made of x first, with a scale for each token (fp8 with a group: for each 128
// columns of it), the largest magnitude at 127 or 448. With a norm x * rsqrt(mean(x^2) + epsilon) *
// norm_weight takes the place of x, as in Linear.
type QuantizedLinear struct {
	// elements of a row of x, 1 to 262144
	In int64
	// elements of a row of out, 1 to 1048576
	Out int64
	// most tokens of one call
	MaxTokens int64
	// element type of x that is no codes, bias, residual, norm_weight and out
	Dtype  Dtype
	Format QuantFormat
	// columns of the weight that share a scale; 0: all of a row. w4a16: 32, 64 or 128, dividing `in`.
	// fp8: 128, dividing `in`, for a scale each 128 x 128 of the weight and each 128 columns of x.
	// Others: 0, 0 to 128
	Group int64
	// w4a16: codes have zero points, one a group
	Zeros bool
	// w8a8, fp8 with group 0: one scale for the whole weight, not one a row
	OneScale bool
	// w8a8, fp8: x comes as codes with scales; not with norm
	QuantizedX bool
	// quantized_x, group 0: one scale for all of x, not one a token
	OneXScale  bool
	Activation Activation
	Bias       bool
	Residual   bool
	// x is normalized first
	Norm bool
}

// NewQuantizedLinear has the library's defaults.
func NewQuantizedLinear() QuantizedLinear {
	var c C.hone_quantized_linear
	mustInit(C.hone_quantized_linear_init(&c, C.size_t(unsafe.Sizeof(c))))
	return QuantizedLinear{
		In:         int64(c.in),
		Out:        int64(c.out),
		MaxTokens:  int64(c.max_tokens),
		Dtype:      Dtype(c.dtype),
		Format:     QuantFormat(c.format),
		Group:      int64(c.group),
		Zeros:      c.zeros != 0,
		OneScale:   c.one_scale != 0,
		QuantizedX: c.quantized_x != 0,
		OneXScale:  c.one_x_scale != 0,
		Activation: Activation(c.activation),
		Bias:       c.bias != 0,
		Residual:   c.residual != 0,
		Norm:       c.norm != 0,
	}
}

func (d QuantizedLinear) c() C.hone_quantized_linear {
	var c C.hone_quantized_linear
	mustInit(C.hone_quantized_linear_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.in = C.int64_t(d.In)
	c.out = C.int64_t(d.Out)
	c.max_tokens = C.int64_t(d.MaxTokens)
	c.dtype = C.int32_t(d.Dtype)
	c.format = C.int32_t(d.Format)
	c.group = C.int64_t(d.Group)
	c.zeros = flag(d.Zeros)
	c.one_scale = flag(d.OneScale)
	c.quantized_x = flag(d.QuantizedX)
	c.one_x_scale = flag(d.OneXScale)
	c.activation = C.int32_t(d.Activation)
	c.bias = flag(d.Bias)
	c.residual = flag(d.Residual)
	c.norm = flag(d.Norm)
	return c
}

// PrepareQuantizedLinear loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareQuantizedLinear(d QuantizedLinear) (*PreparedQuantizedLinear, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_quantized_linear_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedQuantizedLinear{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d QuantizedLinear) Explain(r *Runtime, tokens int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_quantized_linear_explain(r.c, &given, C.int64_t(tokens),
			C.hone_text_format(format), text, capacity, length)
	})
}

// QuantizedLinearArgs: Rows are contiguous; a stride is the distance between two rows in elements,
// 0 meaning the row's length. 16 bytes always suffice as alignment of pointers and strides. What
// LinearArgs says of overlaps and of weights holds here, too. The weight's codes are bytes: w4a16,
// w8a16: [ceil(out / 64)][ceil(in / 64)] blocks of 2048 or 4096 without gaps; w8a8 (two's
// complement), fp8: [out, in], whose rows may lie weight_stride apart. Its scales are, of w4a16, of
// dtype, [ceil(out / 64)][groups][64] with groups = ceil(ceil(in / 64) * 64 / group), or 1, in the
// order of docs/formats.md, and its zeros one byte each at the same places; of the others fp32,
// [out], or one, or, in groups, [ceil(out / 128), in / 128].
type QuantizedLinearArgs struct {
	// [tokens, in], dtype; quantized_x: int8 or E4M3
	X DevicePointer
	// quantized_x: [tokens], [tokens, in / 128] in groups, or one
	XScales DevicePointer
	// [out, in]
	Weight DevicePointer
	Scales DevicePointer
	Zeros  DevicePointer
	// [out], dtype; needed when the operator has a bias
	Bias DevicePointer
	// [tokens, out], dtype; needed when the operator has a residual
	Residual DevicePointer
	// [tokens, out], dtype
	Out DevicePointer
	// WorkspaceBytes(), aligned to 256; 0 when that is 0
	Workspace DevicePointer
	XStride   int64
	// between the scales of two tokens; one_x_scale: has no meaning
	XScaleStride int64
	// w8a8 and fp8; packed codes have no rows
	WeightStride   int64
	ResidualStride int64
	OutStride      int64
	// [in], dtype; needed when the operator has a norm
	NormWeight DevicePointer
	// the norm's, from 0
	Epsilon float32
}

// NewQuantizedLinearArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewQuantizedLinearArgs() QuantizedLinearArgs {
	var c C.hone_quantized_linear_args
	mustInit(C.hone_quantized_linear_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return QuantizedLinearArgs{
		XStride:        int64(c.x_stride),
		XScaleStride:   int64(c.x_scale_stride),
		WeightStride:   int64(c.weight_stride),
		ResidualStride: int64(c.residual_stride),
		OutStride:      int64(c.out_stride),
		Epsilon:        float32(c.epsilon),
	}
}

func (args *QuantizedLinearArgs) write(c *C.hone_quantized_linear_args) {
	mustInit(C.hone_quantized_linear_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.x), args.X)
	setPointer(unsafe.Pointer(&c.x_scales), args.XScales)
	setPointer(unsafe.Pointer(&c.weight), args.Weight)
	setPointer(unsafe.Pointer(&c.scales), args.Scales)
	setPointer(unsafe.Pointer(&c.zeros), args.Zeros)
	setPointer(unsafe.Pointer(&c.bias), args.Bias)
	setPointer(unsafe.Pointer(&c.residual), args.Residual)
	setPointer(unsafe.Pointer(&c.out), args.Out)
	setPointer(unsafe.Pointer(&c.workspace), args.Workspace)
	c.x_stride = C.int64_t(args.XStride)
	c.x_scale_stride = C.int64_t(args.XScaleStride)
	c.weight_stride = C.int64_t(args.WeightStride)
	c.residual_stride = C.int64_t(args.ResidualStride)
	c.out_stride = C.int64_t(args.OutStride)
	setPointer(unsafe.Pointer(&c.norm_weight), args.NormWeight)
	c.epsilon = C.float(args.Epsilon)
}

// PreparedQuantizedLinear is a prepared operator whose calls take QuantizedLinearArgs.
type PreparedQuantizedLinear struct {
	*prepared
}

// Run enqueues a call.
func (p *PreparedQuantizedLinear) Run(stream Stream, args *QuantizedLinearArgs, tokens int64) error {
	var c C.hone_quantized_linear_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_quantized_linear_run(p.c, stream.c(), &c, C.int64_t(tokens))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedQuantizedLinear) WorkspaceBytes(tokens int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_operator_workspace(p.c, C.int64_t(tokens), bytes)
	})
}

// QuantizedFfn: FusedFfn with quantized weights, all of one format. The product of the first half
// [tokens, intermediate], rounded to dtype, lies in the workspace; where codes are multiplied with
// codes, the second half makes its own of that.
type QuantizedFfn struct {
	// elements of a row of x and out
	Hidden int64
	// elements of a row between the halves
	Intermediate int64
	// most tokens of one call
	MaxTokens int64
	// as in QuantizedLinear
	Dtype  Dtype
	Format QuantFormat
	// as in QuantizedLinear; divides hidden and intermediate
	Group int64
	// zero points of all weights
	Zeros bool
	// one for each weight
	OneScale bool
	// x, and only x, comes as codes with scales; not with norm
	QuantizedX bool
	OneXScale  bool
	Activation Activation
	Gated      bool
	// biases of both halves; not with `gated`
	Bias bool
	// added to out
	Residual bool
	// x is normalized first
	Norm bool
}

// NewQuantizedFfn has the library's defaults.
func NewQuantizedFfn() QuantizedFfn {
	var c C.hone_quantized_ffn
	mustInit(C.hone_quantized_ffn_init(&c, C.size_t(unsafe.Sizeof(c))))
	return QuantizedFfn{
		Hidden:       int64(c.hidden),
		Intermediate: int64(c.intermediate),
		MaxTokens:    int64(c.max_tokens),
		Dtype:        Dtype(c.dtype),
		Format:       QuantFormat(c.format),
		Group:        int64(c.group),
		Zeros:        c.zeros != 0,
		OneScale:     c.one_scale != 0,
		QuantizedX:   c.quantized_x != 0,
		OneXScale:    c.one_x_scale != 0,
		Activation:   Activation(c.activation),
		Gated:        c.gated != 0,
		Bias:         c.bias != 0,
		Residual:     c.residual != 0,
		Norm:         c.norm != 0,
	}
}

func (d QuantizedFfn) c() C.hone_quantized_ffn {
	var c C.hone_quantized_ffn
	mustInit(C.hone_quantized_ffn_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.hidden = C.int64_t(d.Hidden)
	c.intermediate = C.int64_t(d.Intermediate)
	c.max_tokens = C.int64_t(d.MaxTokens)
	c.dtype = C.int32_t(d.Dtype)
	c.format = C.int32_t(d.Format)
	c.group = C.int64_t(d.Group)
	c.zeros = flag(d.Zeros)
	c.one_scale = flag(d.OneScale)
	c.quantized_x = flag(d.QuantizedX)
	c.one_x_scale = flag(d.OneXScale)
	c.activation = C.int32_t(d.Activation)
	c.gated = flag(d.Gated)
	c.bias = flag(d.Bias)
	c.residual = flag(d.Residual)
	c.norm = flag(d.Norm)
	return c
}

// PrepareQuantizedFfn loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareQuantizedFfn(d QuantizedFfn) (*PreparedQuantizedFfn, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_quantized_ffn_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedQuantizedFfn{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d QuantizedFfn) Explain(r *Runtime, tokens int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_quantized_ffn_explain(r.c, &given, C.int64_t(tokens),
			C.hone_text_format(format), text, capacity, length)
	})
}

// QuantizedFfnArgs: As QuantizedLinearArgs; weights have no gaps. `out` may be the residual itself
// also where that is x.
type QuantizedFfnArgs struct {
	// [tokens, hidden], dtype; quantized_x: int8 or E4M3
	X DevicePointer
	// as in QuantizedLinearArgs
	XScales DevicePointer
	// [intermediate, hidden]; needed when the operator is gated
	Gate       DevicePointer
	GateScales DevicePointer
	GateZeros  DevicePointer
	// [intermediate, hidden]
	Up       DevicePointer
	UpScales DevicePointer
	UpZeros  DevicePointer
	// [hidden, intermediate]
	Down       DevicePointer
	DownScales DevicePointer
	DownZeros  DevicePointer
	// [intermediate]; needed when the operator has biases
	UpBias DevicePointer
	// [hidden]; needed when the operator has biases
	DownBias DevicePointer
	// [tokens, hidden]; needed when the operator has a residual
	Residual DevicePointer
	// [tokens, hidden]
	Out DevicePointer
	// WorkspaceBytes(), aligned to 256; 0 when that is 0
	Workspace      DevicePointer
	XStride        int64
	XScaleStride   int64
	ResidualStride int64
	OutStride      int64
	// [hidden]; needed when the operator has a norm
	NormWeight DevicePointer
	// the norm's, from 0
	Epsilon float32
}

// NewQuantizedFfnArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewQuantizedFfnArgs() QuantizedFfnArgs {
	var c C.hone_quantized_ffn_args
	mustInit(C.hone_quantized_ffn_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return QuantizedFfnArgs{
		XStride:        int64(c.x_stride),
		XScaleStride:   int64(c.x_scale_stride),
		ResidualStride: int64(c.residual_stride),
		OutStride:      int64(c.out_stride),
		Epsilon:        float32(c.epsilon),
	}
}

func (args *QuantizedFfnArgs) write(c *C.hone_quantized_ffn_args) {
	mustInit(C.hone_quantized_ffn_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.x), args.X)
	setPointer(unsafe.Pointer(&c.x_scales), args.XScales)
	setPointer(unsafe.Pointer(&c.gate), args.Gate)
	setPointer(unsafe.Pointer(&c.gate_scales), args.GateScales)
	setPointer(unsafe.Pointer(&c.gate_zeros), args.GateZeros)
	setPointer(unsafe.Pointer(&c.up), args.Up)
	setPointer(unsafe.Pointer(&c.up_scales), args.UpScales)
	setPointer(unsafe.Pointer(&c.up_zeros), args.UpZeros)
	setPointer(unsafe.Pointer(&c.down), args.Down)
	setPointer(unsafe.Pointer(&c.down_scales), args.DownScales)
	setPointer(unsafe.Pointer(&c.down_zeros), args.DownZeros)
	setPointer(unsafe.Pointer(&c.up_bias), args.UpBias)
	setPointer(unsafe.Pointer(&c.down_bias), args.DownBias)
	setPointer(unsafe.Pointer(&c.residual), args.Residual)
	setPointer(unsafe.Pointer(&c.out), args.Out)
	setPointer(unsafe.Pointer(&c.workspace), args.Workspace)
	c.x_stride = C.int64_t(args.XStride)
	c.x_scale_stride = C.int64_t(args.XScaleStride)
	c.residual_stride = C.int64_t(args.ResidualStride)
	c.out_stride = C.int64_t(args.OutStride)
	setPointer(unsafe.Pointer(&c.norm_weight), args.NormWeight)
	c.epsilon = C.float(args.Epsilon)
}

// PreparedQuantizedFfn is a prepared operator whose calls take QuantizedFfnArgs.
type PreparedQuantizedFfn struct {
	*prepared
}

// Run enqueues a call.
func (p *PreparedQuantizedFfn) Run(stream Stream, args *QuantizedFfnArgs, tokens int64) error {
	var c C.hone_quantized_ffn_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_quantized_ffn_run(p.c, stream.c(), &c, C.int64_t(tokens))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedQuantizedFfn) WorkspaceBytes(tokens int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_operator_workspace(p.c, C.int64_t(tokens), bytes)
	})
}

// RmsNormBackward: Gradients of an RMSNorm: with r = rsqrt(mean(x^2) + epsilon) of a row and g =
// dy * weight,
//
//	dx = r * (g - x * r^2 * mean(g * x)) (+ dsum),     dweight = sum over rows of dy * x * r,
//
// accumulated in fp32 in a fixed order: the same bits at every call. x is what was normalized: for
// a norm with a residual its `sum`, whose own gradient dsum then joins dx, which is the gradient of
// both x and residual.
type RmsNormBackward struct {
	// elements of a row, 1 to 262144
	Hidden int64
	// most rows of one call
	MaxRows int64
	// element type of every tensor
	Dtype Dtype
	// dsum is added
	Residual bool
}

// NewRmsNormBackward has the library's defaults.
func NewRmsNormBackward() RmsNormBackward {
	var c C.hone_rms_norm_backward
	mustInit(C.hone_rms_norm_backward_init(&c, C.size_t(unsafe.Sizeof(c))))
	return RmsNormBackward{
		Hidden:   int64(c.hidden),
		MaxRows:  int64(c.max_rows),
		Dtype:    Dtype(c.dtype),
		Residual: c.residual != 0,
	}
}

func (d RmsNormBackward) c() C.hone_rms_norm_backward {
	var c C.hone_rms_norm_backward
	mustInit(C.hone_rms_norm_backward_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.hidden = C.int64_t(d.Hidden)
	c.max_rows = C.int64_t(d.MaxRows)
	c.dtype = C.int32_t(d.Dtype)
	c.residual = flag(d.Residual)
	return c
}

// PrepareRmsNormBackward loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareRmsNormBackward(d RmsNormBackward) (*PreparedRmsNormBackward, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_rms_norm_backward_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedRmsNormBackward{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d RmsNormBackward) Explain(r *Runtime, rows int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_rms_norm_backward_explain(r.c, &given, C.int64_t(rows),
			C.hone_text_format(format), text, capacity, length)
	})
}

// RmsNormBackwardArgs: Rows are contiguous, strides as in NormArgs. dx may be dy or dsum itself;
// other overlaps are not allowed.
type RmsNormBackwardArgs struct {
	// [rows, hidden], dtype
	Dy DevicePointer
	// [rows, hidden], dtype
	X DevicePointer
	// [hidden], dtype
	Weight DevicePointer
	// [rows, hidden], dtype; needed when the operator has a residual
	Dsum DevicePointer
	// [rows, hidden], dtype
	Dx DevicePointer
	// [hidden], dtype
	Dweight DevicePointer
	// WorkspaceBytes(), aligned to 256; 0 when that is 0
	Workspace  DevicePointer
	DyStride   int64
	XStride    int64
	DsumStride int64
	DxStride   int64
	// from 0
	Epsilon float32
}

// NewRmsNormBackwardArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewRmsNormBackwardArgs() RmsNormBackwardArgs {
	var c C.hone_rms_norm_backward_args
	mustInit(C.hone_rms_norm_backward_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return RmsNormBackwardArgs{
		DyStride:   int64(c.dy_stride),
		XStride:    int64(c.x_stride),
		DsumStride: int64(c.dsum_stride),
		DxStride:   int64(c.dx_stride),
		Epsilon:    float32(c.epsilon),
	}
}

func (args *RmsNormBackwardArgs) write(c *C.hone_rms_norm_backward_args) {
	mustInit(C.hone_rms_norm_backward_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.dy), args.Dy)
	setPointer(unsafe.Pointer(&c.x), args.X)
	setPointer(unsafe.Pointer(&c.weight), args.Weight)
	setPointer(unsafe.Pointer(&c.dsum), args.Dsum)
	setPointer(unsafe.Pointer(&c.dx), args.Dx)
	setPointer(unsafe.Pointer(&c.dweight), args.Dweight)
	setPointer(unsafe.Pointer(&c.workspace), args.Workspace)
	c.dy_stride = C.int64_t(args.DyStride)
	c.x_stride = C.int64_t(args.XStride)
	c.dsum_stride = C.int64_t(args.DsumStride)
	c.dx_stride = C.int64_t(args.DxStride)
	c.epsilon = C.float(args.Epsilon)
}

// PreparedRmsNormBackward is a prepared operator whose calls take RmsNormBackwardArgs.
type PreparedRmsNormBackward struct {
	*prepared
}

// Run enqueues a call. With 0 rows dweight is not written.
func (p *PreparedRmsNormBackward) Run(stream Stream, args *RmsNormBackwardArgs, rows int64) error {
	var c C.hone_rms_norm_backward_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_rms_norm_backward_run(p.c, stream.c(), &c, C.int64_t(rows))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedRmsNormBackward) WorkspaceBytes(rows int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_operator_workspace(p.c, C.int64_t(rows), bytes)
	})
}

// RopeKvAppend: The rotary embedding of new queries and keys, and the append of keys and values to
// a KV cache, in one launch: a pair (x, y) of a token at position p becomes (x cos - y sin, y cos +
// x sin) with row p of the tables. With a norm each head of q and k is normalized first: x *
// rsqrt(mean(x^2) + epsilon) * weight. With unit_offset, as in Gemma 3, a weight counts as 1 +
// weight.
//
// A token whose position is negative, or has no row in the tables, is left out altogether; of one
// for which the cache has no room, page or slot, only the query is written.
type RopeKvAppend struct {
	// heads of q
	Heads int64
	// heads of k and v; 0: as many
	KvHeads int64
	// 1 to 256
	HeadDim int64
	// leading elements of a head that turn, even; 0: none; -1: all
	RotaryDim int64
	// most tokens of one call, of all its sequences
	MaxTokens int64
	// element type of q, k, v and out
	Dtype Dtype
	// element type of the cache
	KvDtype KvDtype
	Style   RopeStyle
	Norm    bool
	// each token has its position and its slot in the cache; else every sequence has q_len new tokens,
	// the last of its kv_lengths
	Slots bool
	// tokens of a page of the cache; 0: not paged
	PageSize int64
	// with a norm: its weights count as 1 + weight, which is not rounded
	UnitOffset bool
}

// NewRopeKvAppend has the library's defaults.
func NewRopeKvAppend() RopeKvAppend {
	var c C.hone_rope_kv_append
	mustInit(C.hone_rope_kv_append_init(&c, C.size_t(unsafe.Sizeof(c))))
	return RopeKvAppend{
		Heads:      int64(c.heads),
		KvHeads:    int64(c.kv_heads),
		HeadDim:    int64(c.head_dim),
		RotaryDim:  int64(c.rotary_dim),
		MaxTokens:  int64(c.max_tokens),
		Dtype:      Dtype(c.dtype),
		KvDtype:    KvDtype(c.kv_dtype),
		Style:      RopeStyle(c.style),
		Norm:       c.norm != 0,
		Slots:      c.slots != 0,
		PageSize:   int64(c.page_size),
		UnitOffset: c.unit_offset != 0,
	}
}

func (d RopeKvAppend) c() C.hone_rope_kv_append {
	var c C.hone_rope_kv_append
	mustInit(C.hone_rope_kv_append_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.heads = C.int64_t(d.Heads)
	c.kv_heads = C.int64_t(d.KvHeads)
	c.head_dim = C.int64_t(d.HeadDim)
	c.rotary_dim = C.int64_t(d.RotaryDim)
	c.max_tokens = C.int64_t(d.MaxTokens)
	c.dtype = C.int32_t(d.Dtype)
	c.kv_dtype = C.int32_t(d.KvDtype)
	c.style = C.int32_t(d.Style)
	c.norm = flag(d.Norm)
	c.slots = flag(d.Slots)
	c.page_size = C.int64_t(d.PageSize)
	c.unit_offset = flag(d.UnitOffset)
	return c
}

// PrepareRopeKvAppend loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareRopeKvAppend(d RopeKvAppend) (*PreparedRopeKvAppend, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_rope_kv_append_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedRopeKvAppend{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d RopeKvAppend) Explain(r *Runtime, tokens int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_rope_kv_append_explain(r.c, &given, C.int64_t(tokens),
			C.hone_text_format(format), text, capacity, length)
	})
}

// RopeKvAppendArgs: Device pointers, strides and numbers of one call. Strides are in elements, 0
// meaning no gaps, between heads and tokens as in AttentionArgs; 16 bytes always suffice as
// alignment. `out` may be q itself, with the same strides; other overlaps are not allowed.
type RopeKvAppendArgs struct {
	// [tokens, heads, head_dim]
	Q DevicePointer
	// [tokens, kv_heads, head_dim]
	K DevicePointer
	// [tokens, kv_heads, head_dim]
	V DevicePointer
	// [tokens, heads, head_dim]; the rotated queries
	Out DevicePointer
	// [sequences, kv_len, kv_heads, head_dim]; or [pages, page_size, kv_heads, head_dim]
	KCache DevicePointer
	// as k_cache, with the same strides
	VCache DevicePointer
	// [table_rows, rotary_dim / 2]; needed when anything turns
	Cos DevicePointer
	// [table_rows, rotary_dim / 2]; needed when anything turns
	Sin DevicePointer
	// [tokens / q_len]; without slots: tokens of each sequence, its q_len new ones included
	KvLengths DevicePointer
	// [tokens / q_len, page_table_stride]; without slots, paged
	PageTable DevicePointer
	// [tokens]; with slots, where anything turns
	Positions DevicePointer
	// [tokens]; with slots: page * page_size + place on the page, or sequence * kv_len + place;
	// negative: none
	Slots DevicePointer
	// [kv_heads]; needed when the cache is fp8, which gets k / k_scale
	KScale DevicePointer
	// [kv_heads]; needed when the cache is fp8
	VScale DevicePointer
	// [head_dim], dtype; needed when the operator has a norm
	QWeight DevicePointer
	// [head_dim], dtype; needed when the operator has a norm
	KWeight        DevicePointer
	QTokenStride   int64
	QHeadStride    int64
	KTokenStride   int64
	KHeadStride    int64
	VTokenStride   int64
	VHeadStride    int64
	OutTokenStride int64
	OutHeadStride  int64
	// `batch` of a sequence, or a page
	CacheBatchStride int64
	CacheTokenStride int64
	CacheHeadStride  int64
	// entries of a row; 0: as many pages as kv_len takes
	PageTableStride int64
	// without slots: tokens of each sequence, a divisor of `tokens`
	QLen int64
	// tokens that a sequence has room for, from 1
	KvLen int64
	// pages of the cache, or sequences of one without pages; 0, for that without slots: tokens / q_len
	PoolPages int64
	// positions that cos and sin know, from 1; needed when anything turns
	TableRows int64
	// the norm's, from 0
	Epsilon float32
}

// NewRopeKvAppendArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewRopeKvAppendArgs() RopeKvAppendArgs {
	var c C.hone_rope_kv_append_args
	mustInit(C.hone_rope_kv_append_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return RopeKvAppendArgs{
		QTokenStride:     int64(c.q_token_stride),
		QHeadStride:      int64(c.q_head_stride),
		KTokenStride:     int64(c.k_token_stride),
		KHeadStride:      int64(c.k_head_stride),
		VTokenStride:     int64(c.v_token_stride),
		VHeadStride:      int64(c.v_head_stride),
		OutTokenStride:   int64(c.out_token_stride),
		OutHeadStride:    int64(c.out_head_stride),
		CacheBatchStride: int64(c.cache_batch_stride),
		CacheTokenStride: int64(c.cache_token_stride),
		CacheHeadStride:  int64(c.cache_head_stride),
		PageTableStride:  int64(c.page_table_stride),
		QLen:             int64(c.q_len),
		KvLen:            int64(c.kv_len),
		PoolPages:        int64(c.pool_pages),
		TableRows:        int64(c.table_rows),
		Epsilon:          float32(c.epsilon),
	}
}

func (args *RopeKvAppendArgs) write(c *C.hone_rope_kv_append_args) {
	mustInit(C.hone_rope_kv_append_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.q), args.Q)
	setPointer(unsafe.Pointer(&c.k), args.K)
	setPointer(unsafe.Pointer(&c.v), args.V)
	setPointer(unsafe.Pointer(&c.out), args.Out)
	setPointer(unsafe.Pointer(&c.k_cache), args.KCache)
	setPointer(unsafe.Pointer(&c.v_cache), args.VCache)
	setPointer(unsafe.Pointer(&c.cos), args.Cos)
	setPointer(unsafe.Pointer(&c.sin), args.Sin)
	setPointer(unsafe.Pointer(&c.kv_lengths), args.KvLengths)
	setPointer(unsafe.Pointer(&c.page_table), args.PageTable)
	setPointer(unsafe.Pointer(&c.positions), args.Positions)
	setPointer(unsafe.Pointer(&c.slots), args.Slots)
	setPointer(unsafe.Pointer(&c.k_scale), args.KScale)
	setPointer(unsafe.Pointer(&c.v_scale), args.VScale)
	setPointer(unsafe.Pointer(&c.q_weight), args.QWeight)
	setPointer(unsafe.Pointer(&c.k_weight), args.KWeight)
	c.q_token_stride = C.int64_t(args.QTokenStride)
	c.q_head_stride = C.int64_t(args.QHeadStride)
	c.k_token_stride = C.int64_t(args.KTokenStride)
	c.k_head_stride = C.int64_t(args.KHeadStride)
	c.v_token_stride = C.int64_t(args.VTokenStride)
	c.v_head_stride = C.int64_t(args.VHeadStride)
	c.out_token_stride = C.int64_t(args.OutTokenStride)
	c.out_head_stride = C.int64_t(args.OutHeadStride)
	c.cache_batch_stride = C.int64_t(args.CacheBatchStride)
	c.cache_token_stride = C.int64_t(args.CacheTokenStride)
	c.cache_head_stride = C.int64_t(args.CacheHeadStride)
	c.page_table_stride = C.int64_t(args.PageTableStride)
	c.q_len = C.int64_t(args.QLen)
	c.kv_len = C.int64_t(args.KvLen)
	c.pool_pages = C.int64_t(args.PoolPages)
	c.table_rows = C.int64_t(args.TableRows)
	c.epsilon = C.float(args.Epsilon)
}

// PreparedRopeKvAppend is a prepared operator whose calls take RopeKvAppendArgs.
type PreparedRopeKvAppend struct {
	*prepared
}

// Run enqueues a call.
func (p *PreparedRopeKvAppend) Run(stream Stream, args *RopeKvAppendArgs, tokens int64) error {
	var c C.hone_rope_kv_append_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_rope_kv_append_run(p.c, stream.c(), &c, C.int64_t(tokens))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedRopeKvAppend) WorkspaceBytes(tokens int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_operator_workspace(p.c, C.int64_t(tokens), bytes)
	})
}

// Sample: A token for each row of logits: the likeliest where the row's temperature is 0, else one
// drawn from the softmax of logits / temperature. With filters, of the top_k likeliest tokens
// first, then of the likeliest until their part of the probability reaches top_p, then of those at
// least min_p times as likely as the likeliest; tokens that are as likely as the last one that
// stays stay, too. A seed and a counter give the same token whatever the batch, the row's place or
// the GPU. NaN is never chosen; a row without a number gives token 0.
type Sample struct {
	// 1 to 1048576
	Vocabulary int64
	// most rows of one call
	MaxRows int64
	// element type of the logits
	Dtype          Dtype
	Filters        bool
	LogProbability bool
	// logits x count as softcap * tanh(x / softcap) in what is drawn; 0: as they are, 0 to 65536
	Softcap int64
}

// NewSample has the library's defaults.
func NewSample() Sample {
	var c C.hone_sample
	mustInit(C.hone_sample_init(&c, C.size_t(unsafe.Sizeof(c))))
	return Sample{
		Vocabulary:     int64(c.vocabulary),
		MaxRows:        int64(c.max_rows),
		Dtype:          Dtype(c.dtype),
		Filters:        c.filters != 0,
		LogProbability: c.log_probability != 0,
		Softcap:        int64(c.softcap),
	}
}

func (d Sample) c() C.hone_sample {
	var c C.hone_sample
	mustInit(C.hone_sample_init(&c, C.size_t(unsafe.Sizeof(c))))
	c.vocabulary = C.int64_t(d.Vocabulary)
	c.max_rows = C.int64_t(d.MaxRows)
	c.dtype = C.int32_t(d.Dtype)
	c.filters = flag(d.Filters)
	c.log_probability = flag(d.LogProbability)
	c.softcap = C.int64_t(d.Softcap)
	return c
}

// PrepareSample loads, or compiles, every kernel that a call up to the maxima can reach.
func (r *Runtime) PrepareSample(d Sample) (*PreparedSample, error) {
	given := d.c()
	op, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {
		return C.hone_sample_prepare(runtime, &given, op)
	})
	if err != nil {
		return nil, err
	}
	return &PreparedSample{op}, nil
}

// Explain says which kernel a call of these sizes takes, and why; it loads nothing.
func (d Sample) Explain(r *Runtime, rows int64, format TextFormat) (string, error) {
	given := d.c()
	return wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_sample_explain(r.c, &given, C.int64_t(rows),
			C.hone_text_format(format), text, capacity, length)
	})
}

// SampleArgs: One call. Everything that a row asks for is on the device, so that a captured call
// may be replayed with other wishes. `logits_stride` is the distance between two rows in elements,
// 0 meaning `vocabulary`.
type SampleArgs struct {
	// [rows, vocabulary], dtype
	Logits DevicePointer
	// [rows]; below 1e-5: the likeliest token
	Temperature DevicePointer
	// [rows]; needed when the operator has filters; below 1: all
	TopK DevicePointer
	// [rows]; needed when the operator has filters; from 1 on: all
	TopP DevicePointer
	// [rows]; needed when the operator has filters; 0: all
	MinP DevicePointer
	// [rows]
	Seed DevicePointer
	// [rows]; another one for each draw with the same seed
	Counter DevicePointer
	// [rows]; the tokens
	Out DevicePointer
	// [rows]; needed when the operator has a log_probability; natural, at temperature 1, of all tokens
	LogProbability DevicePointer
	LogitsStride   int64
}

// NewSampleArgs has the library's defaults: no pointers, and the strides of rows without gaps.
func NewSampleArgs() SampleArgs {
	var c C.hone_sample_args
	mustInit(C.hone_sample_args_init(&c, C.size_t(unsafe.Sizeof(c))))
	return SampleArgs{
		LogitsStride: int64(c.logits_stride),
	}
}

func (args *SampleArgs) write(c *C.hone_sample_args) {
	mustInit(C.hone_sample_args_init(c, C.size_t(unsafe.Sizeof(*c))))
	setPointer(unsafe.Pointer(&c.logits), args.Logits)
	setPointer(unsafe.Pointer(&c.temperature), args.Temperature)
	setPointer(unsafe.Pointer(&c.top_k), args.TopK)
	setPointer(unsafe.Pointer(&c.top_p), args.TopP)
	setPointer(unsafe.Pointer(&c.min_p), args.MinP)
	setPointer(unsafe.Pointer(&c.seed), args.Seed)
	setPointer(unsafe.Pointer(&c.counter), args.Counter)
	setPointer(unsafe.Pointer(&c.out), args.Out)
	setPointer(unsafe.Pointer(&c.log_probability), args.LogProbability)
	c.logits_stride = C.int64_t(args.LogitsStride)
}

// PreparedSample is a prepared operator whose calls take SampleArgs.
type PreparedSample struct {
	*prepared
}

// Run enqueues a call.
func (p *PreparedSample) Run(stream Stream, args *SampleArgs, rows int64) error {
	var c C.hone_sample_args
	args.write(&c)
	return p.use(func() status {
		return C.hone_sample_run(p.c, stream.c(), &c, C.int64_t(rows))
	})
}

// WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as
// its workspace.
func (p *PreparedSample) WorkspaceBytes(rows int64) (uint64, error) {
	return p.workspace(func(bytes *C.size_t) status {
		return C.hone_operator_workspace(p.c, C.int64_t(rows), bytes)
	})
}
