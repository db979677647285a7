/* A C11 program that uses all of libhone_decoder.so, on the fake driver, whose kernels compute nothing: each
 * token that is drawn is 0. Prints what does not hold and ends with 1. */
#include <hone_decoder.h>

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "%s:%d: %s\n    last error: %s\n", __FILE__, __LINE__, #condition, \
                    hone_decoder_last_error());                                                \
            ++failures;                                                                        \
        }                                                                                      \
    } while (0)

#define CHECK_REFUSED(call, words)                               \
    do {                                                         \
        CHECK((call) == HONE_BAD_ARGUMENT);                      \
        CHECK(strstr(hone_decoder_last_error(), words) != NULL); \
    } while (0)

static hone_decoder_request usual_request(void) {
    hone_decoder_request request = HONE_DECODER_REQUEST_INIT;
    request.prompt = "It is a truth";
    request.prompt_bytes = strlen(request.prompt);
    request.max_tokens = 5;
    return request;
}

/* How a text ended; its tokens are counted. */
static int32_t end_of(hone_decoder_text* text, size_t* tokens, size_t* bytes) {
    hone_decoder_piece piece = HONE_DECODER_PIECE_INIT;
    *tokens = *bytes = 0;
    while (piece.end == HONE_DECODER_GOES_ON) {
        CHECK(hone_decoder_next(text, 10000, &piece) == HONE_OK);
        CHECK(strlen(piece.text) == piece.text_bytes);
        *tokens += piece.id_count;
        *bytes += piece.text_bytes;
    }
    return piece.end;
}

static void check_a_text(hone_decoder* decoder) {
    const hone_decoder_request request = usual_request();
    hone_decoder_text* text = NULL;
    size_t tokens, bytes;
    CHECK(hone_decoder_submit(decoder, &request, &text) == HONE_OK);
    CHECK(end_of(text, &tokens, &bytes) == HONE_DECODER_LENGTH);
    CHECK(tokens == 5);
    hone_decoder_piece piece = HONE_DECODER_PIECE_INIT;
    CHECK(hone_decoder_next(text, 0, &piece) == HONE_OK);
    CHECK(piece.end == HONE_DECODER_LENGTH && piece.id_count == 0 && piece.text_bytes == 0);
    CHECK_REFUSED(hone_decoder_next(text, -1, &piece), "timeout_ms is -1; allowed: 0 to 86400000");
    CHECK(hone_decoder_next(text, 0, NULL) == HONE_NULL_POINTER);
    piece.struct_size = 4;
    CHECK(hone_decoder_next(text, 0, &piece) == HONE_BAD_STRUCT);
    hone_decoder_text_destroy(text);
}

static void check_prompts_of_ids(hone_decoder* decoder) {
    const int32_t ids[] = {5, 6, 7};
    hone_decoder_request request = HONE_DECODER_REQUEST_INIT;
    request.prompt_ids = ids;
    request.prompt_id_count = 3;
    request.max_tokens = 0;
    hone_decoder_text* text = NULL;
    size_t tokens, bytes;
    CHECK(hone_decoder_submit(decoder, &request, &text) == HONE_OK);
    CHECK(end_of(text, &tokens, &bytes) == HONE_DECODER_LENGTH);
    CHECK(tokens == 256 - 3); /* until the context is full */
    hone_decoder_text_destroy(text);
    const int32_t beyond = 1024;
    request.prompt_ids = &beyond;
    request.prompt_id_count = 1;
    CHECK_REFUSED(hone_decoder_submit(decoder, &request, &text), "the prompt has the token 1024");
    CHECK(text == NULL);
    request.prompt_id_count = SIZE_MAX;
    CHECK_REFUSED(hone_decoder_submit(decoder, &request, &text),
                  "prompt_id_count is 18446744073709551615; allowed: 1 to 256, the context");
}

