#include "kernel_templates/norm/norm.h"

namespace hone {
namespace {

const Variant group_rows = norm::group_rows("layernorm/group_rows.cu");
const Variant persistent_rows = norm::persistent_rows("layernorm/persistent_rows.cu");
const Variant cluster_row = norm::cluster_row("layernorm/cluster_row.cu");
const Variant streamed_row = norm::streamed_row("layernorm/streamed_row.cu");
const Variant* const variants[] = {&group_rows, &cluster_row, &streamed_row, &persistent_rows};

}  // namespace

extern const Family layernorm_family;
const Family layernorm_family = norm::declared_layernorm(norm::family({
    .variants = variants,
    .reference_source = "layernorm/reference.cu",
}));

}  // namespace hone
