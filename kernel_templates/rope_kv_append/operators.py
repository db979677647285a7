from generate.declare import *

rope_kv_append = family(
    "rope_kv_append",
    says="rotary embedding of q and k, with or without a norm before it, and k and v into the contiguous or "
         "paged cache",
    problem="RopeProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of q, k, v, the norms' weights and the results"),
        choice("kv_dtype", "same fp8_e4m3", "element type of the cache; fp8_e4m3: codes of value / scale, one scale a "
                                            "head",
               default="same", enum="KvDtype"),
        choice("style", "half interleaved",
               "partners of a rotation: half: elements i and i + rotary_dim / 2; interleaved: neighbours",
               default="half", enum="RopeStyle"),
        flag("norm", "an RMSNorm over each head of q and k ahead of the rotation"),
        flag("unit_offset", "adds 1 to the norms' weights, in fp32", quiet_default=True),
        flag("slots", "no: a sequence's new tokens are its last; yes: a position and a slot for each token"),
        extent("page_size", 0, 65536, "tokens a page of the cache; 0: contiguous", default=0),
        extent("heads", 1, 1024, "heads of q"),
        extent("kv_heads", 1, 1024, "heads of k and v"),
        extent("head_dim", 1, 256, "elements a head"),
        extent("rotary_dim", 0, 256, "leading elements of a head that rotate; 0: none"),
        dynamic("tokens", 1, 2**24, "new tokens of a call, of all sequences"),
        free("q_tokens", 1, 2**24, "new tokens of a sequence, without slots", default=1),
        free("kv_len", 1, 2**30, "tokens that the cache has room for, a sequence", default=1),
    ],
    pointers=[
        read("q", "tokens, heads, head_dim", strided="token head"),
        read("k", "tokens, kv_heads, head_dim", strided="token head"),
        read("v", "tokens, kv_heads, head_dim", strided="token head"),
        read("kv_lengths", "p.position_count(), 1", "int32", when="!slots || rotary_dim != 0",
             fill=drawn("p.position_fill()", 1.0, "p.first_position()"),
             called='slots ? "positions" : "kv_lengths"',
             words="[batch], new tokens included; with slots: positions, [tokens]"),
        read("slots", "tokens, 1", "int32", when="slots", fill=permutation()),
        read("page_table", "p.tuning().pages(), 1", "int32", when="p.paged() && !slots",
             fill=drawn("p.page_fill()"), words="[batch, pages of a sequence]"),
        weight("cos", "p.tuning().sequence_tokens, p.angles()", "fp32", when="rotary_dim != 0",
               fill=uniform(),
               words="[positions, rotary_dim / 2]"),
        weight("sin", "p.tuning().sequence_tokens, p.angles()", "fp32", when="rotary_dim != 0",
               fill=uniform()),
        weight("q_weight", "head_dim", when="norm", fill=normal(0.25, 1.0)),
        weight("k_weight", "head_dim", when="norm", fill=normal(0.25, 1.0)),
        weight("k_scale", "kv_heads, 1", "fp32", when="p.quantized()", fill=uniform(0.003, 0.012),
               words="such that the largest of some thousand values is near the largest code"),
        weight("v_scale", "kv_heads, 1", "fp32", when="p.quantized()", fill=uniform(0.003, 0.012)),
        write("q_out", "tokens, heads, head_dim", strided="token head"),
        write("k_cache", "tokens, kv_heads, head_dim", "p.cache_dtype()"),
        write("v_cache", "tokens, kv_heads, head_dim", "p.cache_dtype()"),
    ],
    scalars=[
        size("tokens"),
        number("q_tokens", "p.tuning().sequence_tokens"),
        number("kv_len", "p.tuning().sequence_tokens"),
        strides(),
        stride("cache_stride", "p.tuning().outer_tokens * kv_heads * head_dim", of="k_cache",
               words="both caches' distance from one page, or one sequence, to the next"),
        stride("cache_token_stride", "kv_heads * head_dim", of="k_cache"),
        stride("cache_head_stride", "head_dim", of="k_cache"),
        number("page_table_stride", "p.tuning().sequence_pages"),
        number("pool_pages", "p.tuning().pages()", "pages of the pool; sequences of a contiguous cache"),
        number("positions", "p.tuning().sequence_tokens", "rows of cos and sin"),
        real("epsilon", "1e-6f", "the norms'"),
    ],
)

