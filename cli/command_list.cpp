#include "cli/command_list.h"

#if HONE_WITH_DECODER
#define HONE_OF_DECODER(example) example
#else
#define HONE_OF_DECODER(example) ""
#endif

namespace hone::cli {

const std::vector<Command>& commands() {
    static const std::vector<Command> list {
        {"tune", "Find the fastest kernels for a model or an operator and remember them",
         "  hone tune llama-3-8b\n"
         "  hone tune config.json --tp 2 --budget 10m\n"
         "  hone tune llama-3-8b --format w4a16 --group 64   # linear layers with weights of 4 bits\n"
         "  hone tune --op RmsNorm --fields \"dtype=bf16 hidden=4096 residual=yes\" --tokens 1,8,512\n"
         HONE_OF_DECODER("  hone tune llama-3-8b --chain --tokens 1,8        # kernels of a decoding step, as they run there\n")
         "  hone tune llama-3-8b --kernels 4                 # few images: at most 4 kernels for all sizes\n"
         "  hone tune llama-3-8b --op Attention --dry-run    # what would be tuned\n"
         "  hone tune llama-3-8b --shard 3/8                 # one of eight machines that share the work\n"
         "  hone tune llama-3-8b --offline --arch sm_90a     # predict, without a GPU\n",
         declare_tune},
            {"model", "What is understood of a model: layers, operators, sizes, and which have a kernel",
             "  hone model llama-3-8b\n"
             "  hone model config.json --tp 2 --json\n"
             "  hone model                                       # known models\n",
             declare_model},
            {"list", "Winners that are known, by GPU",
             "  hone list\n"
             "  hone list RmsNorm hidden=4096 --gpu H100\n"
             "  hone list --model llama-3-8b --csv\n"
             "  hone list --compare other/cache.db               # the same kernels, ties, others\n",
             declare_list},
            {"show", "What was tried of one problem, or of a model's, the winner first",
             "  hone show RmsNorm dtype=bf16 hidden=4096 rows=16\n"
             "  hone show --model llama-3-8b Linear tokens=16\n",
             declare_show},
            {"explain", "Which kernel a call would run, and why",
             "  hone explain RmsNorm dtype=bf16 hidden=4096 rows=16\n", declare_explain},
            {"bench", "Measure winner, default and runner-up against the bandwidth floor",
             "  hone bench RmsNorm dtype=bf16 hidden=4096 rows=16\n"
             "  hone bench --model llama-3-8b --tokens 1,4096\n"
             "  hone bench --model llama-3-8b --format w4a16 --op QuantizedLinear --tokens 1 --energy\n"
             HONE_OF_DECODER("  hone bench --chain llama-3-8b --tokens 1,8 --kv 1024   # a whole step, part by part\n"),
             declare_bench},
            {"report", "What is known as one page: an HTML file that opens offline",
             "  hone report -o report.html\n"
             "  hone report RmsNorm --gpu H100 --model llama-3-8b\n"
             "  hone report --peers linear.json --peers attention.json   # beside other libraries "
             "(bench/compare_torch.py)\n",
             declare_report},
            {"export", "Write winners as one text file",
             "  hone export -o h100.json\n"
             "  hone export RmsNorm --gpu H100\n"
             "  hone export --model llama-3-8b -o llama.json\n",
             declare_export},
            {"import", "Take over winners from such a file: all or nothing",
             "  hone import h100.json\n"
             "  hone import h100.json --dry-run\n",
             declare_import},
            {"merge", "Add the trials of another cache to this one", "  hone merge other/cache.db\n",
             declare_merge},
            {"compile", "Compile ahead of time for an architecture, without a GPU",
             "  hone compile llama-3-8b --arch sm_90a\n"
             "  hone compile llama-3-8b --arch sm_90a --kernels 4   # no more images of a static problem\n",
             declare_compile},
            {"quantize", "Pack the linear layers of a checkpoint as codes of 4 or 8 bits, without a GPU",
             "  hone quantize checkpoint --format w4a16 -o packed\n"
             "  hone quantize checkpoint --format w4a16 --group 64 --zeros -o packed-64\n"
             "  hone quantize gptq-checkpoint --format w4a16 -o from-gptq   # GPTQ, AWQ and FP8 keep their "
             "codes\n",
             declare_quantize},
            {"cache", "Look after the cache: path, stats, verify, gc, clear",
             "  hone cache path\n"
             "  hone cache stats --json\n"
             "  hone cache verify\n"
             "  hone cache gc\n"
             "  hone cache clear --op RmsNorm --yes\n",
             declare_cache},
#if HONE_WITH_DECODER
            {"generate", "The text that a model continues a prompt with",
             "  hone generate FOLDER -p \"Once upon a time\"\n"
             "  hone generate FOLDER -p \"Once\" --temperature 0.8 --top-p 0.95 --seed 7 -n 200\n"
             "  hone generate FOLDER --prompt-file story.txt --format w4a16 --stats\n"
             "  hone generate llama-3-8b --made-up --prompt-tokens 512 -n 100   # how fast it would be\n",
             declare_generate},
            {"score", "How well a model foresees a text: its perplexity",
             "  hone score FOLDER text.txt\n"
             "  hone score FOLDER text.txt --format w4a16 --window 512   # what codes of 4 bits cost\n",
             declare_score},
            {"serve", "A model over HTTP, as OpenAI's clients speak: completions, chats, /health, /metrics",
             "  hone serve FOLDER                                # http://127.0.0.1:8000/v1\n"
             "  hone serve FOLDER --port 9000 --max-sequences 128 --grace 30\n"
             "  hone serve FOLDER --host 0.0.0.0 --name llama --max-requests 64\n",
             declare_serve},
#endif
            {"spaces", "Operators, their variants, tunables and constraints",
             "  hone spaces\n"
             "  hone spaces RmsNorm --fields \"dtype=bf16 hidden=4096 rows=16\" --arch sm_90a\n",
             declare_spaces},
            {"doctor", "What this machine has and what is missing",
             "  hone doctor\n"
             "  hone doctor --json\n",
             declare_doctor},
            {"completion", "A script that completes commands, options and their values in a shell",
             "  hone completion bash > hone.bash   # and `source hone.bash`, in ~/.bashrc say\n"
             "  hone completion zsh > _hone        # in a folder of $fpath\n"
             "  hone completion fish > hone.fish   # in ~/.config/fish/completions\n",
             declare_completion},
            {"manual", "The man page, hone.1", "  hone manual > hone.1               # and `man ./hone.1`\n",
             declare_manual},
    };
    return list;
}

}  // namespace hone::cli