static void check_requests_are_refused(hone_decoder* decoder) {
    hone_decoder_text* text = NULL;
    const char* stops[] = {"", NULL};
#define CHECK_FIELD(field, value, words)                                     \
    do {                                                                     \
        hone_decoder_request request = usual_request();                      \
        request.field = value;                                               \
        CHECK_REFUSED(hone_decoder_submit(decoder, &request, &text), words); \
    } while (0)
    CHECK_FIELD(temperature, -1.0f, "temperature is -1; allowed: 0 to 100");
    CHECK_FIELD(temperature, NAN, "temperature is nan");
    CHECK_FIELD(top_p, 0.0f, "top_p is 0; allowed: above 0, to 1");
    CHECK_FIELD(min_p, 1.5f, "min_p is 1.5; allowed: 0 to 1");
    CHECK_FIELD(top_k, -1, "top_k is -1");
    CHECK_FIELD(flags, 16, "flags is 16; allowed: HONE_DECODER_IGNORE_END");
    CHECK_FIELD(max_tokens, -1, "max_tokens is -1");
    CHECK_FIELD(max_tokens, 1000, "allowed: up to the context, 256");
    CHECK_FIELD(prompt, NULL, "prompt and prompt_ids are both NULL");
    CHECK_FIELD(stop_count, 65, "stop_count is 65; allowed: 0 to 64");
    CHECK_FIELD(stop_count, 1, "stops is NULL");
    CHECK_FIELD(end_id_count, 65, "end_id_count is 65; allowed: 0 to 64");
    CHECK_FIELD(end_id_count, 1, "end_ids is NULL; allowed: as many ids as end_id_count");
    CHECK_FIELD(likeliest, 1, "likeliest is 1; allowed: 0 without HONE_DECODER_LOG_PROBABILITIES");
    CHECK_FIELD(flags, HONE_DECODER_SCORE_PROMPT,
                "flags is 64; allowed: HONE_DECODER_SCORE_PROMPT with HONE_DECODER_LOG_PROBABILITIES");
    hone_decoder_request request = usual_request();
    request.stops = stops;
    request.stop_count = 1;
    CHECK_REFUSED(hone_decoder_submit(decoder, &request, &text), "the length of stops[0] is 0");
    request = usual_request();
    request.flags = HONE_DECODER_LOG_PROBABILITIES;
    request.likeliest = 21;
    CHECK_REFUSED(hone_decoder_submit(decoder, &request, &text), "likeliest is 21; allowed: 0 to 20");
    request.likeliest = -1;
    CHECK_REFUSED(hone_decoder_submit(decoder, &request, &text), "likeliest is -1; allowed: 0 to 20");
    request.reserved = 1;
    CHECK(hone_decoder_submit(decoder, &request, &text) == HONE_BAD_STRUCT);
    request.struct_size = 3;
    CHECK(hone_decoder_submit(decoder, &request, &text) == HONE_BAD_STRUCT);
    CHECK(hone_decoder_submit(decoder, NULL, &text) == HONE_NULL_POINTER);
    CHECK(hone_decoder_submit(NULL, &request, &text) == HONE_BAD_HANDLE);
}

/* The fake GPU's logits are all alike. */
static void check_even(const hone_decoder_log_probabilities* found, int32_t likeliest) {
    CHECK(found->likeliest == likeliest);
    for (size_t i = 0; i < found->count; ++i) {
        CHECK(fabs(found->of_tokens[i] + log(1024)) < 1e-9);
        for (size_t k = 0; k < (size_t)likeliest; ++k) {
            CHECK(found->likeliest_ids[i * (size_t)likeliest + k] == (int32_t)k);
            CHECK(fabs(found->of_likeliest[i * (size_t)likeliest + k] + log(1024)) < 1e-9);
        }
    }
}

static void check_log_probabilities(hone_decoder* decoder) {
    hone_decoder_request request = usual_request();
    request.likeliest = 3;
    request.flags = HONE_DECODER_LOG_PROBABILITIES | HONE_DECODER_SCORE_PROMPT;
    hone_decoder_text* text = NULL;
    hone_decoder_piece piece = HONE_DECODER_PIECE_INIT;
    hone_decoder_log_probabilities found = HONE_DECODER_LOG_PROBABILITIES_INIT;
    size_t tokens = 0, prompt = 0;
    CHECK(hone_decoder_submit(decoder, &request, &text) == HONE_OK);
    CHECK(hone_decoder_read_log_probabilities(text, 0, &found) == HONE_OK && found.count == 0);
    while (piece.end == HONE_DECODER_GOES_ON) {
        CHECK(hone_decoder_next(text, 10000, &piece) == HONE_OK);
        CHECK(hone_decoder_read_log_probabilities(text, 0, &found) == HONE_OK);
        CHECK(found.count == piece.id_count);
        if (found.count > 0) check_even(&found, 3);
        tokens += found.count;
    }
    CHECK(tokens == 5);
    CHECK(hone_decoder_encode(decoder, request.prompt, request.prompt_bytes, 0, NULL, 0, &prompt) == HONE_OK);
    CHECK(hone_decoder_read_log_probabilities(text, 1, &found) == HONE_OK && found.count == prompt - 1);
    check_even(&found, 3);
    CHECK_REFUSED(hone_decoder_read_log_probabilities(text, 2, &found), "of_prompt is 2; allowed: 0, 1");
    CHECK(hone_decoder_read_log_probabilities(text, 0, NULL) == HONE_NULL_POINTER);
    CHECK(hone_decoder_read_log_probabilities(NULL, 0, &found) == HONE_BAD_HANDLE);
    found.struct_size = 4;
    CHECK(hone_decoder_read_log_probabilities(text, 0, &found) == HONE_BAD_STRUCT);
    hone_decoder_text_destroy(text);
}

