from generate.declare import *

attention_append = family(
    "attention_append",
    says="rotation and append of a new token's query, key and value, and attention of that query over the cache, for "
         "one token a sequence",
    problem="AppendProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of every tensor but the table"),
        choice("style", "half interleaved",
               "partners of a rotation: half: elements i and i + rotary_dim / 2; interleaved: neighbours",
               default="half", enum="RopeStyle"),
        flag("norm", "an RMSNorm over each head of q and k ahead of the rotation"),
        flag("unit_offset", "adds 1 to the norms' weights, in fp32", quiet_default=True),
        extent("window", 0, 2**24, "tokens that a query sees, its own and earlier ones; 0: all", default=0),
        flag("softcap", "takes softcap * tanh(score / softcap) for a score"),
        extent("page_size", 0, 65536, "tokens of a page; 0: the cache is contiguous", default=0),
        extent("heads", 1, 1024, "query heads"),
        extent("kv_heads", 1, 1024, "heads of the cache, shared by query heads evenly"),
        extent("head_dim", 1, 256, "elements of a head"),
        extent("rotary_dim", 0, 256, "leading elements of a head that rotate; 0: none"),
        dynamic("batch", 1, 65536, "sequences"),
        dynamic("kv_len", 1, 2**24, "tokens a sequence in the cache, at most, the new one included"),
    ],
    pointers=[
        read("q", "batch, heads, head_dim", strided="batch head"),
        weight("k_cache", "p.cache_rows(), p.cache_row_tokens(), kv_heads, head_dim",
               words="the new token's row is written", appended=True),
        weight("v_cache", "p.cache_rows(), p.cache_row_tokens(), kv_heads, head_dim", appended=True),
        read("k", "batch, kv_heads, head_dim", strided="batch head"),
        read("v", "batch, kv_heads, head_dim", strided="batch head"),
        read("kv_lengths", "batch, 1", "int32", fill=constant("kv_len")),
        read("page_table", "batch, p.pages(), 1", "int32", when="p.paged()", fill=permutation()),
        weight("cos", "kv_len, p.angles()", "fp32", when="rotary_dim != 0", fill=uniform(),
               words="[positions, rotary_dim / 2]"),
        weight("sin", "kv_len, p.angles()", "fp32", when="rotary_dim != 0", fill=uniform()),
        weight("q_weight", "head_dim", when="norm", fill=normal(0.25, 1.0)),
        weight("k_weight", "head_dim", when="norm", fill=normal(0.25, 1.0)),
        write("out", "batch, heads, head_dim", strided="batch head"),
        workspace(),
    ],
    scalars=[
        size("batch"),
        size("kv_len"),
        strides(),
        stride("cache_stride", "p.cache_row_tokens() * kv_heads * head_dim", of="k_cache",
               words="from one sequence, or page, to the next; of k_cache and v_cache, as the next two"),
        stride("cache_token_stride", "kv_heads * head_dim", of="k_cache"),
        stride("cache_head_stride", "head_dim", of="k_cache"),
        number("page_table_stride", "p.paged() ? p.pages() : 0", "entries a sequence"),
        number("pool_pages", "p.paged() ? batch * p.pages() : 0"),
        number("positions", "kv_len", "rows of cos and sin"),
        real("scale", "1.0f / std::sqrt(static_cast<float>(head_dim))", "above 0"),
        real("softcap", "softcap ? 30.0f : 0.0f", "above 0"),
        real("epsilon", "1e-6f", "the norms'"),
    ],
)

