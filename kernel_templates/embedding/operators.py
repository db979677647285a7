from generate.declare import *

embedding = family(
    "embedding",
    says="rows of a table by the tokens' ids, with or without a scale and added positions",
    fields=[
        dtype("fp32 fp16 bf16", "element type of the tables and of out"),
        choice("index", "int32 int64", "type of the ids", default="int32", enum="IndexType"),
        flag("scale", "multiplies the table's row by a number"),
        flag("positions", "adds a row of a second table"),
        extent("hidden", 1, 262144, "elements a row"),
        dynamic("tokens", 1, 2**24, "tokens of a call"),
        free("vocabulary", 1, 2147483647, "rows of the table", default=32768),
        free("position_rows", 1, 2147483647, "rows of the table of positions", default=1024),
    ],
    pointers=[
        read("ids", "tokens, 1", "p.index_type()", rows="vocabulary"),
        weight("table", "vocabulary, hidden", strided=True),
        read("position_ids", "tokens, 1", "p.index_type()", rows="position_rows", when="positions"),
        weight("position_table", "position_rows, hidden", strided=True, when="positions"),
        write("out", "tokens, hidden", strided=True),
    ],
    scalars=[size("tokens"), size("vocabulary"), size("position_rows"), strides(), real("scale", 1.5)],
)

embedding_operator = operator(
    "Embedding",
    family=embedding,
    says="out = table[ids] * scale + position_table[position_ids], the last two where the operator has them, computed in fp32 "
         "and rounded once. A token whose id or position has no row gets zeros.",
    fields=[
        taken("hidden", "elements of a row"),
        largest("tokens", 8192, "most tokens of one call"),
        taken("dtype", "element type of the tables and out"),
        taken("index"),
        taken("scale"),
        taken("positions"),
    ],
    call=call(
        "Embedding",
        family=embedding,
        says="One call. Rows are contiguous; a stride is the distance between two rows in elements, 0 meaning `hidden`. 16 "
             "bytes always suffice as alignment of tables, out and strides.",
        sizes="tokens",
        arguments=[
            "ids table position_ids position_table out",
            number_argument("vocabulary", "rows of the table"),
            number_argument("position_rows", "rows of the table of positions"),
            "table_stride position_table_stride out_stride",
            real_argument("scale", 1.0, "where the operator has one"),
        ],
        words={
            "ids": "their type is index",
            "position_ids": "their type is index; needed when the operator has positions",
        },
    ),
    torch=[
        torch_call("embedding", "ids table | scale position_ids position_table",
                   instead="train with torch.nn.functional.embedding"),
    ],
)
