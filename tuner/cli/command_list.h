// The commands' declare functions, one file each; command_list.cpp has them in the order of --help with their
// examples.
#pragma once

#include "tuner/cli/command.h"

namespace hone::cli {

Runner declare_tune(CLI::App& app);
Runner declare_model(CLI::App& app);
Runner declare_list(CLI::App& app);
Runner declare_show(CLI::App& app);
Runner declare_explain(CLI::App& app);
Runner declare_bench(CLI::App& app);
Runner declare_report(CLI::App& app);
Runner declare_export(CLI::App& app);
Runner declare_import(CLI::App& app);
Runner declare_merge(CLI::App& app);
Runner declare_compile(CLI::App& app);
Runner declare_cache(CLI::App& app);
Runner declare_quantize(CLI::App& app);
Runner declare_spaces(CLI::App& app);
Runner declare_doctor(CLI::App& app);
Runner declare_completion(CLI::App& app);
Runner declare_manual(CLI::App& app);

}  // namespace hone::cli
