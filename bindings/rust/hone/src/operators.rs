//! Every operator: its description, its arguments, and what it becomes. Generated from
//! kernel_templates/*/operators.py and generate/enums.py by `./hone generate`.

use crate::{check, Prepared, Result, Runtime, Stream, TextFormat};
use hone_sys as sys;

/// The element type of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    Fp32 = 0,
    Fp16 = 1,
    Bf16 = 2,
}

impl Dtype {
    fn from_c(number: i32) -> Self {
        match number {
            1 => Dtype::Fp16,
            2 => Dtype::Bf16,
            _ => Dtype::Fp32,
        }
    }
}

/// What a norm writes to `out`. Quantized rows are symmetric with one scale each: out * scale
/// approximates y, and scale = max|y| / 127 (int8) or max|y| / 448 (fp8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormOutput {
    /// the operator's dtype
    Same = 0,
    Int8 = 1,
    /// E4M3
    Fp8 = 2,
}

impl NormOutput {
    fn from_c(number: i32) -> Self {
        match number {
            1 => NormOutput::Int8,
            2 => NormOutput::Fp8,
            _ => NormOutput::Same,
        }
    }
}

/// What becomes of an element of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    None = 0,
    /// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
    GeluTanh = 1,
    /// 0.5 x (1 + erf(x / sqrt(2)))
    GeluErf = 2,
    /// x / (1 + exp(-x))
    Silu = 3,
    Relu = 4,
    /// gated experts alone, as gpt-oss has them: g / (1 + exp(-1.702 g)) * (u + 1), where g is the
    /// gate's product, at most 7, and u the other one, from -7 to 7
    SwigluOai = 5,
}

impl Activation {
    fn from_c(number: i32) -> Self {
        match number {
            1 => Activation::GeluTanh,
            2 => Activation::GeluErf,
            3 => Activation::Silu,
            4 => Activation::Relu,
            5 => Activation::SwigluOai,
            _ => Activation::None,
        }
    }
}

/// How a weight is stored: value = (code - zero point) * scale. docs/formats.md says where each bit
/// stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantFormat {
    /// codes 0 to 15 in blocks of 64 x 64; zero points 0 to 15, or 8 for all
    W4A16 = 0,
    /// codes -127 to 127 in blocks of 64 x 64
    W8A16 = 1,
    /// codes -127 to 127, [out, in]; x is multiplied as such codes, too
    W8A8 = 2,
    /// codes are E4M3 numbers, [out, in]; so is x
    Fp8 = 3,
}

impl QuantFormat {
    fn from_c(number: i32) -> Self {
        match number {
            1 => QuantFormat::W8A16,
            2 => QuantFormat::W8A8,
            3 => QuantFormat::Fp8,
            _ => QuantFormat::W4A16,
        }
    }
}

/// What a KV cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvDtype {
    /// the operator's dtype
    Same = 0,
    /// E4M3 codes; code * scale of its kv head approximates the element
    Fp8E4M3 = 1,
}

impl KvDtype {
    fn from_c(number: i32) -> Self {
        match number {
            1 => KvDtype::Fp8E4M3,
            _ => KvDtype::Same,
        }
    }
}

/// Which elements of a head turn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeStyle {
    /// i and i + rotary_dim / 2, as in Llama
    Half = 0,
    /// 2 i and 2 i + 1, as in GPT-J
    Interleaved = 1,
}

impl RopeStyle {
    fn from_c(number: i32) -> Self {
        match number {
            1 => RopeStyle::Interleaved,
            _ => RopeStyle::Half,
        }
    }
}

/// The type of ids on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexType {
    Int32 = 0,
    Int64 = 1,
}

impl IndexType {
    fn from_c(number: i32) -> Self {
        match number {
            1 => IndexType::Int64,
            _ => IndexType::Int32,
        }
    }
}

/// A decoding step's attention of one new token a sequence, with what goes before it, in one
/// launch: what RopeKvAppend does with q, k and v, and Attention of the rotated query over the
/// cache, the new key and value included. Queries and keys are rounded to dtype between rotation
/// and product, as there. q, k and v may be parts of one row, as a projection of all three leaves
/// them; q is not written.
///
/// What is not q, k or v may be read before the kernels enqueued ahead of this one have ended:
/// older rows of the cache, lengths, pages, tables and weights must not be written by those, but by
/// work that ended before them, such as the launch of another graph.
///
/// Fast is the kernel of sm_90 for 16-bit elements, heads of multiples of 8 elements and rotations
/// of multiples of 16. The other one is right everywhere, and slower than the two operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionAppend {
    /// heads of q and out
    pub heads: i64,
    /// heads of k and v, a divisor of `heads`; 0: as many
    pub kv_heads: i64,
    /// 1 to 256
    pub head_dim: i64,
    /// leading elements of a head that turn, even; 0: none; -1: all
    pub rotary_dim: i64,
    /// most sequences of one call
    pub max_batch: i64,
    /// most keys of a sequence: its capacity in the cache
    pub max_kv_len: i64,
    /// element type of q, k, v, the cache, the norms' weights and out
    pub dtype: Dtype,
    pub style: RopeStyle,
    /// each head of q and k is normalized first: x * rsqrt(mean(x^2) + epsilon) * weight
    pub norm: bool,
    /// scores s become softcap * tanh(s / softcap), after scale
    pub softcap: bool,
    /// most keys that a query sees, its own included; 0: all
    pub window: i64,
    /// tokens of a page of the cache; 0: not paged
    pub page_size: i64,
    /// with a norm: its weights count as 1 + weight, which is not rounded
    pub unit_offset: bool,
}

impl Default for AttentionAppend {
    fn default() -> Self {
        let made = sys::hone_attention_append::default();
        AttentionAppend {
            heads: made.heads,
            kv_heads: made.kv_heads,
            head_dim: made.head_dim,
            rotary_dim: made.rotary_dim,
            max_batch: made.max_batch,
            max_kv_len: made.max_kv_len,
            dtype: Dtype::from_c(made.dtype),
            style: RopeStyle::from_c(made.style),
            norm: made.norm != 0,
            softcap: made.softcap != 0,
            window: made.window,
            page_size: made.page_size,
            unit_offset: made.unit_offset != 0,
        }
    }
}

