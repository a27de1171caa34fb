/* Decoders of the folders of small models in the folder that the first argument names. The second one is a folder to write. */

#include <string.h>

#include "check.h"

/* The ids of each sequence. */
static uint32_t found[2][32];
static size_t found_counts[2];
static size_t last_step, stop_after;

static int32_t on_step(void *user, size_t step, const uint32_t *ids, size_t count)
{
    CHECK(user == found && count <= 2);
    for (size_t i = 0; i < count; i++)
        if (ids[i] != SV_NO_ID)
            found[i][found_counts[i]++] = ids[i];
    last_step = step;
    return step == stop_after ? SV_STOP : SV_CONTINUE;
}

static int32_t returns_seven(void *user, size_t step, const uint32_t *ids, size_t count)
{
    (void)user, (void)step, (void)ids, (void)count;
    return 7;
}

static void clear(void)
{
    memset(found_counts, 0, sizeof found_counts);
    stop_after = SIZE_MAX;
}

int main(int argc, char **argv)
{
    /* From reference.json of the folder: a batch of two prompts, and its continuations in which id 31 ends a sequence. */
    const uint32_t ids[] = {48, 61, 61, 106, 8, 90, 79, 90};
    const size_t lengths[] = {3, 5};
    const uint32_t first[] = {93, 93, 93, 93, 93, 93, 93, 93, 93, 93, 93, 93, 93, 93};
    const uint32_t second[] = {6, 25, 25, 83, 6, 25, 25, 93, 65, 31};
    const uint32_t whole[] = {6, 25, 25, 83, 6, 25, 25, 93, 65, 31, 31, 31, 123, 25};
    const uint32_t end_ids[] = {83};
    const int64_t batch[] = {1, 2, 3, 4, 5, 6}, shape[] = {2, 3};
    sv_decoder_options options = {.size = sizeof options, .max_new_ids = 14};
    sv_decoder decoder = NULL, again = NULL;
    sv_tensor inputs = NULL, logits = NULL, same = NULL;
    sv_tokenizer tokenizer = NULL;
    size_t rank = 0, size = 0;
    int64_t sizes[3];
    static float one[2 * 3 * 131], other[2 * 3 * 131];
    char path[4096];

    CHECK(argc == 3);
    snprintf(path, sizeof path, "%s/gpt2", argv[1]);
    OK(sv_decoder_load(path, SV_CPU, SV_DTYPE_F32, &decoder));
    OK(sv_decoder_vocab_size(decoder, &size));
    CHECK(size == 131);
    OK(sv_decoder_context(decoder, &size));
    CHECK(size == 48);
    OK(sv_decoder_parameter_count(decoder, &size));
    CHECK(size == 54576);

    clear();
    OK(sv_decoder_generate(decoder, ids, lengths, 2, &options, on_step, found));
    CHECK(last_step == 13 && found_counts[0] == 14 && found_counts[1] == 10);
    CHECK(memcmp(found[0], first, sizeof first) == 0 && memcmp(found[1], second, sizeof second) == 0);
    clear();
    options.ignores_end_ids = 1;
    OK(sv_decoder_generate(decoder, ids + 3, lengths + 1, 1, &options, on_step, found));
    CHECK(found_counts[0] == 14 && memcmp(found[0], whole, sizeof whole) == 0);
    options.end_ids = end_ids;
    options.end_id_count = 1;
    STATUS(SV_ERROR_INVALID_ARGUMENT, sv_decoder_generate(decoder, ids, lengths, 2, &options, on_step, found));
    CHECK(strstr(sv_last_error(), "options->end_ids: found 1 ids and options->ignores_end_ids") != NULL);
    clear();
    options.ignores_end_ids = 0;
    OK(sv_decoder_generate(decoder, ids + 3, lengths + 1, 1, &options, on_step, found));
    CHECK(found_counts[0] == 4 && memcmp(found[0], whole, 4 * sizeof *whole) == 0);
    clear();
    stop_after = 2;
    OK(sv_decoder_generate(decoder, ids, lengths, 2, &options, on_step, found));
    CHECK(last_step == 2 && found_counts[0] == 3 && found_counts[1] == 3);

    STATUS(SV_ERROR_INVALID_ARGUMENT, sv_decoder_generate(decoder, ids, lengths, 2, &options, returns_seven, NULL));
    CHECK(strstr(sv_last_error(), "the callback's result: found 7; wanted SV_CONTINUE or SV_STOP") != NULL);
    STATUS(SV_ERROR_INVALID_ARGUMENT, sv_decoder_generate(decoder, ids, lengths, 2, &options, NULL, NULL));
    CHECK(strstr(sv_last_error(), "callback: found NULL") != NULL);
    STATUS(SV_ERROR_INVALID_ARGUMENT, sv_decoder_generate(decoder, ids, lengths, 0, &options, on_step, found));
    CHECK(strstr(sv_last_error(), "no prompts") != NULL);

    OK(sv_tensor_from_host(batch, sizeof batch, SV_DTYPE_I64, shape, 2, SV_CPU, &inputs));
    OK(sv_decoder_logits(decoder, inputs, &logits));
    OK(sv_tensor_rank(logits, &rank));
    CHECK(rank == 3);
    OK(sv_tensor_shape(logits, sizes, 3));
    CHECK(sizes[0] == 2 && sizes[1] == 3 && sizes[2] == 131);
    snprintf(path, sizeof path, "%s/saved_by_c", argv[2]);
    OK(sv_decoder_save(decoder, path));
    OK(sv_decoder_load(path, SV_CPU, SV_DTYPE_NONE, &again));
    OK(sv_decoder_logits(again, inputs, &same));
    OK(sv_tensor_to_host(logits, one, sizeof one));
    OK(sv_tensor_to_host(same, other, sizeof other));
    CHECK(memcmp(one, other, sizeof one) == 0);

    STATUS(SV_ERROR_FILE, sv_decoder_load("/no/such/folder", SV_CPU, SV_DTYPE_NONE, &again));
    STATUS(SV_ERROR_INVALID_ARGUMENT, sv_decoder_load(path, SV_CPU, SV_DTYPE_I32, &again));
    /* The library of the tests has no tokenizers of published models. */
    STATUS(SV_ERROR_UNSUPPORTED, sv_tokenizer_load(path, &tokenizer));
    CHECK(strstr(sv_last_error(), "FEATURES=models") != NULL);
    OK(sv_release(same));
    OK(sv_release(logits));
    OK(sv_release(inputs));
    OK(sv_release(again));
    OK(sv_release(decoder));
    return 0;
}