rope_kv_append_operator = operator(
    "RopeKvAppend",
    says="The rotary embedding of new queries and keys, and the append of keys and values to a KV cache, in "
         "one launch: a pair (x, y) of a token at position p becomes (x cos - y sin, y cos + x sin) with row "
         "p of the tables. With a norm each head of q and k is normalized first: x * rsqrt(mean(x^2) + "
         "epsilon) * weight. With unit_offset, as in Gemma 3, a weight counts as 1 + weight.\n\n"
         "A token whose position is negative, or has no row in the tables, is left out altogether; of one "
         "for which the cache has no room, page or slot, only the query is written.",
    fields=[
        integer("heads", 0, "heads of q"),
        integer("kv_heads", 0, "heads of k and v; 0: as many"),
        integer("head_dim", 0, allowed="1 to 256"),
        integer("rotary_dim", -1, "leading elements of a head that turn, even; 0: none; -1: all"),
        integer("max_tokens", 8192, "most tokens of one call, of all its sequences"),
        dtype_field("element type of q, k, v and out"),
        choice_field("kv_dtype", "KvDtype", "same", "element type of the cache"),
        choice_field("style", "RopeStyle", "half"),
        flag_field("norm"),
        flag_field("slots", "each token has its position and its slot in the cache; else every sequence has "
                            "q_len new tokens, the last of its kv_lengths"),
        integer("page_size", 0, "tokens of a page of the cache; 0: not paged"),
        flag_field("unit_offset", "with a norm: its weights count as 1 + weight, which is not rounded"),
    ],
    call=call(
        "RopeKvAppend",
        says="Device pointers, strides and numbers of one call. Strides are in elements, 0 meaning no gaps, "
             "between heads and tokens as in {Attention.args}; 16 bytes always suffice as alignment. `out` "
             "may be q itself, with the same strides; other overlaps are not allowed.",
        sizes="tokens",
        arguments=[
            tensor("q", "[tokens, heads, head_dim]"),
            tensor("k", "[tokens, kv_heads, head_dim]"),
            tensor("v", "[tokens, kv_heads, head_dim]"),
            tensor("out", "[tokens, heads, head_dim]", "the rotated queries", out=True),
            tensor("k_cache", "[sequences, kv_len, kv_heads, head_dim]", "or [pages, page_size, kv_heads, "
                                                                         "head_dim]", out=True),
            tensor("v_cache", "", "as k_cache, with the same strides", out=True),
            tensor("cos", "[table_rows, rotary_dim / 2]", "needed when anything turns", element="fp32",
                   when="rotary_dim != 0", role="weight"),
            tensor("sin", "[table_rows, rotary_dim / 2]", "needed when anything turns", element="fp32",
                   when="rotary_dim != 0", role="weight"),
            tensor("kv_lengths", "[tokens / q_len]", "without slots: tokens of each sequence, its q_len new "
                                                     "ones included",
                   element="int32", when="!slots"),
            tensor("page_table", "[tokens / q_len, page_table_stride]", "without slots, paged",
                   element="int32",
                   when="page_size != 0 && !slots"),
            tensor("positions", "[tokens]", "with slots, where anything turns", element="int32",
                   when="slots && rotary_dim != 0"),
            tensor("slots", "[tokens]", "with slots: page * page_size + place on the page, or sequence * "
                                        "kv_len + place; negative: none", element="int32", when="slots"),
            tensor("k_scale", "[kv_heads]", "needed when the cache is fp8, which gets k / k_scale",
                   element="fp32",
                   when="kv_dtype != same", role="weight"),
            tensor("v_scale", "[kv_heads]", "needed when the cache is fp8", element="fp32",
                   when="kv_dtype != same",
                   role="weight"),
            tensor("q_weight", "[head_dim]", "dtype; needed when the operator has a norm", when="norm",
                   role="weight"),
            tensor("k_weight", "[head_dim]", "dtype; needed when the operator has a norm", when="norm",
                   role="weight"),
            strides_argument("q", "token head"),
            strides_argument("k", "token head"),
            strides_argument("v", "token head"),
            strides_argument("out", "token head"),
            strides_argument("cache", "batch token head", "`batch` of a sequence, or a page"),
            number_argument("page_table_stride", "entries of a row; 0: as many pages as kv_len takes"),
            number_argument("q_len", "without slots: tokens of each sequence, a divisor of `tokens`",
                            default=1),
            number_argument("kv_len", "tokens that a sequence has room for, from 1"),
            number_argument("pool_pages", "pages of the cache, or sequences of one without pages; 0, for "
                                          "that without slots: tokens / q_len"),
            number_argument("table_rows", "positions that cos and sin know, from 1; needed when anything "
                                          "turns"),
            real_argument("epsilon", 1e-5, "the norm's, from 0"),
        ],
        python="q k v k_cache v_cache",
        keywords="cos sin kv_lengths page_table positions slots k_scale v_scale q_weight k_weight epsilon=1e-5 "
                 "out",
        python_says="Returns out, the rotated queries, and writes k_cache and v_cache.\n\n"
                    "q and out are [batch, q_len, heads, head_dim], k and v [batch, q_len, kv_heads, "
                    "head_dim]: the last q_len of kv_lengths [batch] tokens of each sequence. With slots "
                    "they are [tokens, heads, head_dim] and so on, and each token has its entry in "
                    "positions and slots [tokens]: page * page_size + place on the page, or sequence * room "
                    "+ place; negative: none. Tokens have one common stride, heads are contiguous.\n\n"
                    "The caches are [batch, room, kv_heads, head_dim], or pages [pool_pages, page_size, "
                    "kv_heads, head_dim] with, unless there are slots, a page_table [batch, pages of a "
                    "sequence]; both have the same strides. cos and sin are fp32 [positions, rotary_dim / "
                    "2] without gaps, as are k_scale and v_scale [kv_heads], of an fp8 cache. q_weight and "
                    "k_weight [head_dim] are the norm's, epsilon is, too. Lengths, tables, positions and "
                    "slots are int32 on the device. out may be q itself; PyTorch makes it where it is not "
                    "given and q is its tensor. stream is an int (CUstream) or an object of PyTorch, CuPy "
                    "or Numba; None: the caller's.",
    ),
    helpers="runtime/operators/attention_call.h",
    prepared="runtime/operators/append_prepared.h",
    parts=[
        part("append", rope_kv_append,
             fields={"q_tokens": "d.max_tokens", "kv_len": 2**30},
             let={"q": "filled_in(args.q_strides, {tokens, d.heads, d.head_dim})",
                  "k": "filled_in(args.k_strides, {tokens, d.kv_heads, d.head_dim})",
                  "v": "filled_in(args.v_strides, {tokens, d.kv_heads, d.head_dim})",
                  "q_out": "filled_in(args.out_strides, {tokens, d.heads, d.head_dim})",
                  "room": "d.page_size != 0 ? d.page_size : args.kv_len",
                  "cache": "filled_in(args.cache_strides, {room, d.kv_heads, d.head_dim})"},
             given={"kv_lengths": "d.slots ? args.positions : args.kv_lengths", "q_out": "args.out",
                    "q_tokens": "args.q_len", "cache_stride": "cache.batch",
                    "page_table_stride": "page_table_stride(args.page_table_stride, d.page_size, args.kv_len)",
                    "pool_pages": "args.pool_pages == 0 ? tokens / args.q_len : args.pool_pages",
                    "positions": "args.table_rows"}),
    ],
    torch=[torch_call("rope_kv_append", "q k v k_cache! v_cache! cos sin style | kv_lengths page_table "
                                        "positions slots k_scale v_scale q_weight k_weight epsilon",
                      instead="train with PyTorch's own functions")],
)