/* Each token that is drawn is 0. A caller of an earlier header has not said what stands behind stop_count. */
static void check_end_ids(hone_decoder* decoder) {
    const int32_t ends[] = {7, 0};
    hone_decoder_request request = usual_request();
    hone_decoder_text* text = NULL;
    size_t tokens, bytes;
    request.end_ids = ends;
    request.end_id_count = 2;
    CHECK(hone_decoder_submit(decoder, &request, &text) == HONE_OK);
    CHECK(end_of(text, &tokens, &bytes) == HONE_DECODER_END_TOKEN && tokens == 1 && bytes == 0);
    hone_decoder_text_destroy(text);
    CHECK(hone_decoder_request_init(&request, offsetof(hone_decoder_request, end_ids)) == HONE_OK);
    CHECK(request.end_ids == ends); /* behind what such a caller has */
    request.prompt = "It is a truth";
    request.prompt_bytes = strlen(request.prompt);
    request.max_tokens = 5;
    CHECK(hone_decoder_submit(decoder, &request, &text) == HONE_OK);
    CHECK(end_of(text, &tokens, &bytes) == HONE_DECODER_LENGTH && tokens == 5);
    hone_decoder_text_destroy(text);
}

static void check_tokens(hone_decoder* decoder) {
    int32_t ids[64];
    size_t count = 0, length = 0;
    char text[64];
    const char* truth = "It is a truth";
    CHECK(hone_decoder_encode(decoder, truth, strlen(truth), 0, ids, 64, &count) == HONE_OK && count > 1);
    CHECK(hone_decoder_decode(decoder, ids, count, text, sizeof text, &length) == HONE_OK);
    CHECK(strcmp(text, truth) == 0 && length == strlen(truth));
    size_t bare = 0;
    CHECK(hone_decoder_encode(decoder, truth, strlen(truth), HONE_DECODER_BARE_PROMPT, NULL, 0, &bare) ==
          HONE_OK);
    CHECK(bare == count - 1); /* without <|begin_of_text|> */
    const char* end = "<|end_of_text|>";
    CHECK(hone_decoder_encode(decoder, end, strlen(end), HONE_DECODER_BARE_PROMPT, ids, 64, &count) ==
          HONE_OK);
    CHECK(count == 1);
    CHECK(hone_decoder_encode(decoder, end, strlen(end), HONE_DECODER_BARE_PROMPT | HONE_DECODER_PLAIN_PROMPT,
                              ids, 64, &count) == HONE_OK);
    CHECK(count > 1);
    CHECK(hone_decoder_decode(decoder, ids, count, text, 4, &length) == HONE_OK);
    CHECK(strcmp(text, "<|e") == 0 && length == strlen(end));
    CHECK_REFUSED(hone_decoder_encode(decoder, end, 1, HONE_DECODER_IGNORE_END, NULL, 0, &count),
                  "flags is 1");
    CHECK(hone_decoder_encode(decoder, NULL, 1, 0, NULL, 0, &count) == HONE_NULL_POINTER);
    CHECK(hone_decoder_decode(decoder, NULL, 1, NULL, 0, NULL) == HONE_NULL_POINTER);
    CHECK_REFUSED(hone_decoder_decode(decoder, ids, (size_t)-1, NULL, 0, &length),
                  "count is 18446744073709551615; allowed: 0 to 268435456");
}

