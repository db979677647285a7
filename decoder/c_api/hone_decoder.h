/* Hone's decoder in C: the texts that a model of a Hugging Face folder continues, one or many at a time.
 *
 *   hone_decoder* decoder;
 *   hone_decoder_text* text;
 *   if (hone_decoder_create("models/llama", NULL, &decoder) != HONE_OK) puts(hone_decoder_last_error());
 *   hone_decoder_request request = HONE_DECODER_REQUEST_INIT;
 *   request.prompt = "Once upon a time";
 *   request.prompt_bytes = strlen(request.prompt);
 *   hone_decoder_submit(decoder, &request, &text);
 *   hone_decoder_piece piece = HONE_DECODER_PIECE_INIT;
 *   while (piece.end == HONE_DECODER_GOES_ON && hone_decoder_next(text, 1000, &piece) == HONE_OK)
 *       fwrite(piece.text, 1, piece.text_bytes, stdout);
 *   hone_decoder_text_destroy(text);
 *   hone_decoder_destroy(decoder);
 *
 * A library of its own, libhone_decoder.so, which works beside libhone.so and without it; statuses and what
 * structs begin with are those of hone.h. Every function may be called from any thread. A decoder may be used
 * by many threads at once, a text by one that calls hone_decoder_next() and others that call
 * hone_decoder_cancel(); neither while or after it is destroyed. Texts that are in the making at the same
 * time are computed together. No exception leaves the library, and no failed allocation ends the process. A
 * child of fork() must make its own decoder: those it inherited answer HONE_FORKED, and destroying them frees
 * nothing. The CUDA contexts of the caller's threads stay as they are.
 */
#ifndef HONE_DECODER_H
#define HONE_DECODER_H

#include "hone.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_decoder hone_decoder; /* a model on a GPU, and the thread that computes its texts */
typedef struct hone_decoder_text hone_decoder_text; /* a text in the making; its decoder lives as long */

/* "0.1.0" */
HONE_API const char* hone_decoder_version(void);

/* What the last call of this library by this thread that did not return HONE_OK had to say: what is wrong,
 * what is allowed, and what to do. Valid until this thread's next such call; "" when there was none. */
HONE_API const char* hone_decoder_last_error(void);

typedef struct hone_decoder_options {
    uint32_t struct_size;
    uint32_t flags;        /* HONE_NO_CACHE */
    int32_t device;        /* as the CUDA driver counts, that is, after CUDA_VISIBLE_DEVICES */
    int32_t max_sequences; /* texts that are computed together, 1 to 1024; others wait for their turn */
    int64_t max_context; /* tokens of a text, prompt included; 0: as many as the model knows, at most 8192 */
    int64_t max_step_tokens; /* tokens that a step computes, max_sequences to 65536 */
    double memory_share;     /* of the GPU's free memory, for keys and values at most; above 0, to 1 */
    const char* format; /* "w4a16", "w8a16", "w8a8", "fp8": codes are made of the weights; NULL: none are */
    int64_t group;      /* with a format: columns that share a scale; -1: what is usual */
    int32_t zeros;      /* 0 or 1; with w4a16: zero points */
    int32_t lm_head;    /* 0 or 1; with a format: the language head, too */
    const char* cache_file; /* tuning results and images; NULL: HONE_CACHE, else the user's cache folder */
    /* Gets one sentence when something only degrades, on a thread of the library. It must not call Hone. May
     * be called until the decoder and its last text are destroyed. NULL: a line on stderr. */
    void (*on_warning)(void* user, const char* text);
    void* user;           /* handed to on_warning */
    const char* kv_cache; /* "fp8": keys and values are codes of 8 bits, half as many bytes; NULL or "same":
                             numbers of the model's dtype */
} hone_decoder_options;
#define HONE_DECODER_OPTIONS_INIT \
    { sizeof(hone_decoder_options), 0, 0, 16, 0, 2048, 0.9, NULL, -1, 0, 0, NULL, NULL, NULL, NULL }
HONE_API hone_status hone_decoder_options_init(hone_decoder_options* options, size_t struct_size);

/* Reads the folder (config.json, safetensors, a tokenizer) and brings its weights to the GPU; compiles what
 * is not in the cache. Returns when the first text can begin. `options` may be NULL. */
HONE_API hone_status hone_decoder_create(const char* folder, const hone_decoder_options* options,
                                         hone_decoder** decoder);
/* NULL is allowed. Its texts go on: the GPU's memory is given back with the last of them. */
HONE_API void hone_decoder_destroy(hone_decoder* decoder);

