// The commands' declare functions, one file each; command_list.cpp has them in the order of --help with their
// examples.
#pragma once

#include "cli/command.h"

namespace hone::cli {

Runner declare_tune(const Arguments& app);
Runner declare_model(const Arguments& app);
Runner declare_list(const Arguments& app);
Runner declare_show(const Arguments& app);
Runner declare_explain(const Arguments& app);
Runner declare_bench(const Arguments& app);
Runner declare_report(const Arguments& app);
Runner declare_export(const Arguments& app);
Runner declare_import(const Arguments& app);
Runner declare_merge(const Arguments& app);
Runner declare_compile(const Arguments& app);
Runner declare_cache(const Arguments& app);
Runner declare_quantize(const Arguments& app);
Runner declare_generate(const Arguments& app);  ///< where the decoder is built
Runner declare_score(const Arguments& app);     ///< where the decoder is built
Runner declare_serve(const Arguments& app);     ///< the same
Runner declare_spaces(const Arguments& app);
Runner declare_doctor(const Arguments& app);
Runner declare_completion(const Arguments& app);
Runner declare_manual(const Arguments& app);

}  // namespace hone::cli