impl AttentionAppend {
    pub(crate) fn to_c(self) -> sys::hone_attention_append {
        sys::hone_attention_append {
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            rotary_dim: self.rotary_dim,
            max_batch: self.max_batch,
            max_kv_len: self.max_kv_len,
            dtype: self.dtype as i32,
            style: self.style as i32,
            norm: self.norm as i32,
            softcap: self.softcap as i32,
            window: self.window,
            page_size: self.page_size,
            unit_offset: self.unit_offset as i32,
            ..sys::hone_attention_append::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedAttentionAppend> {
        let description = self.to_c();
        Ok(PreparedAttentionAppend(runtime.prepare(|runtime, op| unsafe {
            sys::hone_attention_append_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(
        &self,
        runtime: &Runtime,
        batch: i64,
        kv_len: i64,
        format: TextFormat,
    ) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_attention_append_explain(
                runtime,
                &description,
                batch,
                kv_len,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// Device pointers, strides and numbers of one call. Strides are in elements, 0 meaning no gaps, as
/// in AttentionArgs; 16 bytes always suffice as alignment. `out` overlaps nothing else.
pub type AttentionAppendArgs = sys::hone_attention_append_args;

/// A prepared operator whose calls take [`AttentionAppendArgs`].
#[derive(Debug)]
pub struct PreparedAttentionAppend(Prepared);

impl PreparedAttentionAppend {
    /// Enqueues a call. kv_len is the most that any sequence has, from 1; with batch 0 nothing is
    /// done.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(
        &self,
        stream: Stream,
        args: &AttentionAppendArgs,
        batch: i64,
        kv_len: i64,
    ) -> Result<()> {
        check(sys::hone_attention_append_run(self.0.op(), stream.0, args, batch, kv_len))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, batch: i64, kv_len: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_attention_append_workspace(op, batch, kv_len, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// out = softmax(scale * q k^T + mask) v for each sequence and head, accumulated in fp32. `heads /
/// kv_heads` neighbouring heads of q share one of k and v. Causal is aligned at the end: of a
/// sequence with q_len queries and kv_len keys, query i sees key j <= i + kv_len - q_len. A query
/// that sees no key gets zeros, and -infinity as its log-sum-exp; what stands in k and v beyond a
/// sequence's end, also NaN, changes nothing.
///
/// One operator serves prefill and decode: calls of up to 16 queries a sequence (not packed) take
/// kernels that read a KV cache at the speed of memory, others those of prefill, which read codes
/// of fp8, too. Packed queries over a paged cache are chunks of prompts, prompts behind a cached
/// prefix and single tokens in one call, which enqueues kernels of both kinds, beside each other,
/// where it may have single tokens: of each only what is its own is read. Lengths, starts and page
/// tables are on the device: a captured graph may be replayed with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    /// heads of q and out
    pub heads: i64,
    /// heads of k and v, a divisor of `heads`; 0: as many
    pub kv_heads: i64,
    /// 1 to 256
    pub head_dim: i64,
    /// most sequences of one call
    pub max_batch: i64,
    /// most queries of a sequence
    pub max_q_len: i64,
    /// most keys of a sequence: its capacity in a cache
    pub max_kv_len: i64,
    /// fewest queries of a call, from 1: kernels for fewer are not prepared
    pub min_q_len: i64,
    /// element type of q and out, and of k and v
    pub dtype: Dtype,
    /// element type of k and v; fp8: codes, with k_scale and v_scale
    pub kv_dtype: KvDtype,
    pub causal: bool,
    /// kv_lengths says how many keys each sequence has; else all have kv_len
    pub lengths: bool,
    /// q_starts and kv_starts cut packed tensors into sequences, not with `lengths`; with a
    /// page_size only q is packed, and kv_lengths says how many keys there are in pages
    pub packed: bool,
    /// scores s become softcap * tanh(s / softcap), after scale, before the mask
    pub softcap: bool,
    /// the log-sum-exp of the scores is written, too
    pub lse: bool,
    /// most keys that a query sees, its own included; needs causal; 0: all
    pub window: i64,
    /// tokens of a page of the KV cache; 0: not paged
    pub page_size: i64,
    /// a learned logit a head, beside scores times scale, counts in the softmax's sum and in lse,
    /// and has no value
    pub sinks: bool,
}

impl Default for Attention {
    fn default() -> Self {
        let made = sys::hone_attention::default();
        Attention {
            heads: made.heads,
            kv_heads: made.kv_heads,
            head_dim: made.head_dim,
            max_batch: made.max_batch,
            max_q_len: made.max_q_len,
            max_kv_len: made.max_kv_len,
            min_q_len: made.min_q_len,
            dtype: Dtype::from_c(made.dtype),
            kv_dtype: KvDtype::from_c(made.kv_dtype),
            causal: made.causal != 0,
            lengths: made.lengths != 0,
            packed: made.packed != 0,
            softcap: made.softcap != 0,
            lse: made.lse != 0,
            window: made.window,
            page_size: made.page_size,
            sinks: made.sinks != 0,
        }
    }
}

impl Attention {
    pub(crate) fn to_c(self) -> sys::hone_attention {
        sys::hone_attention {
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            max_batch: self.max_batch,
            max_q_len: self.max_q_len,
            max_kv_len: self.max_kv_len,
            min_q_len: self.min_q_len,
            dtype: self.dtype as i32,
            kv_dtype: self.kv_dtype as i32,
            causal: self.causal as i32,
            lengths: self.lengths as i32,
            packed: self.packed as i32,
            softcap: self.softcap as i32,
            lse: self.lse as i32,
            window: self.window,
            page_size: self.page_size,
            sinks: self.sinks as i32,
            ..sys::hone_attention::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedAttention> {
        let description = self.to_c();
        Ok(PreparedAttention(runtime.prepare(|runtime, op| unsafe {
            sys::hone_attention_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(
        &self,
        runtime: &Runtime,
        batch: i64,
        q_len: i64,
        kv_len: i64,
        format: TextFormat,
    ) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_attention_explain(
                runtime,
                &description,
                batch,
                q_len,
                kv_len,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// Device pointers, strides and numbers of one call. Strides are elements between neighbours of a
/// tensor [batch, tokens, heads, head_dim], whose last dimension is contiguous; 0: between heads
/// head_dim, between tokens all heads of a token, between sequences (batch) all tokens of one, that
/// stride apart. Of a paged cache the batch stride is the distance of two pages, of packed tensors
/// it means nothing. 16 bytes always suffice as alignment of pointers and strides. `out` may be q
/// itself, with the same strides; other overlaps are not allowed. k and v may be tensors or caches:
/// a call of up to 16 queries (not packed) needs the same strides for both, and single tokens among
/// packed queries are as fast as such a call where they have them.
pub type AttentionArgs = sys::hone_attention_args;

/// A prepared operator whose calls take [`AttentionArgs`].
#[derive(Debug)]
pub struct PreparedAttention(Prepared);

impl PreparedAttention {
    /// Enqueues a call. q_len and kv_len are those of every sequence; where lengths or starts are
    /// on the device, the most that any has. kv_len from 1; with batch or q_len 0 nothing is done.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(
        &self,
        stream: Stream,
        args: &AttentionArgs,
        batch: i64,
        q_len: i64,
        kv_len: i64,
    ) -> Result<()> {
        check(sys::hone_attention_run(self.0.op(), stream.0, args, batch, q_len, kv_len))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, batch: i64, q_len: i64, kv_len: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_attention_workspace(op, batch, q_len, kv_len, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// out = table[ids] * scale + position_table[position_ids], the last two where the operator has
/// them, computed in fp32 and rounded once. A token whose id or position has no row gets zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedding {
    /// elements of a row, 1 to 262144
    pub hidden: i64,
    /// most tokens of one call
    pub max_tokens: i64,
    /// element type of the tables and out
    pub dtype: Dtype,
    pub index: IndexType,
    pub scale: bool,
    pub positions: bool,
}

impl Default for Embedding {
    fn default() -> Self {
        let made = sys::hone_embedding::default();
        Embedding {
            hidden: made.hidden,
            max_tokens: made.max_tokens,
            dtype: Dtype::from_c(made.dtype),
            index: IndexType::from_c(made.index),
            scale: made.scale != 0,
            positions: made.positions != 0,
        }
    }
}

impl Embedding {
    pub(crate) fn to_c(self) -> sys::hone_embedding {
        sys::hone_embedding {
            hidden: self.hidden,
            max_tokens: self.max_tokens,
            dtype: self.dtype as i32,
            index: self.index as i32,
            scale: self.scale as i32,
            positions: self.positions as i32,
            ..sys::hone_embedding::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedEmbedding> {
        let description = self.to_c();
        Ok(PreparedEmbedding(runtime.prepare(|runtime, op| unsafe {
            sys::hone_embedding_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, tokens: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_embedding_explain(
                runtime,
                &description,
                tokens,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// One call. Rows are contiguous; a stride is the distance between two rows in elements, 0 meaning
/// `hidden`. 16 bytes always suffice as alignment of tables, out and strides.
pub type EmbeddingArgs = sys::hone_embedding_args;

/// A prepared operator whose calls take [`EmbeddingArgs`].
#[derive(Debug)]
pub struct PreparedEmbedding(Prepared);

impl PreparedEmbedding {
    /// Enqueues a call.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(&self, stream: Stream, args: &EmbeddingArgs, tokens: i64) -> Result<()> {
        check(sys::hone_embedding_run(self.0.op(), stream.0, args, tokens))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, tokens: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_operator_workspace(op, tokens, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// A linear layer of a mixture of experts: row p of x, sorted by expert as ExpertRouting says,
/// times the weight of expert e with starts[e] <= p < starts[e + 1], accumulated in fp32.
/// activation(x * weight^T + bias); gated: activation(x * weight^T + bias) * (x * up^T + up_bias),
/// but with swiglu_oai what Activation says of both. With gather, x has a row for each token, and
/// place p takes that of token rows[p] / top_k. With combine, out has a row for each token: the sum
/// over slots, in their order and in fp32, of routing_weights[token, slot] times the result of that
/// pair, which was rounded to dtype before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertLinear {
    /// elements of a row of x, 1 to 262144
    pub in_features: i64,
    /// elements of a row of out, 1 to 1048576
    pub out_features: i64,
    /// 1 to 512
    pub experts: i64,
    /// experts of a token, 1 to 32
    pub top_k: i64,
    /// most tokens of one call
    pub max_tokens: i64,
    /// element type of x, weights and out
    pub dtype: Dtype,
    pub activation: Activation,
    /// there is a second weight, up
    pub gated: bool,
    pub bias: bool,
    /// x has a row for each token
    pub gather: bool,
    /// out has a row for each token
    pub combine: bool,
}

impl Default for ExpertLinear {
    fn default() -> Self {
        let made = sys::hone_expert_linear::default();
        ExpertLinear {
            in_features: made.in_,
            out_features: made.out,
            experts: made.experts,
            top_k: made.top_k,
            max_tokens: made.max_tokens,
            dtype: Dtype::from_c(made.dtype),
            activation: Activation::from_c(made.activation),
            gated: made.gated != 0,
            bias: made.bias != 0,
            gather: made.gather != 0,
            combine: made.combine != 0,
        }
    }
}

impl ExpertLinear {
    pub(crate) fn to_c(self) -> sys::hone_expert_linear {
        sys::hone_expert_linear {
            in_: self.in_features,
            out: self.out_features,
            experts: self.experts,
            top_k: self.top_k,
            max_tokens: self.max_tokens,
            dtype: self.dtype as i32,
            activation: self.activation as i32,
            gated: self.gated as i32,
            bias: self.bias as i32,
            gather: self.gather as i32,
            combine: self.combine as i32,
            ..sys::hone_expert_linear::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedExpertLinear> {
        let description = self.to_c();
        Ok(PreparedExpertLinear(runtime.prepare(|runtime, op| unsafe {
            sys::hone_expert_linear_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, tokens: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_expert_linear_explain(
                runtime,
                &description,
                tokens,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// One call. A stride is the distance between two rows in elements, 0 meaning the row's length;
/// weights are contiguous. 16 bytes always suffice as alignment of pointers and strides. out
/// overlaps nothing else. `starts` and `rows` are on the device: what they say beyond the call's
/// places is not read, and nothing is written there; rows of out that no place has then keep what
/// they hold, and are nothing to rely on with combine.
pub type ExpertLinearArgs = sys::hone_expert_linear_args;

/// A prepared operator whose calls take [`ExpertLinearArgs`].
#[derive(Debug)]
pub struct PreparedExpertLinear(Prepared);

impl PreparedExpertLinear {
    /// Enqueues a call.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(&self, stream: Stream, args: &ExpertLinearArgs, tokens: i64) -> Result<()> {
        check(sys::hone_expert_linear_run(self.0.op(), stream.0, args, tokens))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, tokens: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_operator_workspace(op, tokens, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// Routing of a mixture of experts: of each token's softmax over all experts the top_k largest, in
/// this order, of equal ones the first, with `renormalize` divided by their sum; and all pairs of a
/// token and a slot, number token * top_k + slot, sorted by expert, those of one expert in their
/// own order. The result is the same in every call. NaN counts as minus infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertRouting {
    /// logits a token, 1 to 512
    pub experts: i64,
    /// experts that a token goes to, 1 to 32
    pub top_k: i64,
    /// most tokens of one call
    pub max_tokens: i64,
    /// element type of the logits
    pub dtype: Dtype,
    pub renormalize: bool,
}

impl Default for ExpertRouting {
    fn default() -> Self {
        let made = sys::hone_expert_routing::default();
        ExpertRouting {
            experts: made.experts,
            top_k: made.top_k,
            max_tokens: made.max_tokens,
            dtype: Dtype::from_c(made.dtype),
            renormalize: made.renormalize != 0,
        }
    }
}

impl ExpertRouting {
    pub(crate) fn to_c(self) -> sys::hone_expert_routing {
        sys::hone_expert_routing {
            experts: self.experts,
            top_k: self.top_k,
            max_tokens: self.max_tokens,
            dtype: self.dtype as i32,
            renormalize: self.renormalize as i32,
            ..sys::hone_expert_routing::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedExpertRouting> {
        let description = self.to_c();
        Ok(PreparedExpertRouting(runtime.prepare(|runtime, op| unsafe {
            sys::hone_expert_routing_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, tokens: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_expert_routing_explain(
                runtime,
                &description,
                tokens,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// One call. `logits_stride` is the distance between two rows in elements, 0 meaning `experts`.
pub type ExpertRoutingArgs = sys::hone_expert_routing_args;

/// A prepared operator whose calls take [`ExpertRoutingArgs`].
#[derive(Debug)]
pub struct PreparedExpertRouting(Prepared);

impl PreparedExpertRouting {
    /// Enqueues a call.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(&self, stream: Stream, args: &ExpertRoutingArgs, tokens: i64) -> Result<()> {
        check(sys::hone_expert_routing_run(self.0.op(), stream.0, args, tokens))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, tokens: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_operator_workspace(op, tokens, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// out = activation(x * weight^T + bias) + residual, accumulated in fp32. Rows of x are tokens.
/// With a norm x * rsqrt(mean(x^2) + epsilon) * norm_weight, an RmsNorm, takes the place of x; it
/// may be rounded to dtype before it is multiplied, as that of an RmsNorm is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// elements of a row of x, 1 to 262144
    pub in_features: i64,
    /// elements of a row of out, 1 to 1048576
    pub out_features: i64,
    /// most tokens of one call
    pub max_tokens: i64,
    /// element type of every tensor
    pub dtype: Dtype,
    pub activation: Activation,
    pub bias: bool,
    pub residual: bool,
    /// x is normalized first
    pub norm: bool,
}

impl Default for Linear {
    fn default() -> Self {
        let made = sys::hone_linear::default();
        Linear {
            in_features: made.in_,
            out_features: made.out,
            max_tokens: made.max_tokens,
            dtype: Dtype::from_c(made.dtype),
            activation: Activation::from_c(made.activation),
            bias: made.bias != 0,
            residual: made.residual != 0,
            norm: made.norm != 0,
        }
    }
}

impl Linear {
    pub(crate) fn to_c(self) -> sys::hone_linear {
        sys::hone_linear {
            in_: self.in_features,
            out: self.out_features,
            max_tokens: self.max_tokens,
            dtype: self.dtype as i32,
            activation: self.activation as i32,
            bias: self.bias as i32,
            residual: self.residual as i32,
            norm: self.norm as i32,
            ..sys::hone_linear::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedLinear> {
        let description = self.to_c();
        Ok(PreparedLinear(runtime.prepare(|runtime, op| unsafe {
            sys::hone_linear_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, tokens: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_linear_explain(
                runtime,
                &description,
                tokens,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// Rows are contiguous; a stride is the distance between two rows in elements, 0 meaning the row's
/// length. 16 bytes always suffice as alignment of pointers and strides. `out` may be the residual
/// itself; other overlaps are not allowed. Weights are constants: a kernel may read them before the
/// one enqueued right before it has ended, if that lets its successor begin early, as Hone's
/// kernels do. Such a kernel must not write them.
pub type LinearArgs = sys::hone_linear_args;

/// A prepared operator whose calls take [`LinearArgs`].
#[derive(Debug)]
pub struct PreparedLinear(Prepared);

impl PreparedLinear {
    /// Enqueues a call.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(&self, stream: Stream, args: &LinearArgs, tokens: i64) -> Result<()> {
        check(sys::hone_linear_run(self.0.op(), stream.0, args, tokens))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, tokens: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_operator_workspace(op, tokens, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// The feed-forward network of a transformer layer. Gated (SwiGLU and its like):
///   out = (activation(x * gate^T) * (x * up^T)) * down^T + residual,
/// else out = activation(x * up^T + up_bias) * down^T + down_bias + residual. The product of the
/// first half [tokens, intermediate], rounded to dtype, lies in the workspace. With a norm an
/// RmsNorm of x takes the place of x, as in Linear, but not of a residual that is x itself: out = x
/// + ffn(norm(x)) is one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FusedFfn {
    /// elements of a row of x and out
    pub hidden: i64,
    /// elements of a row between the halves
    pub intermediate: i64,
    /// most tokens of one call
    pub max_tokens: i64,
    /// element type of every tensor
    pub dtype: Dtype,
    pub activation: Activation,
    pub gated: bool,
    /// biases of both halves; not with `gated`
    pub bias: bool,
    /// added to out
    pub residual: bool,
    /// x is normalized first
    pub norm: bool,
}

impl Default for FusedFfn {
    fn default() -> Self {
        let made = sys::hone_fused_ffn::default();
        FusedFfn {
            hidden: made.hidden,
            intermediate: made.intermediate,
            max_tokens: made.max_tokens,
            dtype: Dtype::from_c(made.dtype),
            activation: Activation::from_c(made.activation),
            gated: made.gated != 0,
            bias: made.bias != 0,
            residual: made.residual != 0,
            norm: made.norm != 0,
        }
    }
}

impl FusedFfn {
    pub(crate) fn to_c(self) -> sys::hone_fused_ffn {
        sys::hone_fused_ffn {
            hidden: self.hidden,
            intermediate: self.intermediate,
            max_tokens: self.max_tokens,
            dtype: self.dtype as i32,
            activation: self.activation as i32,
            gated: self.gated as i32,
            bias: self.bias as i32,
            residual: self.residual as i32,
            norm: self.norm as i32,
            ..sys::hone_fused_ffn::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedFusedFfn> {
        let description = self.to_c();
        Ok(PreparedFusedFfn(runtime.prepare(|runtime, op| unsafe {
            sys::hone_fused_ffn_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, tokens: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_fused_ffn_explain(
                runtime,
                &description,
                tokens,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// As LinearArgs; weights are contiguous. `out` may be the residual itself also where that is x.
pub type FusedFfnArgs = sys::hone_fused_ffn_args;

/// A prepared operator whose calls take [`FusedFfnArgs`].
#[derive(Debug)]
pub struct PreparedFusedFfn(Prepared);

impl PreparedFusedFfn {
    /// Enqueues a call.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(&self, stream: Stream, args: &FusedFfnArgs, tokens: i64) -> Result<()> {
        check(sys::hone_fused_ffn_run(self.0.op(), stream.0, args, tokens))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, tokens: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_operator_workspace(op, tokens, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in
/// fp32. With a residual, x + residual (rounded to dtype) takes the place of x and is written to
/// `sum`. With unit_offset, as in Gemma's models, the weight counts as 1 + weight, which is not
/// rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RmsNorm {
    /// elements of a row, 1 to 262144
    pub hidden: i64,
    /// most rows of one call
    pub max_rows: i64,
    /// element type of x, residual, weight and sum
    pub dtype: Dtype,
    pub output: NormOutput,
    pub residual: bool,
    pub unit_offset: bool,
}

impl Default for RmsNorm {
    fn default() -> Self {
        let made = sys::hone_rms_norm::default();
        RmsNorm {
            hidden: made.hidden,
            max_rows: made.max_rows,
            dtype: Dtype::from_c(made.dtype),
            output: NormOutput::from_c(made.output),
            residual: made.residual != 0,
            unit_offset: made.unit_offset != 0,
        }
    }
}

impl RmsNorm {
    pub(crate) fn to_c(self) -> sys::hone_rms_norm {
        sys::hone_rms_norm {
            hidden: self.hidden,
            max_rows: self.max_rows,
            dtype: self.dtype as i32,
            output: self.output as i32,
            residual: self.residual as i32,
            unit_offset: self.unit_offset as i32,
            ..sys::hone_rms_norm::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedNorm> {
        let description = self.to_c();
        Ok(PreparedNorm(runtime.prepare(|runtime, op| unsafe {
            sys::hone_rms_norm_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, rows: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_rms_norm_explain(
                runtime,
                &description,
                rows,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// y = (x - mean(x)) * rsqrt(var(x) + epsilon) * weight + bias over each row; otherwise like
/// RmsNorm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerNorm {
    /// elements of a row, 1 to 262144
    pub hidden: i64,
    /// most rows of one call
    pub max_rows: i64,
    /// element type of x, residual, weight, bias and sum
    pub dtype: Dtype,
    pub output: NormOutput,
    pub residual: bool,
    pub bias: bool,
    pub unit_offset: bool,
}

impl Default for LayerNorm {
    fn default() -> Self {
        let made = sys::hone_layer_norm::default();
        LayerNorm {
            hidden: made.hidden,
            max_rows: made.max_rows,
            dtype: Dtype::from_c(made.dtype),
            output: NormOutput::from_c(made.output),
            residual: made.residual != 0,
            bias: made.bias != 0,
            unit_offset: made.unit_offset != 0,
        }
    }
}

impl LayerNorm {
    pub(crate) fn to_c(self) -> sys::hone_layer_norm {
        sys::hone_layer_norm {
            hidden: self.hidden,
            max_rows: self.max_rows,
            dtype: self.dtype as i32,
            output: self.output as i32,
            residual: self.residual as i32,
            bias: self.bias as i32,
            unit_offset: self.unit_offset as i32,
            ..sys::hone_layer_norm::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedNorm> {
        let description = self.to_c();
        Ok(PreparedNorm(runtime.prepare(|runtime, op| unsafe {
            sys::hone_layer_norm_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, rows: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_layer_norm_explain(
                runtime,
                &description,
                rows,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// One call of either norm. Rows are contiguous; a stride is the distance between two rows in
/// elements, 0 meaning `hidden`. 16 bytes always suffice as alignment of pointers and strides.
/// `out` may be x itself when it has the same dtype, `sum` may be x or residual itself; other
/// overlaps are not allowed.
pub type NormArgs = sys::hone_norm_args;

/// A prepared operator whose calls take [`NormArgs`].
#[derive(Debug)]
pub struct PreparedNorm(Prepared);

impl PreparedNorm {
    /// Enqueues a call.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(&self, stream: Stream, args: &NormArgs, rows: i64) -> Result<()> {
        check(sys::hone_norm_run(self.0.op(), stream.0, args, rows))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, rows: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_operator_workspace(op, rows, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// Codes and scales of weights of 16 or 32 bits, for QuantizedLinear: [max_out, in] or fewer rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantizeWeights {
    /// columns, 1 to 262144
    pub in_features: i64,
    /// most rows of one call; `in` x max_out is at most 2^36, 1 to 1048576
    pub max_out: i64,
    /// element type of the weight: fp32, fp16 or bf16
    pub dtype: Dtype,
    pub format: QuantFormat,
    /// as in QuantizedLinear
    pub group: i64,
    /// w4a16: codes have zero points, one a group
    pub zeros: bool,
    /// w8a8, fp8 with group 0: one scale for the whole weight, not one a row
    pub one_scale: bool,
    /// element type of w4a16's scales: fp16 or bf16; the other formats' are fp32 always
    pub scale_dtype: Dtype,
    /// w4a16: takes the scale of each group that leaves the least squared error; else the one that
    /// clips nothing
    pub search: bool,
}

impl Default for QuantizeWeights {
    fn default() -> Self {
        let made = sys::hone_quantize_weights::default();
        QuantizeWeights {
            in_features: made.in_,
            max_out: made.max_out,
            dtype: Dtype::from_c(made.dtype),
            format: QuantFormat::from_c(made.format),
            group: made.group,
            zeros: made.zeros != 0,
            one_scale: made.one_scale != 0,
            scale_dtype: Dtype::from_c(made.scale_dtype),
            search: made.search != 0,
        }
    }
}

impl QuantizeWeights {
    pub(crate) fn to_c(self) -> sys::hone_quantize_weights {
        sys::hone_quantize_weights {
            in_: self.in_features,
            max_out: self.max_out,
            dtype: self.dtype as i32,
            format: self.format as i32,
            group: self.group,
            zeros: self.zeros as i32,
            one_scale: self.one_scale as i32,
            scale_dtype: self.scale_dtype as i32,
            search: self.search as i32,
            ..sys::hone_quantize_weights::default()
        }
    }
}

/// codes, scales and zeros as QuantizedLinearArgs says, without gaps; no part may overlap another.
pub type QuantizeWeightsArgs = sys::hone_quantize_weights_args;

/// ExpertLinear with quantized weights, all of one format: row p of x, sorted by expert as
/// ExpertRouting says, times the weight of expert e with starts[e] <= p < starts[e + 1], whose
/// elements are (code - zero point) * scale. gather, combine, biases and gates are as there.
///
/// w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8
/// multiply codes with codes, which are made of x first, with a scale for each row (fp8 with a
/// group: for each 128 columns of it), the largest magnitude at 127 or 448.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantizedExpertLinear {
    /// elements of a row of x, 1 to 262144
    pub in_features: i64,
    /// elements of a row of out, 1 to 1048576
    pub out_features: i64,
    /// 1 to 512
    pub experts: i64,
    /// experts of a token, 1 to 32
    pub top_k: i64,
    /// most tokens of one call
    pub max_tokens: i64,
    /// element type of x, biases and out
    pub dtype: Dtype,
    pub format: QuantFormat,
    /// columns of a weight that share a scale; 0: all of a row. As in QuantizedLinear: w4a16: 32,
    /// 64 or 128, dividing `in`; fp8: 128, dividing `in`, for a scale each 128 x 128; others: 0, 0
    /// to 128
    pub group: i64,
    /// w4a16: codes have zero points, one a group
    pub zeros: bool,
    pub activation: Activation,
    /// there is a second weight, up
    pub gated: bool,
    pub bias: bool,
    /// x has a row for each token
    pub gather: bool,
    /// out has a row for each token
    pub combine: bool,
}

impl Default for QuantizedExpertLinear {
    fn default() -> Self {
        let made = sys::hone_quantized_expert_linear::default();
        QuantizedExpertLinear {
            in_features: made.in_,
            out_features: made.out,
            experts: made.experts,
            top_k: made.top_k,
            max_tokens: made.max_tokens,
            dtype: Dtype::from_c(made.dtype),
            format: QuantFormat::from_c(made.format),
            group: made.group,
            zeros: made.zeros != 0,
            activation: Activation::from_c(made.activation),
            gated: made.gated != 0,
            bias: made.bias != 0,
            gather: made.gather != 0,
            combine: made.combine != 0,
        }
    }
}

impl QuantizedExpertLinear {
    pub(crate) fn to_c(self) -> sys::hone_quantized_expert_linear {
        sys::hone_quantized_expert_linear {
            in_: self.in_features,
            out: self.out_features,
            experts: self.experts,
            top_k: self.top_k,
            max_tokens: self.max_tokens,
            dtype: self.dtype as i32,
            format: self.format as i32,
            group: self.group,
            zeros: self.zeros as i32,
            activation: self.activation as i32,
            gated: self.gated as i32,
            bias: self.bias as i32,
            gather: self.gather as i32,
            combine: self.combine as i32,
            ..sys::hone_quantized_expert_linear::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedQuantizedExpertLinear> {
        let description = self.to_c();
        Ok(PreparedQuantizedExpertLinear(runtime.prepare(|runtime, op| unsafe {
            sys::hone_quantized_expert_linear_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, tokens: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_quantized_expert_linear_explain(
                runtime,
                &description,
                tokens,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// One call. A stride is the distance between two rows in elements, 0 meaning the row's length;
/// weights have no gaps. 16 bytes always suffice as alignment of pointers and strides. out overlaps
/// nothing else. Codes, scales and zero points of a weight are those of QuantizedLinearArgs, expert
/// after expert. What ExpertLinearArgs says of `starts` and `rows` holds here, too.
pub type QuantizedExpertLinearArgs = sys::hone_quantized_expert_linear_args;

/// A prepared operator whose calls take [`QuantizedExpertLinearArgs`].
#[derive(Debug)]
pub struct PreparedQuantizedExpertLinear(Prepared);

impl PreparedQuantizedExpertLinear {
    /// Enqueues a call.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(
        &self,
        stream: Stream,
        args: &QuantizedExpertLinearArgs,
        tokens: i64,
    ) -> Result<()> {
        check(sys::hone_quantized_expert_linear_run(self.0.op(), stream.0, args, tokens))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, tokens: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_operator_workspace(op, tokens, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// out = activation(x * weight^T + bias) + residual, accumulated in fp32 (w8a8: in 32-bit
/// integers), where an element of weight is (code - zero point) * scale. Rows of x are tokens.
///
/// w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8
/// multiply codes with codes: either the caller gives those of x (quantized_x), as an RmsNorm
/// writes them, or they are made of x first, with a scale for each token (fp8 with a group: for
/// each 128 columns of it), the largest magnitude at 127 or 448. With a norm x * rsqrt(mean(x^2) +
/// epsilon) * norm_weight takes the place of x, as in Linear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantizedLinear {
    /// elements of a row of x, 1 to 262144
    pub in_features: i64,
    /// elements of a row of out, 1 to 1048576
    pub out_features: i64,
    /// most tokens of one call
    pub max_tokens: i64,
    /// element type of x that is no codes, bias, residual, norm_weight and out
    pub dtype: Dtype,
    pub format: QuantFormat,
    /// columns of the weight that share a scale; 0: all of a row. w4a16: 32, 64 or 128, dividing
    /// `in`. fp8: 128, dividing `in`, for a scale each 128 x 128 of the weight and each 128 columns
    /// of x. Others: 0, 0 to 128
    pub group: i64,
    /// w4a16: codes have zero points, one a group
    pub zeros: bool,
    /// w8a8, fp8 with group 0: one scale for the whole weight, not one a row
    pub one_scale: bool,
    /// w8a8, fp8: x comes as codes with scales; not with norm
    pub quantized_x: bool,
    /// quantized_x, group 0: one scale for all of x, not one a token
    pub one_x_scale: bool,
    pub activation: Activation,
    pub bias: bool,
    pub residual: bool,
    /// x is normalized first
    pub norm: bool,
}

impl Default for QuantizedLinear {
    fn default() -> Self {
        let made = sys::hone_quantized_linear::default();
        QuantizedLinear {
            in_features: made.in_,
            out_features: made.out,
            max_tokens: made.max_tokens,
            dtype: Dtype::from_c(made.dtype),
            format: QuantFormat::from_c(made.format),
            group: made.group,
            zeros: made.zeros != 0,
            one_scale: made.one_scale != 0,
            quantized_x: made.quantized_x != 0,
            one_x_scale: made.one_x_scale != 0,
            activation: Activation::from_c(made.activation),
            bias: made.bias != 0,
            residual: made.residual != 0,
            norm: made.norm != 0,
        }
    }
}

impl QuantizedLinear {
    pub(crate) fn to_c(self) -> sys::hone_quantized_linear {
        sys::hone_quantized_linear {
            in_: self.in_features,
            out: self.out_features,
            max_tokens: self.max_tokens,
            dtype: self.dtype as i32,
            format: self.format as i32,
            group: self.group,
            zeros: self.zeros as i32,
            one_scale: self.one_scale as i32,
            quantized_x: self.quantized_x as i32,
            one_x_scale: self.one_x_scale as i32,
            activation: self.activation as i32,
            bias: self.bias as i32,
            residual: self.residual as i32,
            norm: self.norm as i32,
            ..sys::hone_quantized_linear::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedQuantizedLinear> {
        let description = self.to_c();
        Ok(PreparedQuantizedLinear(runtime.prepare(|runtime, op| unsafe {
            sys::hone_quantized_linear_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, tokens: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_quantized_linear_explain(
                runtime,
                &description,
                tokens,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// Rows are contiguous; a stride is the distance between two rows in elements, 0 meaning the row's
/// length. 16 bytes always suffice as alignment of pointers and strides. What LinearArgs says of
/// overlaps and of weights holds here, too. The weight's codes are bytes: w4a16, w8a16: [ceil(out /
/// 64)][ceil(in / 64)] blocks of 2048 or 4096 without gaps; w8a8 (two's complement), fp8: [out,
/// in], whose rows may lie weight_stride apart. Its scales are, of w4a16, of dtype, [ceil(out /
/// 64)][groups][64] with groups = ceil(ceil(in / 64) * 64 / group), or 1, in the order of
/// docs/formats.md, and its zeros one byte each at the same places; of the others fp32, [out], or
/// one, or, in groups, [ceil(out / 128), in / 128].
pub type QuantizedLinearArgs = sys::hone_quantized_linear_args;

/// A prepared operator whose calls take [`QuantizedLinearArgs`].
#[derive(Debug)]
pub struct PreparedQuantizedLinear(Prepared);

impl PreparedQuantizedLinear {
    /// Enqueues a call.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(
        &self,
        stream: Stream,
        args: &QuantizedLinearArgs,
        tokens: i64,
    ) -> Result<()> {
        check(sys::hone_quantized_linear_run(self.0.op(), stream.0, args, tokens))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, tokens: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_operator_workspace(op, tokens, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// FusedFfn with quantized weights, all of one format. The product of the first half [tokens,
/// intermediate], rounded to dtype, lies in the workspace; where codes are multiplied with codes,
/// the second half makes its own of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantizedFfn {
    /// elements of a row of x and out
    pub hidden: i64,
    /// elements of a row between the halves
    pub intermediate: i64,
    /// most tokens of one call
    pub max_tokens: i64,
    /// as in QuantizedLinear
    pub dtype: Dtype,
    pub format: QuantFormat,
    /// as in QuantizedLinear; divides hidden and intermediate
    pub group: i64,
    /// zero points of all weights
    pub zeros: bool,
    /// one for each weight
    pub one_scale: bool,
    /// x, and only x, comes as codes with scales; not with norm
    pub quantized_x: bool,
    pub one_x_scale: bool,
    pub activation: Activation,
    pub gated: bool,
    /// biases of both halves; not with `gated`
    pub bias: bool,
    /// added to out
    pub residual: bool,
    /// x is normalized first
    pub norm: bool,
}

impl Default for QuantizedFfn {
    fn default() -> Self {
        let made = sys::hone_quantized_ffn::default();
        QuantizedFfn {
            hidden: made.hidden,
            intermediate: made.intermediate,
            max_tokens: made.max_tokens,
            dtype: Dtype::from_c(made.dtype),
            format: QuantFormat::from_c(made.format),
            group: made.group,
            zeros: made.zeros != 0,
            one_scale: made.one_scale != 0,
            quantized_x: made.quantized_x != 0,
            one_x_scale: made.one_x_scale != 0,
            activation: Activation::from_c(made.activation),
            gated: made.gated != 0,
            bias: made.bias != 0,
            residual: made.residual != 0,
            norm: made.norm != 0,
        }
    }
}

impl QuantizedFfn {
    pub(crate) fn to_c(self) -> sys::hone_quantized_ffn {
        sys::hone_quantized_ffn {
            hidden: self.hidden,
            intermediate: self.intermediate,
            max_tokens: self.max_tokens,
            dtype: self.dtype as i32,
            format: self.format as i32,
            group: self.group,
            zeros: self.zeros as i32,
            one_scale: self.one_scale as i32,
            quantized_x: self.quantized_x as i32,
            one_x_scale: self.one_x_scale as i32,
            activation: self.activation as i32,
            gated: self.gated as i32,
            bias: self.bias as i32,
            residual: self.residual as i32,
            norm: self.norm as i32,
            ..sys::hone_quantized_ffn::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedQuantizedFfn> {
        let description = self.to_c();
        Ok(PreparedQuantizedFfn(runtime.prepare(|runtime, op| unsafe {
            sys::hone_quantized_ffn_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, tokens: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_quantized_ffn_explain(
                runtime,
                &description,
                tokens,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// As QuantizedLinearArgs; weights have no gaps. `out` may be the residual itself also where that
/// is x.
pub type QuantizedFfnArgs = sys::hone_quantized_ffn_args;

/// A prepared operator whose calls take [`QuantizedFfnArgs`].
#[derive(Debug)]
pub struct PreparedQuantizedFfn(Prepared);

impl PreparedQuantizedFfn {
    /// Enqueues a call.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(&self, stream: Stream, args: &QuantizedFfnArgs, tokens: i64) -> Result<()> {
        check(sys::hone_quantized_ffn_run(self.0.op(), stream.0, args, tokens))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, tokens: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_operator_workspace(op, tokens, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// Gradients of an RMSNorm: with r = rsqrt(mean(x^2) + epsilon) of a row and g = dy * weight,
///   dx = r * (g - x * r^2 * mean(g * x)) (+ dsum),     dweight = sum over rows of dy * x * r,
/// accumulated in fp32 in a fixed order: the same bits at every call. x is what was normalized: for
/// a norm with a residual its `sum`, whose own gradient dsum then joins dx, which is the gradient
/// of both x and residual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RmsNormBackward {
    /// elements of a row, 1 to 262144
    pub hidden: i64,
    /// most rows of one call
    pub max_rows: i64,
    /// element type of every tensor
    pub dtype: Dtype,
    /// dsum is added
    pub residual: bool,
}

impl Default for RmsNormBackward {
    fn default() -> Self {
        let made = sys::hone_rms_norm_backward::default();
        RmsNormBackward {
            hidden: made.hidden,
            max_rows: made.max_rows,
            dtype: Dtype::from_c(made.dtype),
            residual: made.residual != 0,
        }
    }
}

impl RmsNormBackward {
    pub(crate) fn to_c(self) -> sys::hone_rms_norm_backward {
        sys::hone_rms_norm_backward {
            hidden: self.hidden,
            max_rows: self.max_rows,
            dtype: self.dtype as i32,
            residual: self.residual as i32,
            ..sys::hone_rms_norm_backward::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedRmsNormBackward> {
        let description = self.to_c();
        Ok(PreparedRmsNormBackward(runtime.prepare(|runtime, op| unsafe {
            sys::hone_rms_norm_backward_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, rows: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_rms_norm_backward_explain(
                runtime,
                &description,
                rows,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// Rows are contiguous, strides as in NormArgs. dx may be dy or dsum itself; other overlaps are not
/// allowed.
pub type RmsNormBackwardArgs = sys::hone_rms_norm_backward_args;

/// A prepared operator whose calls take [`RmsNormBackwardArgs`].
#[derive(Debug)]
pub struct PreparedRmsNormBackward(Prepared);

impl PreparedRmsNormBackward {
    /// Enqueues a call. With 0 rows dweight is not written.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(&self, stream: Stream, args: &RmsNormBackwardArgs, rows: i64) -> Result<()> {
        check(sys::hone_rms_norm_backward_run(self.0.op(), stream.0, args, rows))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, rows: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_operator_workspace(op, rows, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// The rotary embedding of new queries and keys, and the append of keys and values to a KV cache,
/// in one launch: a pair (x, y) of a token at position p becomes (x cos - y sin, y cos + x sin)
/// with row p of the tables. With a norm each head of q and k is normalized first: x *
/// rsqrt(mean(x^2) + epsilon) * weight. With unit_offset, as in Gemma 3, a weight counts as 1 +
/// weight.
///
/// A token whose position is negative, or has no row in the tables, is left out altogether; of one
/// for which the cache has no room, page or slot, only the query is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RopeKvAppend {
    /// heads of q
    pub heads: i64,
    /// heads of k and v; 0: as many
    pub kv_heads: i64,
    /// 1 to 256
    pub head_dim: i64,
    /// leading elements of a head that turn, even; 0: none; -1: all
    pub rotary_dim: i64,
    /// most tokens of one call, of all its sequences
    pub max_tokens: i64,
    /// element type of q, k, v and out
    pub dtype: Dtype,
    /// element type of the cache
    pub kv_dtype: KvDtype,
    pub style: RopeStyle,
    pub norm: bool,
    /// each token has its position and its slot in the cache; else every sequence has q_len new
    /// tokens, the last of its kv_lengths
    pub slots: bool,
    /// tokens of a page of the cache; 0: not paged
    pub page_size: i64,
    /// with a norm: its weights count as 1 + weight, which is not rounded
    pub unit_offset: bool,
}

impl Default for RopeKvAppend {
    fn default() -> Self {
        let made = sys::hone_rope_kv_append::default();
        RopeKvAppend {
            heads: made.heads,
            kv_heads: made.kv_heads,
            head_dim: made.head_dim,
            rotary_dim: made.rotary_dim,
            max_tokens: made.max_tokens,
            dtype: Dtype::from_c(made.dtype),
            kv_dtype: KvDtype::from_c(made.kv_dtype),
            style: RopeStyle::from_c(made.style),
            norm: made.norm != 0,
            slots: made.slots != 0,
            page_size: made.page_size,
            unit_offset: made.unit_offset != 0,
        }
    }
}

impl RopeKvAppend {
    pub(crate) fn to_c(self) -> sys::hone_rope_kv_append {
        sys::hone_rope_kv_append {
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            rotary_dim: self.rotary_dim,
            max_tokens: self.max_tokens,
            dtype: self.dtype as i32,
            kv_dtype: self.kv_dtype as i32,
            style: self.style as i32,
            norm: self.norm as i32,
            slots: self.slots as i32,
            page_size: self.page_size,
            unit_offset: self.unit_offset as i32,
            ..sys::hone_rope_kv_append::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedRopeKvAppend> {
        let description = self.to_c();
        Ok(PreparedRopeKvAppend(runtime.prepare(|runtime, op| unsafe {
            sys::hone_rope_kv_append_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, tokens: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_rope_kv_append_explain(
                runtime,
                &description,
                tokens,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// Device pointers, strides and numbers of one call. Strides are in elements, 0 meaning no gaps,
/// between heads and tokens as in AttentionArgs; 16 bytes always suffice as alignment. `out` may be
/// q itself, with the same strides; other overlaps are not allowed.
pub type RopeKvAppendArgs = sys::hone_rope_kv_append_args;

/// A prepared operator whose calls take [`RopeKvAppendArgs`].
#[derive(Debug)]
pub struct PreparedRopeKvAppend(Prepared);

impl PreparedRopeKvAppend {
    /// Enqueues a call.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(&self, stream: Stream, args: &RopeKvAppendArgs, tokens: i64) -> Result<()> {
        check(sys::hone_rope_kv_append_run(self.0.op(), stream.0, args, tokens))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, tokens: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_operator_workspace(op, tokens, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}

/// A token for each row of logits: the likeliest where the row's temperature is 0, else one drawn
/// from the softmax of logits / temperature. With filters, of the top_k likeliest tokens first,
/// then of the likeliest until their part of the probability reaches top_p, then of those at least
/// min_p times as likely as the likeliest; tokens that are as likely as the last one that stays
/// stay, too. A seed and a counter give the same token whatever the batch, the row's place or the
/// GPU. NaN is never chosen; a row without a number gives token 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// 1 to 1048576
    pub vocabulary: i64,
    /// most rows of one call
    pub max_rows: i64,
    /// element type of the logits
    pub dtype: Dtype,
    pub filters: bool,
    pub log_probability: bool,
    /// logits x count as softcap * tanh(x / softcap) in what is drawn; 0: as they are, 0 to 65536
    pub softcap: i64,
}

impl Default for Sample {
    fn default() -> Self {
        let made = sys::hone_sample::default();
        Sample {
            vocabulary: made.vocabulary,
            max_rows: made.max_rows,
            dtype: Dtype::from_c(made.dtype),
            filters: made.filters != 0,
            log_probability: made.log_probability != 0,
            softcap: made.softcap,
        }
    }
}

impl Sample {
    pub(crate) fn to_c(self) -> sys::hone_sample {
        sys::hone_sample {
            vocabulary: self.vocabulary,
            max_rows: self.max_rows,
            dtype: self.dtype as i32,
            filters: self.filters as i32,
            log_probability: self.log_probability as i32,
            softcap: self.softcap,
            ..sys::hone_sample::default()
        }
    }

    /// Loads, or compiles, every kernel that a call up to the maxima can reach.
    pub fn prepare(&self, runtime: &Runtime) -> Result<PreparedSample> {
        let description = self.to_c();
        Ok(PreparedSample(runtime.prepare(|runtime, op| unsafe {
            sys::hone_sample_prepare(runtime, &description, op)
        })?))
    }

    /// Which kernel a call of these sizes takes, and why; loads nothing.
    pub fn explain(&self, runtime: &Runtime, rows: i64, format: TextFormat) -> Result<String> {
        let description = self.to_c();
        runtime.explain(|runtime, text, capacity, length| unsafe {
            sys::hone_sample_explain(
                runtime,
                &description,
                rows,
                format as i32,
                text,
                capacity,
                length,
            )
        })
    }
}

/// One call. Everything that a row asks for is on the device, so that a captured call may be
/// replayed with other wishes. `logits_stride` is the distance between two rows in elements, 0
/// meaning `vocabulary`.
pub type SampleArgs = sys::hone_sample_args;

/// A prepared operator whose calls take [`SampleArgs`].
#[derive(Debug)]
pub struct PreparedSample(Prepared);

impl PreparedSample {
    /// Enqueues a call.
    ///
    /// # Safety
    /// Pointers are to memory of the device that is as large as the description and the sizes say,
    /// and stays until the stream has run the call; the stream is of the runtime's device.
    pub unsafe fn run(&self, stream: Stream, args: &SampleArgs, rows: i64) -> Result<()> {
        check(sys::hone_sample_run(self.0.op(), stream.0, args, rows))
    }

    /// Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its
    /// workspace.
    pub fn workspace_bytes(&self, rows: i64) -> Result<usize> {
        self.0.workspace(|op, bytes| unsafe { sys::hone_operator_workspace(op, rows, bytes) })
    }

    /// What was prepared, bucket by bucket.
    pub fn report(&self, format: TextFormat) -> Result<String> {
        self.0.report(format)
    }
}
