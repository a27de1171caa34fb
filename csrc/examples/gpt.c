/* Trains a small transformer on a short text for twenty steps, and writes a text with it: -1 is the CPU, 0 the first device.
 *
 *   cc gpt.c $(pkg-config --cflags --libs selvedge) -o gpt && ./gpt [DEVICE] */

#include <stdlib.h>
#include <string.h>

#include "try.h"

static int32_t on_step(void *user, const sv_gpt_step *step)
{
    (void)user;
    if (step->step % 5 == 0)
        printf("step %2d: loss %.3f\n", (int)step->step, step->loss);
    return SV_CONTINUE;
}

int main(int argc, char **argv)
{
    char line[] = "to be, or not to be, that is the question: ", text[20 * sizeof line] = "", written[256];
    const int32_t device = argc > 1 ? atoi(argv[1]) : SV_CPU;
    sv_gpt_config config = {.size = sizeof config, .context = 16, .width = 32, .layers = 1, .heads = 2};
    sv_gpt_trainer_options options = {.size = sizeof options};
    sv_gpt_sampling sampling = {.size = sizeof sampling, .length = 60, .temperature = 0.5, .top_k = 5, .seed = 1};
    sv_gpt_step last = {.size = sizeof last};
    sv_tokenizer tokenizer = 0;
    sv_gpt_trainer trainer = 0;
    sv_model model = 0;

    for (int copy = 0; copy < 20; copy++)
        strcat(text, line);
    TRY(sv_tokenizer_characters(text, strlen(text), &tokenizer));
    TRY(sv_tokenizer_vocab_size(tokenizer, &config.vocab_size));
    TRY(sv_gpt_trainer_defaults(&options));
    options.steps = 20;
    options.batch = 4;
    TRY(sv_gpt_trainer_create(&config, text, strlen(text), tokenizer, &options, device, &trainer));
    TRY(sv_gpt_trainer_run(trainer, options.steps, on_step, NULL, &last));

    TRY(sv_gpt_trainer_model(trainer, &model));
    TRY(sv_gpt_generate_text(model, tokenizer, "to be", &sampling, NULL, NULL, written, sizeof written, NULL));
    printf("to be%s\n", written);
    TRY(sv_release(model));
    TRY(sv_release(trainer));
    TRY(sv_release(tokenizer));
    return 0;
}