/* tests/python/decoder_test.py has conversations; this model has no template for one. */
static void check_chats_are_refused(hone_decoder* decoder) {
    const char* roles[] = {"user"};
    const char* contents[] = {"Good morning"};
    size_t length = 0;
    CHECK_REFUSED(hone_decoder_render_chat(decoder, roles, contents, 1, NULL, 0, &length),
                  "no chat template");
    CHECK_REFUSED(hone_decoder_render_chat_with(decoder, roles, contents, 1, 1, NULL, 0, &length),
                  "HONE_DECODER_NO_THINKING");
    CHECK_REFUSED(hone_decoder_render_chat_with(decoder, roles, contents, 1, HONE_DECODER_NO_THINKING, NULL,
                                                0, &length),
                  "no chat template");
    CHECK(hone_decoder_render_chat(decoder, NULL, contents, 1, NULL, 0, &length) == HONE_NULL_POINTER);
    CHECK(hone_decoder_render_chat(NULL, roles, contents, 1, NULL, 0, &length) == HONE_BAD_HANDLE);
    hone_decoder_request request = HONE_DECODER_REQUEST_INIT;
    hone_decoder_text* text = NULL;
    const int32_t ids[] = {1, 2};
    request.flags = HONE_DECODER_CHAT;
    request.prompt_ids = ids;
    request.prompt_id_count = 2;
    CHECK_REFUSED(hone_decoder_submit(decoder, &request, &text), "a prompt with HONE_DECODER_CHAT");
    request.prompt_ids = NULL;
    request.prompt = "a";
    request.prompt_bytes = 1;
    request.flags = HONE_DECODER_CHAT | HONE_DECODER_PLAIN_PROMPT;
    CHECK_REFUSED(hone_decoder_submit(decoder, &request, &text), "HONE_DECODER_CHAT without");
}

static void* wait_for_news(void* text) {
    static hone_decoder_piece piece = HONE_DECODER_PIECE_INIT;
    while (piece.end == HONE_DECODER_GOES_ON && hone_decoder_next(text, 10000, &piece) == HONE_OK) continue;
    return &piece;
}

static void check_cancelling(hone_decoder* decoder) {
    hone_decoder_request request = usual_request();
    request.max_tokens = 0;
    request.flags = HONE_DECODER_IGNORE_END;
    hone_decoder_text* text = NULL;
    CHECK(hone_decoder_submit(decoder, &request, &text) == HONE_OK);
    pthread_t thread;
    void* piece = NULL;
    pthread_create(&thread, NULL, wait_for_news, text);
    CHECK(hone_decoder_cancel(text) == HONE_OK);
    pthread_join(thread, &piece);
    const int32_t end = ((hone_decoder_piece*)piece)->end;
    CHECK(end == HONE_DECODER_CANCELLED || end == HONE_DECODER_LENGTH);
    hone_decoder_text_destroy(text);
    CHECK(hone_decoder_cancel(NULL) == HONE_BAD_HANDLE);
}

static void check_state(hone_decoder* decoder) {
    hone_decoder_state state = HONE_DECODER_STATE_INIT;
    /* What was cancelled gives its pages back after the step under way. */
    for (int tries = 0; tries < 10000; ++tries) {
        CHECK(hone_decoder_read_state(decoder, &state) == HONE_OK);
        if (state.running == 0 && state.pages_used == 0) break;
        usleep(1000);
    }
    CHECK(state.max_context == 256 && state.vocabulary == 1024 && state.pages == 4 * 256 / 16);
    CHECK(state.running == 0 && state.waiting == 0 && state.pages_used == 0);
    CHECK(state.new_tokens >= 5 + 256 - 3);
    CHECK(hone_decoder_read_state(decoder, NULL) == HONE_NULL_POINTER);
}

/* A text goes on without its decoder's handle. */
static void check_a_text_outlives_its_decoder(hone_decoder* decoder) {
    const hone_decoder_request request = usual_request();
    hone_decoder_text* text = NULL;
    size_t tokens, bytes;
    CHECK(hone_decoder_submit(decoder, &request, &text) == HONE_OK);
    hone_decoder_destroy(decoder);
    CHECK(end_of(text, &tokens, &bytes) == HONE_DECODER_LENGTH && tokens == 5);
    hone_decoder_text_destroy(text);
}

