from generate.declare import *
from kernel_templates.attention_decode.operators import attention_decode

attention_prefill = family(
    "attention_prefill",
    says="softmax(scale * q k^T + mask) v for many queries a sequence, without a matrix of scores",
    problem="AttentionProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of q, k, v and out"),
        flag("causal", "query i sees no key behind i + kv_len - q_len"),
        extent("window", 0, 2**24, "keys that a query sees at most, its own the last; 0: all", default=0),
        flag("softcap", "scores s become softcap * tanh(s / softcap)"),
        flag("lse", "also writes the logarithm of a row's sum of exponentials"),
        choice("lengths", "none kv cumulative paged",
               "how long sequences are: all the same, kv_lengths[batch], packed tensors with q_starts and "
               "kv_starts, or packed queries with q_starts over pages with kv_lengths",
               default="none", enum="Lengths"),
        extent("page_size", 0, 65536, "tokens of a page of k and v; 0: they do not come in pages", default=0,
               quiet_default=True),
        choice("kv_dtype", "same fp8_e4m3", "element type of k and v; fp8 has a scale for each head", default="same",
               enum="KvDtype", quiet_default=True),
        flag("sinks", "a learned logit a head counts in the sum of exponentials, and has no value",
             quiet_default=True),
        extent("heads", 1, 1024, "heads of q and out"),
        extent("kv_heads", 1, 1024, "heads of k and v"),
        extent("head_dim", 1, 256, "elements of a row"),
        dynamic("batch", 1, 65536, "sequences"),
        dynamic("q_len", 1, 2**24, "queries of the longest sequence"),
        free("kv_len", 1, 2**24, "keys of the longest sequence", default_as="q_len"),
    ],
    pointers=[
        read("q", "p.tensors(), p.tensor_tokens(q_len), heads, head_dim", strided="batch token head"),
        read("k", "p.kv_tensors(), p.kv_tensor_tokens(), kv_heads, head_dim", "p.cache_dtype()",
             strided="batch token head"),
        read("v", "p.kv_tensors(), p.kv_tensor_tokens(), kv_heads, head_dim", "p.cache_dtype()",
             strided="batch token head"),
        read("q_starts", "batch + 1, 1", "int32", when="p.packed()", fill=ramp("q_len"),
             words="first tokens of the sequences, and the end"),
        read("kv_starts", "batch + 1, 1", "int32", when="p.packs_keys()", fill=ramp("kv_len")),
        read("kv_lengths", "batch, 1", "int32", when="p.has_kv_lengths()",
             fill=ramp("-p.tuning_step()", "kv_len")),
        read("page_table", "batch, p.pages(), 1", "int32", when="p.paged()", fill=permutation()),
        weight("k_scale", "kv_heads, 1", "fp32", when="p.fp8_cache()", fill=uniform(0.25, 0.75),
               words="scales of codes, which count about as much as other elements when tuning"),
        weight("v_scale", "kv_heads, 1", "fp32", when="p.fp8_cache()", fill=uniform(0.25, 0.75)),
        weight("sinks", "heads, 1", "fp32", when="sinks", words="logits, beside scores times scale"),
        write("out", "p.tensors(), p.tensor_tokens(q_len), heads, head_dim", strided="batch token head"),
        write("lse", "p.tensors(), heads, p.tensor_tokens(q_len), 1", "fp32", when="lse",
              words="natural logarithms; [heads, q_tokens] where packed"),
        workspace(),
    ],
    scalars=[
        size("batch", narrow=True),
        size("q_len", narrow=True),
        size("kv_len", narrow=True),
        number("q_tokens", "batch * q_len", "rows of the packed tensor; batch * q_len where it is not "
                                            "packed"),
        number("kv_tokens", "batch * kv_len"),
        number("page_table_stride", "p.paged() ? p.pages() : 0", "entries a sequence"),
        number("pool_pages", "p.paged() ? batch * p.pages() : 0"),
        number("least_queries", 1, "sequences with fewer are left to another kernel, where queries are packed over "
                                   "pages", narrow=True),
        strides(),
        real("scale", "1.0f / std::sqrt(static_cast<float>(head_dim))", "positive"),
        real("softcap", 2.0, "positive; small when tuning, so that it bends ordinary scores"),
    ],
)