attention_append_operator = operator(
    "AttentionAppend",
    says="A decoding step's attention of one new token a sequence, with what goes before it, in one launch: what {RopeKvAppend} "
         "does with q, k and v, and {Attention} of the rotated query over the cache, the new key and value included. Queries "
         "and keys are rounded to dtype between rotation and product, as there. q, k and v may be parts of one row, as a "
         "projection of all three leaves them; q is not written.\n\n"
         "What is not q, k or v may be read before the kernels enqueued ahead of this one have ended: older rows of the cache, "
         "lengths, pages, tables and weights must not be written by those, but by work that ended before them, such as the "
         "launch of another graph.\n\n"
         "Fast is the kernel of sm_90 for 16-bit elements, heads of multiples of 8 elements and rotations of multiples of 16. The "
         "other one is right everywhere, and slower than the two operators.",
    fields=[
        integer("heads", 0, "heads of q and out"),
        integer("kv_heads", 0, "heads of k and v, a divisor of `heads`; 0: as many"),
        integer("head_dim", 0, allowed="1 to 256"),
        integer("rotary_dim", -1, "leading elements of a head that turn, even; 0: none; -1: all"),
        integer("max_batch", 64, "most sequences of one call"),
        integer("max_kv_len", 8192, "most keys of a sequence: its capacity in the cache"),
        dtype_field("element type of q, k, v, the cache, the norms' weights and out"),
        choice_field("style", "RopeStyle", "half"),
        flag_field("norm", "each head of q and k is normalized first: x * rsqrt(mean(x^2) + epsilon) * weight"),
        flag_field("softcap", "scores s become softcap * tanh(s / softcap), after scale"),
        integer("window", 0, "most keys that a query sees, its own included; 0: all"),
        integer("page_size", 0, "tokens of a page of the cache; 0: not paged"),
        flag_field("unit_offset", "with a norm: its weights count as 1 + weight, which is not rounded"),
    ],
    call=call(
        "AttentionAppend",
        says="Device pointers, strides and numbers of one call. Strides are in elements, 0 meaning no gaps, as in "
             "{Attention.args}; 16 bytes always suffice as alignment. `out` overlaps nothing else.",
        sizes="batch kv_len",
        arguments=[
            tensor("q", "[batch, heads, head_dim]"),
            tensor("k", "[batch, kv_heads, head_dim]"),
            tensor("v", "[batch, kv_heads, head_dim]"),
            tensor("out", "[batch, heads, head_dim]", out=True),
            tensor("k_cache", "[batch, kv_len, kv_heads, head_dim]", "or [pool_pages, page_size, kv_heads, head_dim]", out=True),
            tensor("v_cache", "", "as k_cache, with the same strides", out=True),
            tensor("cos", "[table_rows, rotary_dim / 2]", "needed when anything turns", element="fp32",
                   when="rotary_dim != 0", role="weight"),
            tensor("sin", "[table_rows, rotary_dim / 2]", "needed when anything turns", element="fp32",
                   when="rotary_dim != 0", role="weight"),
            tensor("kv_lengths", "[batch]", "keys of each sequence, 0 to kv_len, the new one included; 0: nothing is "
                                            "appended, and out gets zeros", element="int32"),
            tensor("page_table", "[batch, page_table_stride]", "needed when the cache is paged: the pages of each sequence",
                   element="int32", when="page_size != 0"),
            tensor("q_weight", "[head_dim]", "dtype; needed when the operator has a norm", when="norm", role="weight"),
            tensor("k_weight", "[head_dim]", "dtype; needed when the operator has a norm", when="norm", role="weight"),
            workspace_argument(),
            strides_argument("q", "token head"),
            strides_argument("k", "token head"),
            strides_argument("v", "token head"),
            strides_argument("out", "token head"),
            strides_argument("cache", "batch token head", "`batch` of a sequence, or a page"),
            number_argument("page_table_stride", "entries of a row; 0: as many pages as kv_len takes"),
            number_argument("pool_pages", "pages of the cache; needed when it is paged"),
            number_argument("table_rows", "positions that cos and sin know, kv_len at least; needed when anything turns"),
            real_argument("scale", 0.0, "factor of q k^T; 0 or less: 1 / sqrt(head_dim)"),
            real_argument("softcap", 0.0, "above 0; needed when the operator has a softcap"),
            real_argument("epsilon", 1e-5, "the norms', from 0"),
        ],
        run="kv_len is the most that any sequence has, from 1; with batch 0 nothing is done.",
        python="q k v k_cache v_cache kv_lengths",
        keywords="kv_len page_table cos sin q_weight k_weight scale softcap epsilon=1e-5 out workspace",
        python_says="Returns out, and writes the new token's rows of k_cache and v_cache.\n\n"
                    "q and out are [batch, heads, head_dim], k and v [batch, kv_heads, head_dim]; heads are contiguous. The "
                    "caches are [batch, room, kv_heads, head_dim], or pages [pool_pages, page_size, kv_heads, head_dim] with "
                    "a page_table [batch, pages of a sequence]; both have the same strides. kv_lengths [batch]: keys of each "
                    "sequence, the new one included; kv_len the most of any, None: as many as there is room for. cos and sin "
                    "are fp32 [positions, rotary_dim / 2] without gaps; q_weight and k_weight [head_dim] are the norms', "
                    "epsilon is, too. scale: None is head_dim^-0.5. Lengths and tables are int32 on the device. workspace is "
                    "any memory of workspace_bytes(batch, kv_len), aligned to 256, that no other call uses meanwhile. out and "
                    "workspace are made by PyTorch where they are not given and q is its tensor. stream is an int (CUstream) "
                    "or an object of PyTorch, CuPy or Numba; None: the caller's.",
    ),
    helpers="runtime/operators/attention_call.h",
    prepared="runtime/operators/attention_append_prepared.h",
    parts=[
        part("attention_append", attention_append,
             let={"q": "filled_in(args.q_strides, {1, d.heads, d.head_dim})",
                  "k": "filled_in(args.k_strides, {1, d.kv_heads, d.head_dim})",
                  "v": "filled_in(args.v_strides, {1, d.kv_heads, d.head_dim})",
                  "out": "filled_in(args.out_strides, {1, d.heads, d.head_dim})",
                  "room": "d.page_size != 0 ? d.page_size : sizes.kv_len",
                  "cache": "filled_in(args.cache_strides, {room, d.kv_heads, d.head_dim})"},
             given={"q_batch_stride": "q.token", "k_batch_stride": "k.token", "v_batch_stride": "v.token",
                    "out_batch_stride": "out.token", "cache_stride": "cache.batch",
                    "page_table_stride": "page_table_stride(args.page_table_stride, d.page_size, sizes.kv_len)",
                    "positions": "args.table_rows",
                    "scale": "scale_of(d.head_dim, args.scale)",
                    "softcap": "d.softcap ? args.softcap : 1.0F"}),
    ],
)
