#include "kernel_templates/source.h"

#include <algorithm>

namespace hone {
namespace {

constexpr const char* prologue =
    "#pragma once\n"
    "#define HONE_PARAMETERS(kernel) HONE_PARAMETERS_##kernel\n"
    "#define HONE_ARGUMENTS(kernel) HONE_ARGUMENTS_##kernel\n";

std::string constant(std::string_view name, std::int64_t value) {
    return "    static constexpr long long " + std::string(name) + " = " + std::to_string(value) + ";\n";
}

std::string shape_struct(const Problem& problem) {
    std::string text = "struct Shape {\n";
    for (std::size_t i = 0; i < problem.family->fields.size(); ++i) {
        const Field& field = problem.family->fields[i];
        if (is_static(field)) text += constant(field.name, problem.values[i]);
    }
    return text + "};\n";
}

std::string tuned_struct(const Candidate& candidate) {
    std::string text = "struct Tuned {\n";
    for (std::size_t i = 0; i < candidate.variant->tunables.size(); ++i) {
        text += constant(candidate.variant->tunables[i].name, candidate.config[i]);
    }
    return text + "};\n";
}

std::string device_type(Dtype dtype) {
    switch (dtype) {
        case Dtype::fp32: return "float";
        case Dtype::fp16: return "hone::fp16";
        case Dtype::bf16: return "hone::bf16";
        case Dtype::int8: return "hone::int8";
        case Dtype::fp8_e4m3: return "hone::fp8";
    }
    if (dtype == untyped_dtype) return "void";
    return dtype == index_dtype ? "int" : "long long";
}

/// Writes the structs of one image.
class ArgumentStructs {
  public:
    ArgumentStructs(const Problem& problem, bool is_reference)
        : family_(*problem.family), arguments_(family_.arguments(problem)), is_reference_(is_reference) {}

    [[nodiscard]] std::string text(std::span<const Kernel> kernels) const {
        std::string structs = "#include \"device/types.cuh\"\n";
        if (std::ranges::any_of(kernels, takes_tensor_map)) structs += "#include \"device/tma.cuh\"\n";
        structs += "namespace " + call_namespace() + " {\nstruct Arguments {\n" + members(family_.call_args) +
                   "};\n}\nnamespace hone::arguments {\n";
        for (const Kernel& kernel : kernels) structs += own_struct(kernel);
        structs += "}\n";
        for (const Kernel& kernel : kernels) structs += macros(kernel);
        return structs;
    }

  private:
    /// Two families may share one header of device code, which then knows one namespace.
    [[nodiscard]] std::string call_namespace() const {
        return "hone::" +
               std::string(family_.device_namespace.empty() ? family_.name : family_.device_namespace);
    }

    static bool takes_tensor_map(const Kernel& kernel) {
        return std::ranges::any_of(
            kernel.args, [](const KernelArg& arg) { return arg.kind == KernelArg::Kind::tensor_map; });
    }

    [[nodiscard]] bool takes_whole_call(std::span<const KernelArg> args) const {
        return std::ranges::all_of(family_.call_args, [args](const KernelArg& wanted) {
            return std::ranges::any_of(args, [&wanted](const KernelArg& arg) {
                return arg.kind == wanted.kind && arg.index == wanted.index;
            });
        });
    }

    [[nodiscard]] std::string own_struct(const Kernel& kernel) const {
        if (takes_whole_call(kernel.args)) return {};
        return "struct " + std::string(kernel.name) + " {\n" + members(kernel.args) + "};\n";
    }

    [[nodiscard]] std::string members(std::span<const KernelArg> args) const {
        std::string text;
        for (const KernelArg& arg : args) text += "    " + member_type(arg) + " " + arg.name + ";\n";
        return text;
    }

    [[nodiscard]] std::string macros(const Kernel& kernel) const {
        const std::string name = kernel.name;
        return "#define HONE_PARAMETERS_" + name + " " + parameters(kernel.args) +
               "\n#define HONE_ARGUMENTS_" + name + " " + struct_of_parameters(kernel) + "\n";
    }

    [[nodiscard]] std::string parameters(std::span<const KernelArg> args) const {
        std::string text;
        for (const KernelArg& arg : args)
            text += (text.empty() ? "" : ", ") + parameter_type(arg) + " " + arg.name;
        return text;
    }

    [[nodiscard]] std::string struct_of_parameters(const Kernel& kernel) const {
        return takes_whole_call(kernel.args)
                   ? call_namespace() + "::Arguments" + names(family_.call_args)
                   : "hone::arguments::" + std::string(kernel.name) + names(kernel.args);
    }

    static std::string names(std::span<const KernelArg> args) {
        std::string text;
        for (const KernelArg& arg : args) text += (text.empty() ? "{" : ", ") + std::string(arg.name);
        return text + "}";
    }

    /// A tensor map is used where the driver put it: the struct refers to it.
    [[nodiscard]] std::string member_type(const KernelArg& arg) const {
        return arg.kind == KernelArg::Kind::tensor_map ? "const hone::TensorMap&" : type(arg);
    }
    [[nodiscard]] std::string parameter_type(const KernelArg& arg) const {
        return (arg.kind == KernelArg::Kind::tensor_map ? "const __grid_constant__ " : "") + type(arg);
    }

    [[nodiscard]] std::string type(const KernelArg& arg) const {
        switch (arg.kind) {
            case KernelArg::Kind::pointer: return pointer_type(arguments_[arg.index]);
            case KernelArg::Kind::narrow:
            case KernelArg::Kind::narrow_value: return "int";
            case KernelArg::Kind::real: return "float";
            case KernelArg::Kind::tensor_map: return "hone::TensorMap";
            case KernelArg::Kind::scalar:
            case KernelArg::Kind::value: break;
        }
        return "long long";
    }

    [[nodiscard]] std::string pointer_type(const Argument& argument) const {
        const bool is_read = argument.role == Role::input || argument.role == Role::weight;
        if (argument.role == Role::output && is_reference_) return "float*";
        return (is_read ? "const " : "") + device_type(argument.dtype) + "*";
    }

    const Family& family_;
    std::vector<Argument> arguments_;
    bool is_reference_;
};

}  // namespace

std::string render_constants(const Problem& problem, const Candidate& candidate) {
    return prologue + shape_struct(problem) + tuned_struct(candidate) +
           ArgumentStructs(problem, false).text(candidate.variant->kernels);
}

std::string render_constants(const Problem& problem) {
    return prologue + shape_struct(problem) +
           ArgumentStructs(problem, true).text(problem.family->reference_kernels);
}

}  // namespace hone
