/* Three models trained from their seeds: an MLP on a cubic, a small GPT on a verse, and a classifier of handwritten digits.
 *
 * The programs beside this one do the same in Rust, C++ and Python. Each prints the bits of the last loss and the FNV-1a hash of
 * all parameters, which are equal in the four languages.
 *
 *   cc train.c $(pkg-config --cflags --libs selvedge) -o train && ./train data/digits/digits.npz */

#include <stdlib.h>
#include <string.h>

#include "../../csrc/examples/try.h"

static const char verse[] = "Over and under, the shuttle goes through;\n"
                            "over and under, the green and the blue.\n"
                            "Under and over, the edge holds it tight:\n"
                            "the selvedge is finished and never unravels.\n";

/* Continues an FNV-1a hash with the bytes of a parameter of f32. */
static int add_parameter(sv_model model, const char *name, uint64_t *hash)
{
    sv_variable parameter = NULL;
    sv_tensor tensor = NULL;
    uint64_t count = 0;
    TRY(sv_model_parameter(model, name, &parameter));
    TRY(sv_variable_tensor(parameter, &tensor));
    TRY(sv_tensor_count(tensor, &count));
    const size_t size = (size_t)count * sizeof(float);
    unsigned char *bytes = malloc(size);
    if (bytes == NULL)
        return 1;
    TRY(sv_tensor_to_host(tensor, bytes, size));
    for (size_t at = 0; at < size; at++)
        *hash = (*hash ^ bytes[at]) * 0x100000001b3u;
    free(bytes);
    TRY(sv_release(tensor));
    TRY(sv_release(parameter));
    return 0;
}

/* Prints the line of a model: the bits of its last loss, and the FNV-1a hash of its parameters' bytes in their order. */
static int print_line(const char *title, float loss, sv_model model)
{
    char names[4096];
    size_t length = 0;
    uint64_t hash = 0xcbf29ce484222325u;
    uint32_t bits = 0;
    TRY(sv_model_parameter_names(model, names, sizeof names, &length));
    if (length >= sizeof names) {
        fprintf(stderr, "%s: the names of the parameters have %zu bytes\n", title, length);
        return 1;
    }
    for (char *name = strtok(names, "\n"); name != NULL; name = strtok(NULL, "\n"))
        if (add_parameter(model, name, &hash) != 0)
            return 1;
    memcpy(&bits, &loss, sizeof bits);
    printf("%s: loss %08lx, parameters %016llx\n", title, (unsigned long)bits, (unsigned long long)hash);
    return 0;
}

/* Trains by one batch, and writes its loss. */
static int train_step(sv_model model, sv_optimizer optimizer, int32_t kind, sv_tensor input, sv_tensor target, float *loss)
{
    sv_tensor result = NULL;
    TRY(sv_model_train_step(model, optimizer, kind, input, target, &result));
    TRY(sv_tensor_to_host(result, loss, sizeof *loss));
    TRY(sv_release(result));
    return 0;
}

/* Fits y = x^3 - x at 65 points by 100 steps on all of them. */
static int mlp(void)
{
    const int64_t shape[2] = {65, 1};
    const sv_optimizer_options options = {.size = sizeof options, .kind = SV_OPTIMIZER_ADAMW, .learning_rate = 0.01};
    float points[65], values[65], last = 0;
    sv_tensor input = NULL, target = NULL;
    sv_model model = NULL;
    sv_optimizer optimizer = NULL;

    /* Multiples of 1/32, whose cubes are exact. */
    for (int point = 0; point < 65; point++) {
        const float x = (float)(point - 32) / 32;
        points[point] = x;
        values[point] = x * x * x - x;
    }
    TRY(sv_tensor_from_host(points, sizeof points, SV_DTYPE_F32, shape, 2, SV_CPU, &input));
    TRY(sv_tensor_from_host(values, sizeof values, SV_DTYPE_F32, shape, 2, SV_CPU, &target));

    TRY(sv_model_create(SV_DTYPE_F32, SV_CPU, 4, &model));
    TRY(sv_model_add_linear(model, 1, 32, 1));
    TRY(sv_model_add_activation(model, SV_NN_TANH));
    TRY(sv_model_add_linear(model, 32, 32, 1));
    TRY(sv_model_add_activation(model, SV_NN_TANH));
    TRY(sv_model_add_linear(model, 32, 1, 1));
    TRY(sv_optimizer_create(model, &options, &optimizer));

    for (int step = 0; step < 100; step++)
        if (train_step(model, optimizer, SV_LOSS_MSE, input, target, &last) != 0)
            return 1;
    if (print_line("mlp", last, model) != 0)
        return 1;
    TRY(sv_release(optimizer));
    TRY(sv_release(model));
    TRY(sv_release(target));
    TRY(sv_release(input));
    return 0;
}

