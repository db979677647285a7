#include "kernel_templates/norm/calibration.h"
#include "kernel_templates/norm/norm.h"

namespace hone {
namespace {

const Variant group_rows = norm::group_rows("rmsnorm/group_rows.cu");
const Variant persistent_rows = norm::persistent_rows("rmsnorm/persistent_rows.cu");
const Variant cluster_row = norm::cluster_row("rmsnorm/cluster_row.cu");
const Variant streamed_row = norm::streamed_row("rmsnorm/streamed_row.cu");
const Variant* const variants[] = {&group_rows, &cluster_row, &streamed_row, &persistent_rows};

}  // namespace

extern const Family rmsnorm_family;
const Family rmsnorm_family = norm::declared_rmsnorm(norm::family({
    .variants = variants,
    .calibration = norm::calibration,
    .reference_source = "rmsnorm/reference.cu",
}));

}  // namespace hone