attention = operator(
    "Attention",
    says="out = softmax(scale * q k^T + mask) v for each sequence and head, accumulated in fp32. `heads / "
         "kv_heads` neighbouring heads of q share one of k and v. Causal is aligned at the end: of a "
         "sequence with q_len queries and kv_len keys, query i sees key j <= i + kv_len - q_len. A query "
         "that sees no key gets zeros, and -infinity as its log-sum-exp; what stands in k and v beyond a "
         "sequence's end, also NaN, changes nothing.\n\n"
         "One operator serves prefill and decode: calls of up to 16 queries a sequence (not packed) take "
         "kernels that read a KV cache at the speed of memory, others those of prefill, which read codes of fp8, too. Packed queries over a "
         "paged cache are chunks of prompts, prompts behind a cached prefix and single tokens in one call, which "
         "enqueues kernels of both kinds, beside each other, where it may have single tokens: of each only what is its "
         "own is read. "
         "Lengths, starts and page tables are on the device: a captured graph may be replayed with others.",
    fields=[
        integer("heads", 0, "heads of q and out"),
        integer("kv_heads", 0, "heads of k and v, a divisor of `heads`; 0: as many"),
        integer("head_dim", 0, allowed="1 to 256"),
        integer("max_batch", 64, "most sequences of one call"),
        integer("max_q_len", 8192, "most queries of a sequence"),
        integer("max_kv_len", 8192, "most keys of a sequence: its capacity in a cache"),
        integer("min_q_len", 1, "fewest queries of a call, from 1: kernels for fewer are not prepared"),
        dtype_field("element type of q and out, and of k and v"),
        choice_field("kv_dtype", "KvDtype", "same", "element type of k and v; fp8: codes, with k_scale and v_scale"),
        flag_field("causal", default=True),
        flag_field("lengths", "kv_lengths says how many keys each sequence has; else all have kv_len"),
        flag_field("packed", "q_starts and kv_starts cut packed tensors into sequences, not with `lengths`; with "
                             "a page_size only q is packed, and kv_lengths says how many keys there are in pages"),
        flag_field("softcap", "scores s become softcap * tanh(s / softcap), after scale, before the mask"),
        flag_field("lse", "the log-sum-exp of the scores is written, too"),
        integer("window", 0, "most keys that a query sees, its own included; needs causal; 0: all"),
        integer("page_size", 0, "tokens of a page of the KV cache; 0: not paged"),
        flag_field("sinks", "a learned logit a head, beside scores times scale, counts in the softmax's sum and in "
                            "lse, and has no value"),
    ],
    call=call(
        "Attention",
        says="Device pointers, strides and numbers of one call. Strides are elements between neighbours of a "
             "tensor [batch, tokens, heads, head_dim], whose last dimension is contiguous; 0: between heads "
             "head_dim, between tokens all heads of a token, between sequences (batch) all tokens of one, "
             "that stride apart. Of a paged cache the batch stride is the distance of two pages, of packed "
             "tensors it means nothing. 16 bytes always suffice as alignment of pointers and strides. `out` "
             "may be q itself, with the same strides; other overlaps are not allowed. k and v may be tensors "
             "or caches: a call of up to 16 queries (not packed) needs the same strides for both, and single tokens "
             "among packed queries are as fast as such a call where they have them.",
        sizes="batch q_len kv_len",
        arguments=[
            tensor("q", "[batch, q_len, heads, head_dim]", "packed: [q_tokens, heads, head_dim]"),
            tensor("k", "[batch, kv_len, kv_heads, head_dim]", "packed: [kv_tokens, kv_heads, head_dim]; "
                                                               "paged: [pool_pages, page_size, kv_heads, "
                                                               "head_dim]"),
            tensor("v", "", "as k"),
            tensor("out", "", "as q", out=True),
            tensor("lse", "[batch, heads, q_len]", "packed: [heads, q_tokens]; natural logarithm",
                   element="fp32", out=True,
                   when="lse"),
            tensor("kv_lengths", "[batch]", "0 to kv_len each, the call's own tokens included; needed when "
                                            "the operator has lengths, or is packed and paged", element="int32",
                   when="lengths"),
            tensor("q_starts", "[batch + 1]", "from 0, never decreasing: sequence b has the tokens from "
                                              "starts[b] to starts[b + 1], or none; needed when the operator is "
                                              "packed", element="int32",
                   when="packed"),
            tensor("kv_starts", "[batch + 1]", "as q_starts, of k and v; needed when the operator is packed and "
                                               "not paged", element="int32",
                   when="packed && page_size == 0"),
            tensor("page_table", "[batch, page_table_stride]", "the pages of each sequence, 0 to pool_pages "
                                                               "- 1; entries beyond a sequence's length are "
                                                               "not used", element="int32",
                   when="page_size != 0"),
            tensor("k_scale", "[kv_heads]", "needed when the cache is fp8", element="fp32",
                   when="kv_dtype != same",
                   role="weight"),
            tensor("v_scale", "[kv_heads]", "needed when the cache is fp8", element="fp32",
                   when="kv_dtype != same",
                   role="weight"),
            tensor("sinks", "[heads]", "natural logits, not scaled nor capped; needed when the operator has sinks",
                   element="fp32", when="sinks", role="weight"),
            workspace_argument(),
            strides_argument("q", "batch token head"),
            strides_argument("k", "batch token head"),
            strides_argument("v", "batch token head"),
            strides_argument("out", "batch token head"),
            number_argument("page_table_stride", "entries of a row; 0: as many pages as kv_len takes"),
            number_argument("pool_pages", "pages of the cache; needed when it is paged"),
            number_argument("q_tokens", "tokens of all sequences of a packed call; 0: nothing is done"),
            number_argument("kv_tokens", "the same of k and v, from 1; unused when they are paged"),
            number_argument("prompts", "sequences of more than one query, where queries are packed over pages and the "
                                       "host knows that so many stand behind all others, which have one or none; 0: "
                                       "not known, q_starts tells"),
            real_argument("scale", 0.0, "factor of q k^T; 0 or less: 1 / sqrt(head_dim)"),
            real_argument("softcap", 0.0, "above 0; needed when the operator has a softcap"),
        ],
        run="q_len and kv_len are those of every sequence; where lengths or starts are on the device, the "
            "most that any has. kv_len from 1; with batch or q_len 0 nothing is done.",
        python="q k v",
        keywords="kv_lengths page_table q_starts kv_starts q_len kv_len prompts k_scale v_scale sinks scale softcap out lse "
                 "workspace",
        python_says="Returns out, or (out, lse) where the operator has an lse.\n\n"
                    "q and out are [batch, q_len, heads, head_dim]; k and v [batch, kv_len, kv_heads, "
                    "head_dim], or pages [pool_pages, page_size, kv_heads, head_dim] with a page_table "
                    "[batch, pages of a sequence]; packed, q is [q_tokens, heads, head_dim], k and v are "
                    "[kv_tokens, kv_heads, head_dim], and sequence b has the tokens from q_starts[b] to "
                    "q_starts[b + 1] and from kv_starts[b] to kv_starts[b + 1], of [batch + 1] each; packed "
                    "with a page_size, k and v are pages, and kv_lengths takes the place of kv_starts. Heads "
                    "are contiguous, everything else may lie apart: [batch, heads, tokens, head_dim] is a "
                    "transposed view.\n\n"
                    "kv_lengths [batch]: keys of each sequence, the call's own tokens included. kv_len: "
                    "keys of every sequence, or the most of any where the lengths are on the device; None: "
                    "as many as k has room for. Of a packed call the most of any, q_len and where there are no "
                    "pages kv_len, have to be given; prompts: over pages, as many sequences at the end have more than one "
                    "query and all others one or none, where the host knows it, which leaves out launches that would "
                    "find nothing. Lengths, starts and tables are int32 on the device; k_scale and v_scale are "
                    "fp32 [kv_heads], of an fp8 cache; sinks fp32 [heads]. scale: None is head_dim^-0.5.\n\n"
                    "lse is fp32 [batch, heads, q_len], packed [heads, q_tokens], without gaps, in natural "
                    "logarithms. workspace is any memory of workspace_bytes(batch, q_len, kv_len), aligned "
                    "to 256, that no other call uses meanwhile. out, lse and workspace are made by PyTorch "
                    "where they are not given and q is its tensor. stream is an int (CUstream) or an object "
                    "of PyTorch, CuPy or Numba; None: the caller's current one.",
    ),
    helpers="runtime/operators/attention_call.h",
    prepared="runtime/operators/attention_prepared.h",
    parts=[
        part("decode", attention_decode,
             takes="q_tokens",
             fields={"q_tokens": "q_tokens", "q_len": "q_tokens", "lengths": "decode_lengths_of(d)"},
             let={"q": "filled_in(args.q_strides, {sizes.q_len, d.heads, d.head_dim})",
                  "out": "filled_in(args.out_strides, {sizes.q_len, d.heads, d.head_dim})",
                  "cache": "kv_strides(d, args.k_strides, sizes.kv_len)"},
             given={"k_cache": "args.k", "v_cache": "args.v", "cache_stride": "cache.batch",
                    "q_rows": "d.packed ? args.q_tokens : sizes.batch * sizes.q_len",
                    "page_table_stride": "page_table_stride(args.page_table_stride, d.page_size, sizes.kv_len)",
                    "pool_pages": "d.page_size != 0 ? args.pool_pages : sizes.batch",
                    "scale": "scale_of(d, args.scale)", "softcap": "softcap_of(d, args.softcap)"}),
        part("prefill", attention_prefill,
             fields={"lengths": "lengths_of(d)"},
             let={"queries": "d.packed ? args.q_tokens : sizes.q_len",
                  "keys": "packs_keys(d) ? args.kv_tokens : sizes.kv_len",
                  "q": "filled_in(args.q_strides, {queries, d.heads, d.head_dim})",
                  "k": "kv_strides(d, args.k_strides, keys)",
                  "v": "kv_strides(d, args.v_strides, keys)",
                  "out": "filled_in(args.out_strides, {queries, d.heads, d.head_dim})"},
             given={"q_tokens": "d.packed ? queries : sizes.batch * queries",
                    "kv_tokens": "packs_keys(d) ? keys : sizes.batch * keys",
                    "least_queries": "std::int64_t{1}",
                    "page_table_stride": "page_table_stride(args.page_table_stride, d.page_size, sizes.kv_len)",
                    "scale": "scale_of(d, args.scale)", "softcap": "softcap_of(d, args.softcap)"}),
    ],
)
