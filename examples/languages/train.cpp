// Three models trained from their seeds: an MLP on a cubic, a small GPT on a verse, and a classifier of handwritten digits.
//
// The programs beside this one do the same in Rust, C and Python. Each prints the bits of the last loss and the FNV-1a hash of
// all parameters, which are equal in the four languages.
//
//   c++ -std=c++17 train.cpp $(pkg-config --cflags --libs selvedge) -o train && ./train data/digits/digits.npz

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <selvedge.hpp>

using selvedge::Tensor;
namespace nn = selvedge::nn;

static const std::string verse = "Over and under, the shuttle goes through;\n"
                                 "over and under, the green and the blue.\n"
                                 "Under and over, the edge holds it tight:\n"
                                 "the selvedge is finished and never unravels.\n";

/// Prints the line of a model: the bits of its last loss, and the FNV-1a hash of its parameters' bytes in their order.
template <class Model>
static void print_line(const char *title, float loss, const Model &model)
{
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::string &name : model.parameter_names())
        for (const std::uint8_t byte : model.parameter(name).tensor().to_bytes())
            hash = (hash ^ byte) * 0x100000001b3;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &loss, sizeof bits);
    std::printf("%s: loss %08" PRIx32 ", parameters %016" PRIx64 "\n", title, bits, hash);
}

/// Fits y = x³ - x at 65 points by 100 steps on all of them.
static void mlp()
{
    // Multiples of 1/32, whose cubes are exact.
    const Tensor input = Tensor::arange<float>(-32, 33).reshape({65, 1}) / 32;
    const Tensor target = input * input * input - input;

    nn::Sequential model(selvedge::Device::cpu(), 4);
    model.linear(1, 32).activation(nn::Activation::Tanh);
    model.linear(32, 32).activation(nn::Activation::Tanh).linear(32, 1);
    const auto optimizer = nn::Optimizer::adamw(model, 0.01);

    float last = 0;
    for (int step = 0; step < 100; step++)
        last = model.train_step(optimizer, nn::Loss::Mse, input, target).item<float>();
    print_line("mlp", last, model);
}

/// Trains a transformer of two blocks on the verse's bytes for 12 steps.
static void gpt()
{
    sv_gpt_config config{};
    config.vocab_size = 256;
    config.context = 32;
    config.width = 32;
    config.layers = 2;
    config.heads = 4;
    config.dropout = 0.1;
    sv_gpt_trainer_options options = nn::GptTrainer::defaults();
    options.steps = 12;
    options.warmup_steps = 3;
    options.batch = 4;
    options.learning_rate = 3e-3;
    options.min_learning_rate = 3e-4;
    options.seed = 2;
    const nn::GptTrainer trainer(config, verse + verse + verse + verse, nn::Tokenizer::bytes(), options);
    const double last = trainer.run(12).loss;
    print_line("gpt", static_cast<float>(last), trainer.model());
}

/// Trains on images of 8 x 8 pixels in two epochs of 28 batches, in a new order each, with dropout.
static void digits(const std::string &path)
{
    const Tensor images = Tensor::read_npz(path, "images").cast<float>().flatten(1, -1) / 16;
    const Tensor labels = Tensor::read_npz(path, "labels").cast<std::int64_t>();

    // The model's generator draws the weights and then the dropout, another one the orders.
    selvedge::Generator orders(8);
    nn::Sequential model(selvedge::Device::cpu(), 7);
    model.linear(64, 32).activation(nn::Activation::Relu).dropout(0.1).linear(32, 10);
    const auto optimizer = nn::Optimizer::adamw(model, 0.005);

    // The steps of train_step(), one by one.
    float last = 0;
    for (int epoch = 0; epoch < 2; epoch++) {
        const Tensor order = orders.permutation(labels.count());
        for (std::size_t at = 0; at < 28; at++) {
            const Tensor batch = order.narrow(0, 64 * at, 64);
            const nn::Variable pixels(images.index_select(0, batch));
            const nn::Variable loss = model.forward(pixels).loss(nn::Loss::CrossEntropy, labels.index_select(0, batch));
            optimizer.zero_grad();
            loss.backward();
            optimizer.step();
            last = loss.item<float>();
        }
    }
    print_line("digits", last, model);
}

int main(int argc, char **argv)
try {
    mlp();
    gpt();
    digits(argc > 1 ? argv[1] : "data/digits/digits.npz");
    return 0;
} catch (const selvedge::Error &error) {
    std::cerr << error << "\n";
    return 1;
}
