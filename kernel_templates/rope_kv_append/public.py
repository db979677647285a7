from generate.declare import *

rope_kv_append_operator = operator(
    "RopeKvAppend",
    says="The rotary embedding of new queries and keys, and the append of keys and values to a KV cache, in one launch: a pair "
         "(x, y) of a token at position p becomes (x cos - y sin, y cos + x sin) with row p of the tables. With a norm each "
         "head of q and k is normalized first: x * rsqrt(mean(x^2) + epsilon) * weight.\n\n"
         "A token whose position is negative, or has no row in the tables, is left out altogether; of one for which the cache "
         "has no room, page or slot, only the query is written.",
    fields=[
        integer("heads", 0, "of q"),
        integer("kv_heads", 0, "of k and v; 0: as many"),
        integer("head_dim", 0, allowed="1 to 256"),
        integer("rotary_dim", -1, "leading elements of a head that turn, even; 0: none; -1: all"),
        integer("max_tokens", 8192, "most tokens of one call, of all its sequences"),
        dtype_field("of q, k, v and out"),
        choice_field("kv_dtype", "KvDtype", "same", "of the cache"),
        choice_field("style", "RopeStyle", "half"),
        flag_field("norm"),
        flag_field("slots", "each token has its position and its slot in the cache; else every sequence has q_len new tokens, "
                            "the last of its kv_lengths"),
        integer("page_size", 0, "tokens of a page of the cache; 0: not paged"),
    ],
    call=call(
        "RopeKvAppend",
        says="Device pointers, strides and numbers of one call. Strides are in elements, 0 meaning no gaps, between heads and "
             "tokens as in {Attention.args}; 16 bytes always suffice as alignment. `out` may be q itself, with the same "
             "strides; other overlaps are not allowed.",
        sizes="tokens",
        arguments=[
            tensor("q", "[tokens, heads, head_dim]"),
            tensor("k", "[tokens, kv_heads, head_dim]"),
            tensor("v", "[tokens, kv_heads, head_dim]"),
            tensor("out", "[tokens, heads, head_dim]", "the rotated queries", out=True),
            tensor("k_cache", "[sequences, kv_len, kv_heads, head_dim]", "or [pages, page_size, kv_heads, head_dim]", out=True),
            tensor("v_cache", "", "as k_cache, with the same strides", out=True),
            tensor("cos", "[table_rows, rotary_dim / 2]", "needed when anything turns", element="fp32",
                   when="rotary_dim != 0", role="weight"),
            tensor("sin", "[table_rows, rotary_dim / 2]", "needed when anything turns", element="fp32",
                   when="rotary_dim != 0", role="weight"),
            tensor("kv_lengths", "[tokens / q_len]", "without slots: tokens of each sequence, its q_len new ones included",
                   element="int32", when="!slots"),
            tensor("page_table", "[tokens / q_len, page_table_stride]", "without slots, paged", element="int32",
                   when="page_size != 0 && !slots"),
            tensor("positions", "[tokens]", "with slots, where anything turns", element="int32",
                   when="slots && rotary_dim != 0"),
            tensor("slots", "[tokens]", "with slots: page * page_size + place on the page, or sequence * kv_len + place; "
                                        "negative: none", element="int32", when="slots"),
            tensor("k_scale", "[kv_heads]", "needed when the cache is fp8, which gets k / k_scale", element="fp32",
                   when="kv_dtype != same", role="weight"),
            tensor("v_scale", "[kv_heads]", "needed when the cache is fp8", element="fp32", when="kv_dtype != same",
                   role="weight"),
            tensor("q_weight", "[head_dim]", "dtype; needed when the operator has a norm", when="norm", role="weight"),
            tensor("k_weight", "[head_dim]", "dtype; needed when the operator has a norm", when="norm", role="weight"),
            strides_argument("q", "token head"),
            strides_argument("k", "token head"),
            strides_argument("v", "token head"),
            strides_argument("out", "token head"),
            strides_argument("cache", "batch token head", "`batch` of a sequence, or a page"),
            number_argument("page_table_stride", "entries of a row; 0: as many pages as kv_len takes"),
            number_argument("q_len", "without slots: tokens of each sequence, a divisor of `tokens`", default=1),
            number_argument("kv_len", "tokens that a sequence has room for, from 1"),
            number_argument("pool_pages", "pages of the cache, or sequences of one without pages; 0, for that without slots: "
                                          "tokens / q_len"),
            number_argument("table_rows", "positions that cos and sin know, from 1; needed when anything turns"),
            real_argument("epsilon", 1e-5, "of the norm, from 0"),
        ],
    ),
    torch=[torch_call("rope_kv_append", "q k v k_cache! v_cache! cos sin style | kv_lengths page_table positions slots "
                                        "k_scale v_scale q_weight k_weight epsilon",
                      instead="train with PyTorch's own functions")],
)