/* Now; sizes never change. */
typedef struct hone_decoder_state {
    uint32_t struct_size;
    uint32_t reserved;
    int64_t max_context; /* tokens of a text, prompt included */
    int64_t vocabulary;  /* ids are below it */
    int64_t running;     /* texts that take part in steps */
    int64_t waiting;     /* texts that do not yet, or have given way */
    int64_t pages;       /* of keys and values */
    int64_t pages_used;
    uint64_t new_tokens;    /* since the decoder was created */
    uint64_t shared_tokens; /* of prompts, found in pages that others had filled */
} hone_decoder_state;
#define HONE_DECODER_STATE_INIT \
    { sizeof(hone_decoder_state), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
HONE_API hone_status hone_decoder_state_init(hone_decoder_state* state, size_t struct_size);
HONE_API hone_status hone_decoder_read_state(const hone_decoder* decoder, hone_decoder_state* state);

enum {
    /* The text goes on behind the model's end token. */
    HONE_DECODER_IGNORE_END = 1,
    /* What a prompt spells like a special token, "<|end_of_text|>", is plain text: for prompts of others. */
    HONE_DECODER_PLAIN_PROMPT = 2,
    /* Nothing is put around a prompt, such as the token that begins a text. */
    HONE_DECODER_BARE_PROMPT = 4,
    /* The prompt is of hone_decoder_render_chat(): nothing is put around it, and the end of the answer's turn
     * ends the text. Neither with HONE_DECODER_PLAIN_PROMPT nor with prompt_ids. */
    HONE_DECODER_CHAT = 8,
    /* Of hone_decoder_render_chat_with() alone: a conversation is answered without thoughts in front, where
     * its template reads enable_thinking, as Qwen3's does; of others it changes nothing. */
    HONE_DECODER_NO_THINKING = 16,
    /* hone_decoder_read_log_probabilities() has those of the text's tokens. */
    HONE_DECODER_LOG_PROBABILITIES = 32,
    /* And those of the prompt's: with HONE_DECODER_LOG_PROBABILITIES. All of the prompt is computed for it,
     * whatever of it others have computed. */
    HONE_DECODER_SCORE_PROMPT = 64
};

/* The ids of a text in UTF-8. Writes at most `capacity` of them into `ids` (NULL when capacity is 0); `count`
 * gets how many there are. flags: HONE_DECODER_PLAIN_PROMPT, HONE_DECODER_BARE_PROMPT. */
HONE_API hone_status hone_decoder_encode(const hone_decoder* decoder, const char* text, size_t text_bytes,
                                         uint32_t flags, int32_t* ids, size_t capacity, size_t* count);
/* The text of ids, without special tokens. Writes at most `capacity` bytes with the final 0 into `text` (NULL
 * when capacity is 0); `length` gets the whole text's bytes without it. */
HONE_API hone_status hone_decoder_decode(const hone_decoder* decoder, const int32_t* ids, size_t count,
                                         char* text, size_t capacity, size_t* length);

/* The text behind which a model answers a conversation, as its folder's chat template has it: `count`
 * messages, oldest first, each with a role ("system", "user" or "assistant") and a content, in UTF-8 with a
 * final 0. What a message spells like a special token counts as one, as in transformers. HONE_BAD_ARGUMENT:
 * the folder has no chat template, or one that cannot be read; another role, or a conversation that the
 * template refuses. Writes at most `capacity` bytes with the final 0 into `text` (NULL when capacity is 0);
 * `length` gets the whole text's bytes without it. */
HONE_API hone_status hone_decoder_render_chat(const hone_decoder* decoder, const char* const* roles,
                                              const char* const* contents, size_t count, char* text,
                                              size_t capacity, size_t* length);
/* The same with flags: HONE_DECODER_NO_THINKING. */
HONE_API hone_status hone_decoder_render_chat_with(const hone_decoder* decoder, const char* const* roles,
                                                   const char* const* contents, size_t count, uint32_t flags,
                                                   char* text, size_t capacity, size_t* length);

/* Nothing that it points to is used after hone_decoder_submit(). */
typedef struct hone_decoder_request {
    uint32_t struct_size;
    uint32_t flags;      /* HONE_DECODER_IGNORE_END, _PLAIN_PROMPT, _BARE_PROMPT, _CHAT, _LOG_PROBABILITIES,
                            _SCORE_PROMPT */
    const char* prompt;  /* UTF-8; NULL: prompt_ids */
    size_t prompt_bytes; /* without a final 0 */
    const int32_t* prompt_ids; /* taken as they are; NULL: prompt */
    size_t prompt_id_count;
    int64_t max_tokens; /* new ones at most; 0: until the context is full */
    float temperature;  /* from 0, which takes the likeliest token, to 100 */
    int32_t top_k;      /* of the likeliest so many; 0: of all */
    float top_p;        /* of the likeliest with this share, above 0, to 1 */
    float min_p;        /* of those at least so likely as a share of the likeliest, 0 to 1 */
    int64_t seed;       /* the same seed draws the same text */
    const char* const*
        stops;         /* the text ends before the first of them; each of 1 to 4096 bytes with a final 0 */
    size_t stop_count; /* up to 64 */
    const int32_t* end_ids; /* tokens that end the text and are no part of it, beside the model's */
    size_t end_id_count;    /* up to 64 */
    int32_t likeliest;      /* tokens whose log probabilities stand beside each one's, 0 to 20 */
    int32_t reserved;
} hone_decoder_request;
#define HONE_DECODER_REQUEST_INIT \
    { sizeof(hone_decoder_request), 0, NULL, 0, NULL, 0, 128, 0.0f, 0, 1.0f, 0.0f, 0, NULL, 0, NULL, 0, 0, 0 }
HONE_API hone_status hone_decoder_request_init(hone_decoder_request* request, size_t struct_size);

/* Does not wait: the text grows while its caller does something else. */
HONE_API hone_status hone_decoder_submit(const hone_decoder* decoder, const hone_decoder_request* request,
                                         hone_decoder_text** text);

typedef enum hone_decoder_end {
    HONE_DECODER_GOES_ON = 0,
    HONE_DECODER_END_TOKEN = 1, /* the model ended it */
    HONE_DECODER_LENGTH = 2,    /* max_tokens, or the context is full */
    HONE_DECODER_STOP = 3,      /* one of `stops` was found */
    HONE_DECODER_CANCELLED = 4
} hone_decoder_end;

/* What of a text came since it was last asked for: whole characters, and less than what is known where that
 * may be the beginning of a stop. Its memory is the text's, until the next hone_decoder_next() of that text.
 */
typedef struct hone_decoder_piece {
    uint32_t struct_size;
    int32_t end;      /* hone_decoder_end */
    const char* text; /* UTF-8, with a final 0 */
    size_t text_bytes;
    const int32_t* ids; /* the tokens, the one that ended the text included */
    size_t id_count;
} hone_decoder_piece;
#define HONE_DECODER_PIECE_INIT \
    { sizeof(hone_decoder_piece), HONE_DECODER_GOES_ON, NULL, 0, NULL, 0 }
HONE_API hone_status hone_decoder_piece_init(hone_decoder_piece* piece, size_t struct_size);

/* Waits for tokens, for at most `timeout_ms` (0: not at all, to 86400000, a day); without any, the piece is
 * empty and HONE_DECODER_GOES_ON. After the end, empty pieces say so again. HONE_FAILED: the GPU or the
 * driver failed, no token follows. */
HONE_API hone_status hone_decoder_next(hone_decoder_text* text, int64_t timeout_ms,
                                       hone_decoder_piece* piece);

/* What the model gives tokens, before temperature and filters: natural logarithms; NaN where its logits are
 * not all numbers. Its memory is the text's, until the next hone_decoder_next() of that text. */
typedef struct hone_decoder_log_probabilities {
    uint32_t struct_size;
    int32_t likeliest;            /* beside each token: what was asked for, or all that there are */
    size_t count;                 /* of tokens; 0 where nobody has asked */
    const double* of_tokens;      /* [count] */
    const int32_t* likeliest_ids; /* [count, likeliest], the likeliest first; -1 where there is none */
    const double* of_likeliest;   /* [count, likeliest] */
} hone_decoder_log_probabilities;
#define HONE_DECODER_LOG_PROBABILITIES_INIT \
    { sizeof(hone_decoder_log_probabilities), 0, 0, NULL, NULL, NULL }
HONE_API hone_status hone_decoder_log_probabilities_init(hone_decoder_log_probabilities* found,
                                                         size_t struct_size);

/* Of each of the ids of the last piece; with `of_prompt` 1, not 0, of the prompt's tokens but the first, once
 * a piece has ids. By who calls hone_decoder_next(). */
HONE_API hone_status hone_decoder_read_log_probabilities(const hone_decoder_text* text, int32_t of_prompt,
                                                         hone_decoder_log_probabilities* found);

/* Whoever waits for the text is woken; it ends as HONE_DECODER_CANCELLED unless it has ended. */
HONE_API hone_status hone_decoder_cancel(hone_decoder_text* text);
/* NULL is allowed. Cancels what has not ended. */
HONE_API void hone_decoder_text_destroy(hone_decoder_text* text);

#ifdef __cplusplus
}
#endif

#endif