/* Trains a transformer of two blocks on the verse's bytes for 12 steps. */
static int gpt(void)
{
    const sv_gpt_config config = {
        .size = sizeof config, .vocab_size = 256, .context = 32, .width = 32, .layers = 2, .heads = 4, .dropout = 0.1};
    sv_gpt_trainer_options options = {.size = sizeof options};
    sv_gpt_step last = {.size = sizeof last};
    char text[4 * sizeof verse] = "";
    sv_tokenizer tokenizer = NULL;
    sv_gpt_trainer trainer = NULL;
    sv_model model = NULL;

    for (int copy = 0; copy < 4; copy++)
        strcat(text, verse);
    TRY(sv_gpt_trainer_defaults(&options));
    options.steps = 12;
    options.warmup_steps = 3;
    options.batch = 4;
    options.learning_rate = 3e-3;
    options.min_learning_rate = 3e-4;
    options.seed = 2;
    TRY(sv_tokenizer_bytes(&tokenizer));
    TRY(sv_gpt_trainer_create(&config, text, strlen(text), tokenizer, &options, SV_CPU, &trainer));
    TRY(sv_gpt_trainer_run(trainer, 12, NULL, NULL, &last));
    TRY(sv_gpt_trainer_model(trainer, &model));
    if (print_line("gpt", (float)last.loss, model) != 0)
        return 1;
    TRY(sv_release(model));
    TRY(sv_release(trainer));
    TRY(sv_release(tokenizer));
    return 0;
}

/* Reads the images, as rows of 64 pixels from 0 to 1, and their digits. */
static int read_digits(const char *path, sv_tensor *images, sv_tensor *labels)
{
    sv_tensor stored = NULL, pixels = NULL, rows = NULL, stored_labels = NULL;
    TRY(sv_tensor_read_npz(path, "images", SV_CPU, &stored));
    TRY(sv_tensor_cast(stored, SV_DTYPE_F32, &pixels));
    TRY(sv_tensor_flatten(pixels, 1, -1, &rows));
    const sv_operand operands[2] = {sv_operand_of(rows), sv_operand_real(16)};
    TRY(sv_operation(SV_OP_DIV, operands, 2, images));
    TRY(sv_tensor_read_npz(path, "labels", SV_CPU, &stored_labels));
    TRY(sv_tensor_cast(stored_labels, SV_DTYPE_I64, labels));
    TRY(sv_release(stored_labels));
    TRY(sv_release(rows));
    TRY(sv_release(pixels));
    TRY(sv_release(stored));
    return 0;
}

/* Trains on images of 8 x 8 pixels in two epochs of 28 batches, in a new order each, with dropout. */
static int digits(const char *path)
{
    const sv_optimizer_options options = {.size = sizeof options, .kind = SV_OPTIMIZER_ADAMW, .learning_rate = 0.005};
    float last = 0;
    uint64_t count = 0;
    sv_tensor images = NULL, labels = NULL, order = NULL, batch = NULL, pixels = NULL, wanted = NULL;
    sv_model model = NULL;
    sv_optimizer optimizer = NULL;
    sv_generator orders = NULL;

    if (read_digits(path, &images, &labels) != 0)
        return 1;
    TRY(sv_tensor_count(labels, &count));

    /* The model's generator draws the weights and then the dropout, another one the orders. */
    TRY(sv_generator_create(8, &orders));
    TRY(sv_model_create(SV_DTYPE_F32, SV_CPU, 7, &model));
    TRY(sv_model_add_linear(model, 64, 32, 1));
    TRY(sv_model_add_activation(model, SV_NN_RELU));
    TRY(sv_model_add_dropout(model, 0.1));
    TRY(sv_model_add_linear(model, 32, 10, 1));
    TRY(sv_optimizer_create(model, &options, &optimizer));

    for (int epoch = 0; epoch < 2; epoch++) {
        TRY(sv_permutation(orders, (size_t)count, SV_CPU, &order));
        for (size_t at = 0; at < 28; at++) {
            TRY(sv_tensor_narrow(order, 0, 64 * at, 64, &batch));
            TRY(sv_tensor_index_select(images, 0, batch, &pixels));
            TRY(sv_tensor_index_select(labels, 0, batch, &wanted));
            if (train_step(model, optimizer, SV_LOSS_CROSS_ENTROPY, pixels, wanted, &last) != 0)
                return 1;
            TRY(sv_release(wanted));
            TRY(sv_release(pixels));
            TRY(sv_release(batch));
        }
        TRY(sv_release(order));
    }
    if (print_line("digits", last, model) != 0)
        return 1;
    TRY(sv_release(optimizer));
    TRY(sv_release(model));
    TRY(sv_release(orders));
    TRY(sv_release(labels));
    TRY(sv_release(images));
    return 0;
}

int main(int argc, char **argv)
{
    return mlp() != 0 || gpt() != 0 || digits(argc > 1 ? argv[1] : "data/digits/digits.npz") != 0;
}