static void check_a_child_is_refused(hone_decoder* decoder) {
    const pid_t child = fork();
    if (child == 0) {
        hone_decoder_state state = HONE_DECODER_STATE_INIT;
        const int refused = hone_decoder_read_state(decoder, &state) == HONE_FORKED;
        hone_decoder_destroy(decoder);
        _exit(refused ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
}

static void check_options_are_refused(void) {
    hone_decoder* decoder = NULL;
#define CHECK_OPTION(field, value, words)                                          \
    do {                                                                           \
        hone_decoder_options options = HONE_DECODER_OPTIONS_INIT;                  \
        options.flags = HONE_NO_CACHE;                                             \
        options.field = value;                                                     \
        CHECK_REFUSED(hone_decoder_create(HONE_MODEL, &options, &decoder), words); \
        CHECK(decoder == NULL);                                                    \
    } while (0)
    CHECK_OPTION(flags, 64, "flags is 64; allowed: HONE_NO_CACHE");
    CHECK_OPTION(device, -1, "device is -1; allowed: from 0");
    CHECK_OPTION(format, "w5", "format is w5; allowed: w4a16, w8a16, w8a8, fp8");
    CHECK_OPTION(group, 64, "group is 64; allowed: -1 without a format");
    CHECK_OPTION(zeros, 2, "zeros is 2; allowed: 0, 1");
    CHECK_OPTION(kv_cache, "int4", "kv_cache is int4; allowed: same, fp8");
    CHECK_OPTION(memory_share, NAN, "memory_share is nan; allowed: above 0, to 1");
    CHECK_OPTION(max_sequences, 1025, "sequences is 1025; allowed: 1 to 1024");
    CHECK_OPTION(max_context, 2000, "context is 2000; allowed: 1 to 1024");
    hone_decoder_options options = HONE_DECODER_OPTIONS_INIT;
    CHECK_REFUSED(hone_decoder_create("/nowhere", &options, &decoder), "/nowhere");
    options.device = 63;
    CHECK(hone_decoder_create(HONE_MODEL, &options, &decoder) == HONE_NO_GPU);
    options.struct_size = 1;
    CHECK(hone_decoder_create(HONE_MODEL, &options, &decoder) == HONE_BAD_STRUCT);
    CHECK(hone_decoder_create(NULL, NULL, &decoder) == HONE_NULL_POINTER);
    CHECK(hone_decoder_create(HONE_MODEL, NULL, NULL) == HONE_NULL_POINTER);
}

/* What the functions write is what the macros have. */
static void check_initializers(void) {
#define CHECK_INITIALIZER(name, macro)                              \
    do {                                                            \
        const name wanted = macro;                                  \
        name made;                                                  \
        memset(&made, 0xff, sizeof made);                           \
        CHECK(name##_init(&made, sizeof made) == HONE_OK);          \
        CHECK(memcmp(&made, &wanted, sizeof made) == 0);            \
        CHECK(name##_init(&made, 2) == HONE_BAD_STRUCT);            \
        CHECK(name##_init(NULL, sizeof made) == HONE_NULL_POINTER); \
    } while (0)
    CHECK_INITIALIZER(hone_decoder_options, HONE_DECODER_OPTIONS_INIT);
    CHECK_INITIALIZER(hone_decoder_state, HONE_DECODER_STATE_INIT);
    CHECK_INITIALIZER(hone_decoder_request, HONE_DECODER_REQUEST_INIT);
    CHECK_INITIALIZER(hone_decoder_piece, HONE_DECODER_PIECE_INIT);
    CHECK_INITIALIZER(hone_decoder_log_probabilities, HONE_DECODER_LOG_PROBABILITIES_INIT);
}

int main(void) {
    CHECK(strcmp(hone_decoder_version(), "0.1.0") == 0);
    CHECK(strcmp(hone_decoder_last_error(), "") == 0);
    check_initializers();
    check_options_are_refused();
    hone_decoder_options options = HONE_DECODER_OPTIONS_INIT;
    options.flags = HONE_NO_CACHE;
    options.max_sequences = 4;
    options.max_context = 256;
    options.max_step_tokens = 64;
    hone_decoder* decoder = NULL;
    CHECK(hone_decoder_create(HONE_MODEL, &options, &decoder) == HONE_OK);
    if (decoder == NULL) return 1;
    check_a_text(decoder);
    check_prompts_of_ids(decoder);
    check_requests_are_refused(decoder);
    check_log_probabilities(decoder);
    check_end_ids(decoder);
    check_tokens(decoder);
    check_chats_are_refused(decoder);
    check_cancelling(decoder);
    check_state(decoder);
    check_a_child_is_refused(decoder);
    check_a_text_outlives_its_decoder(decoder);
    hone_decoder_destroy(NULL);
    hone_decoder_text_destroy(NULL);
    return failures == 0 ? 0 : 1;
}
