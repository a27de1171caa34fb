// Models, losses and optimizers of the C++ layer.

#ifndef SELVEDGE_TESTS_CLASSES_NN_HPP
#define SELVEDGE_TESTS_CLASSES_NN_HPP

#include "classes_check.hpp"

#include <cmath>
#include <filesystem>

namespace {

inline nn::Sequential xor_model()
{
    nn::Sequential model(Device::cpu(), 3);
    model.linear(2, 8).activation(nn::Activation::Tanh).linear(8, 1);
    return model;
}

void models_are_trained_and_stored(const std::string &folder)
{
    const Tensor x = tensor({{0.0f, 0.0f}, {0.0f, 1.0f}, {1.0f, 0.0f}, {1.0f, 1.0f}});
    const Tensor y = tensor({{0.0f}, {1.0f}, {1.0f}, {0.0f}});
    nn::Sequential model = xor_model();
    CHECK(model.parameter_names() == List<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"});
    const nn::Optimizer optimizer = nn::Optimizer::adam(model, 0.1);
    const auto loss = nn::Loss::BinaryCrossEntropyWithLogits;
    for (int step = 0; step < 100; step++)
        model.train_step(optimizer, loss, x, y);
    CHECK(model(x).gt(0).equal(y.gt(0.5)));

    // The same step by its parts.
    nn::Sequential one = xor_model(), other = xor_model();
    const nn::Optimizer first = nn::Optimizer::sgd(one, 0.5, 0.9), second = nn::Optimizer::sgd(other, 0.5, 0.9);
    const Tensor found = one.train_step(first, loss, x, y);
    second.zero_grad();
    const nn::Variable variable = other.forward(nn::Variable(x)).loss(loss, y);
    variable.backward();
    const nn::Variable weight = other.parameter("0.weight");
    CHECK(weight.grad().shape() == Shape(2, 8));
    second.step();
    CHECK(found.equal(variable.tensor()) && one(x).equal(other(x)));
    FAILS(SV_ERROR_BACKWARD, (variable.backward(), 0));
    weight.zero_grad();
    CHECK(!weight.grad().defined());
    second.set_learning_rate(0);
    FAILS(SV_ERROR_INVALID_ARGUMENT, (second.set_learning_rate(-1), 0));
    CHECK(nn::Optimizer::adamw(one, 0.1).defined());

    // The losses of XOR fall with each optimizer and a schedule.
    const auto learns = [&](nn::Sequential of, const nn::Optimizer &by, const nn::LearningRateSchedule &rates) {
        const float before = of.forward(nn::Variable(x)).loss(loss, y).tensor().item<float>();
        for (int step = 0; step < 60; step++) {
            by.set_learning_rate(rates(static_cast<std::uint64_t>(step)));
            of.train_step(by, loss, x, y);
        }
        return of.forward(nn::Variable(x)).loss(loss, y).tensor().item<float>() < before / 2;
    };
    nn::Sequential of_lion = xor_model(), of_adafactor = xor_model(), of_nesterov = xor_model(), of_muon = xor_model();
    CHECK(learns(of_lion, nn::Optimizer::lion(of_lion, 0.02, 0.01), nn::LearningRateSchedule::step(0.05, 20, 0.5)));
    CHECK(learns(of_adafactor, nn::Optimizer::adafactor(of_adafactor), nn::LearningRateSchedule::one_cycle(1, 60)));
    CHECK(learns(of_nesterov, nn::Optimizer::sgd(of_nesterov, 0.5, 0.9, true), nn::LearningRateSchedule::step(0.5, 60)));
    CHECK(learns(of_muon, nn::Optimizer::muon(of_muon, 0.1, 0.02), nn::LearningRateSchedule::step(0.1, 20, 0.5)));
    FAILS(SV_ERROR_INVALID_ARGUMENT, nn::Optimizer::muon(of_muon, 0.1, 0));
    CHECK(nn::LearningRateSchedule::one_cycle(2, 100)(29) == 2 && nn::LearningRateSchedule::step(1, 5, 0.5)(12) == 0.25);
    FAILS(SV_ERROR_INVALID_ARGUMENT, nn::LearningRateSchedule::step(1, 0)(0));
    FAILS(SV_ERROR_INVALID_ARGUMENT, nn::Optimizer::sgd(one, 0.1, 0, true));

    FAILS(SV_ERROR_INVALID_ARGUMENT, nn::Optimizer::adam(one, 0));
    FAILS(SV_ERROR_INVALID_ARGUMENT, nn::Optimizer::adam(nn::Sequential(Device::cpu()), 0.1));
    FAILS(SV_ERROR_INVALID_ARGUMENT, one.linear(1, 1));
    FAILS(SV_ERROR_INVALID_ARGUMENT, one.train_step(second, loss, x, y));
    FAILS(SV_ERROR_INVALID_ARGUMENT, nn::Sequential(Device::cpu(), 0, DType::I32));

    const std::string path = folder + "/model.safetensors";
    model.save(path);
    one.load(path);
    CHECK(one(x).equal(model(x)));
    std::remove(path.c_str());
    FAILS(SV_ERROR_FILE, (one.load(path), 0));
    FAILS(SV_ERROR_INVALID_ARGUMENT, one.parameter("3.weight"));
    FAILS(SV_ERROR_INVALID_ARGUMENT, one(tensor({{1.0f}})));

    nn::Sequential text(Device::cpu());
    text.embedding(5, 4).layer_norm({4}).dropout(0.5).linear(4, 3, false);
    const Tensor tokens = tensor({std::int64_t{4}, std::int64_t{0}}), labels = tensor({std::int64_t{2}, std::int64_t{1}});
    CHECK(!text(tokens).equal(text(tokens)));
    text.eval();
    CHECK(text(tokens).equal(text(tokens)));
    text.train();
    CHECK(text.forward(nn::Variable(tokens)).loss(nn::Loss::CrossEntropy, labels).tensor().item<float>() > 0);
    FAILS(SV_ERROR_INDEX_OUT_OF_RANGE, text.forward(nn::Variable(tokens)).loss(nn::Loss::CrossEntropy, labels + 1));
    // A step continues from the states of a file, and gradients are clipped.
    const nn::Sequential left = xor_model(), right = xor_model();
    const nn::Optimizer of_left = nn::Optimizer::adam(left, 0.1), of_right = nn::Optimizer::adam(right, 0.5);
    const std::string states = folder + "/optimizer.safetensors";
    left.train_step(of_left, loss, x, y);
    right.train_step(of_right, loss, x, y);
    of_left.save(states);
    of_right.load(states);
    left.save(path);
    right.load(path);
    left.train_step(of_left, loss, x, y);
    right.train_step(of_right, loss, x, y);
    CHECK(left(x).equal(right(x)));
    FAILS(SV_ERROR_INVALID_ARGUMENT, (nn::Optimizer::sgd(left, 0.1).load(states), 0));
    const float norm = of_left.clip_grad_norm(1e-3).item<float>();
    CHECK(norm > 1e-3f && of_left.clip_grad_norm(1).item<float>() < 1.1e-3f);
    FAILS(SV_ERROR_INVALID_ARGUMENT, of_left.clip_grad_norm(-1));
    std::remove(states.c_str());
    std::remove(path.c_str());

    const nn::Variable leaf(tensor({1.0, 2.0}), true);
    leaf.loss(nn::Loss::Mse, tensor({0.0, 0.0})).backward();
    CHECK(leaf.grad().to_vector<double>() == List<double>{1, 2});
}

void transformers_are_trained_stored_and_write(const std::string &folder)
{
    std::string text;
    for (int copy = 0; copy < 12; copy++)
        text += "to be, or not to be; \u00e9t\u00e9. ";
    const nn::Tokenizer tokenizer = nn::Tokenizer::characters(text), bytes = nn::Tokenizer::bytes();
    CHECK(tokenizer.decode(tokenizer.encode("to \u00e9t")) == "to \u00e9t" && tokenizer.vocab_size() == 11);
    CHECK(nn::Tokenizer::from_json(tokenizer.to_json()).encode("be") == tokenizer.encode("be"));
    CHECK(bytes.vocab_size() == 256 && bytes.encode("\u00e9") == List<std::uint32_t>{0xc3, 0xa9});
    FAILS(SV_ERROR_INVALID_ARGUMENT, tokenizer.encode("z"));
    FAILS(SV_ERROR_INVALID_ARGUMENT, nn::Tokenizer::from_json("{"));

    sv_gpt_config config{};
    config.vocab_size = 256;
    config.context = config.width = 8;
    config.layers = 1;
    config.heads = 2;
    config.dropout = 0.25;
    config.compute_dtype = SV_DTYPE_F64;
    FAILS(SV_ERROR_INVALID_ARGUMENT, nn::Gpt(config));
    config.compute_dtype = SV_DTYPE_BF16;
    CHECK(nn::Gpt(config).config().compute_dtype == SV_DTYPE_BF16);
    config.compute_dtype = SV_DTYPE_NONE;
    const nn::Gpt model(config);
    const sv_gpt_config found = model.config();
    CHECK(found.context == 8 && found.norm_eps == 1e-5 && found.activation == SV_NN_GELU_TANH && !found.untied_head);
    const Tensor ids = tensor({{std::int64_t{1}, std::int64_t{2}, std::int64_t{3}}});
    CHECK(model(ids).shape() == Shape(1, 3, 256) && model.parameter_names()[0] == "transformer.wte.weight");
    const nn::Variable loss = model.loss(ids, ids + 1);
    loss.backward();
    CHECK(std::abs(loss.tensor().item<float>() - std::log(256.0f)) < 0.5f);
    CHECK(nn::Optimizer::adamw(model, 0.1).clip_grad_norm(1).item<float>() > 0);
    const std::string path = folder + "/gpt.safetensors";
    model.save(path);
    const nn::Gpt copy(config, Device::cpu(), 9);
    copy.load(path);
    std::remove(path.c_str());
    nn::Sampling sampling;
    sampling.length = 12;
    sampling.top_k = 9;
    sampling.top_p = 0.9;
    // Generation has no dropout, and leaves the training mode as it was.
    CHECK(model.generate({1, 2}, sampling) == copy.generate({1, 2}, sampling) && !model(ids).equal(model(ids)));
    std::size_t tokens = 0;
    std::string pieces;
    CHECK(model.generate({1}, sampling, [&](std::uint32_t, const char *) { return ++tokens < 3; }).size() == 3);
    FAILS(SV_ERROR_INVALID_ARGUMENT, model.generate({}, sampling));
    FAILS(SV_ERROR_INVALID_ARGUMENT, model.generate({256}, sampling));
    CHECK(!model(ids).equal(model(ids)));
    FAILS(SV_ERROR_INVALID_ARGUMENT, xor_model().handle() ? nn::Gpt::adopt(xor_model().release()).config() : found);
    config.heads = 3;
    FAILS(SV_ERROR_INVALID_ARGUMENT, nn::Gpt(config));
    config.heads = 2;

    config.vocab_size = tokenizer.vocab_size();
    sv_gpt_trainer_options options = nn::GptTrainer::defaults();
    CHECK(options.steps == 300 && options.max_norm == 1);
    options.batch = 2;
    const std::string run = folder + "/run";
    const nn::GptTrainer trainer(config, text, tokenizer, options), resumed(config, text, tokenizer, options);
    std::uint64_t steps = 0;
    const sv_gpt_step stopped = trainer.run(9, [&](const sv_gpt_step &step) {
        CHECK(step.step == ++steps && step.grad_norm > 0 && trainer.evaluate() > 0);
        return steps < 2;
    });
    CHECK(steps == 2 && stopped.step == 2 && trainer.steps() == 2);
    trainer.save(run);
    sv_gpt_config half = config;
    half.compute_dtype = SV_DTYPE_F16;
    CHECK(trainer.loss_scale() == 0);
    const nn::GptTrainer in_half(half, text, tokenizer, options);
    FAILS(SV_ERROR_INVALID_ARGUMENT, (in_half.set_loss_scale(0), 0));
    FAILS(SV_ERROR_INVALID_ARGUMENT, (in_half.set_loss_scale(1, 2, 1.5), 0));
    // The first step overflows, and its backoff is large.
    in_half.set_loss_scale(1e30, 2, 1e-26);
    CHECK(!std::isfinite(in_half.run(1).grad_norm));
    const double scale = in_half.loss_scale();
    CHECK(scale > 0.9e4 && scale < 1.1e4 && std::isfinite(in_half.run(1).grad_norm) && in_half.steps() == 2);
    FAILS(SV_ERROR_INVALID_ARGUMENT, (in_half.set_loss_scale(1), 0));
    resumed.resume(run);
    resumed.set_recompute(SV_RECOMPUTE_BLOCKS);
    FAILS(SV_ERROR_INVALID_ARGUMENT, (resumed.set_recompute(3), 0));
    CHECK(resumed.steps() == 2 && resumed.run(1).loss == trainer.run(1).loss);
    FAILS(SV_ERROR_INVALID_ARGUMENT, trainer.run(0));
    FAILS(SV_ERROR_INVALID_ARGUMENT, (nn::GptTrainer(config, text + "to", tokenizer, options).resume(run), 0));
    trainer.save(run);
    auto [trained, its_tokenizer] = nn::Gpt::load_checkpoint(run);
    const std::string written = trained.generate(its_tokenizer, "to be", sampling, [&](std::uint32_t, const char *piece) {
        pieces += piece;
        return true;
    });
    CHECK(written == pieces && its_tokenizer.encode(written).size() == 12);
    CHECK(trainer.model().generate(tokenizer, "to be", sampling) == written);
    FAILS(SV_ERROR_FILE, nn::Gpt::load_checkpoint(folder + "/nowhere"));
#if SELVEDGE_HAS_EXCEPTIONS
    bool caught = false;
    try {
        trainer.run(2, [](const sv_gpt_step &) -> bool { throw 7; });
    } catch (int number) {
        caught = number == 7;
    }
    CHECK(caught);
#endif
    std::error_code error;
    std::filesystem::remove_all(run, error);
}

void decoders_of_published_models_generate_and_are_stored(const std::string &models)
{
    const nn::Decoder decoder = nn::Decoder::load(models + "/gpt2", Device::cpu(), DType::F32);
    CHECK(decoder.vocab_size() == 131 && decoder.context() == 48 && decoder.parameter_count() == 54576);
    // From reference.json of the folder.
    const List<std::uint32_t> prompt{106, 8, 90, 79, 90}, short_prompt{48, 61, 61};
    const List<std::uint32_t> until_end{6, 25, 25, 83, 6, 25, 25, 93, 65, 31};
    nn::GenerationOptions options;
    options.max_new_ids = 14;
    CHECK(decoder.generate(prompt, options) == until_end);
    std::size_t steps = 0, ended = 0;
    const List<List<std::uint32_t>> both =
        decoder.generate({short_prompt, prompt}, options, [&](std::size_t step, Elements<const std::uint32_t> ids) {
            CHECK(step == steps++ && ids.size() == 2);
            ended += ids[1] == SV_NO_ID;
            return true;
        });
    CHECK(steps == 14 && ended == 4 && both == List<List<std::uint32_t>>{List<std::uint32_t>(14, 93), until_end});
    const auto stop = [](std::size_t step, Elements<const std::uint32_t>) { return step < 1; };
    CHECK(decoder.generate(prompt, options, stop) == List<std::uint32_t>{6, 25});
    options.end_ids.emplace();
    CHECK(decoder.generate(prompt, options).size() == 14);
    options.end_ids = {83};
    CHECK(decoder.generate(prompt, options) == List<std::uint32_t>{6, 25, 25, 83});
    options.max_new_ids = 0;
    FAILS(SV_ERROR_INVALID_ARGUMENT, decoder.generate(prompt, options));
    FAILS(SV_ERROR_INVALID_ARGUMENT, decoder.generate(List<std::uint32_t>()));

    const Tensor ids = tensor({{std::int64_t{1}, std::int64_t{2}}});
    decoder.save(models + "/saved_by_cpp");
    const nn::Decoder again = nn::Decoder::load(models + "/saved_by_cpp");
    CHECK(decoder.logits(ids).shape() == Shape(1, 2, 131) && again.logits(ids).equal(decoder.logits(ids)));
    FAILS(SV_ERROR_FILE, nn::Decoder::load(models + "/none"));
    // The library of the tests has no tokenizers of published models.
    FAILS(SV_ERROR_UNSUPPORTED, nn::Tokenizer::load(models + "/gpt2"));
#if SELVEDGE_HAS_EXCEPTIONS
    bool caught = false;
    options.max_new_ids = 4;
    try {
        decoder.generate(prompt, options, [](std::size_t, Elements<const std::uint32_t>) -> bool { throw 7; });
    } catch (int number) {
        caught = number == 7;
    }
    CHECK(caught);
#endif
}

void golden_norms_and_evolvers(const std::string &folder)
{
    const Tensor batch = tensor({{1.0, 10.0}, {2.0, 10.0}, {3.0, 10.0}});
    srt::RunningStatistics running = {Tensor::zeros<double>({2}), Tensor::ones({2}, DType::F64)};
    const Tensor y = srt::golden_batch_norm_train(batch, running);
    CHECK(y.equal(srt::golden_batch_norm_1d(batch)) && running.mean.to_vector<double>()[1] == 1);
    CHECK(srt::golden_batch_norm_infer(batch, running).shape() == Shape(3, 2));
    const Tensor image = batch.reshape({3, 2, 1, 1});
    CHECK(srt::golden_batch_norm_2d(image).reshape({3, 2}).equal(y));
    CHECK(std::abs(srt::golden_layer_norm(batch, {}, {}, 1).to_vector<double>()[0] + 1) < 1e-3);

    const srt::Golden state = srt::snap(tensor({1.0, 0.5, -0.25, 0.125}), 10);
    sv_srt_evolver_options options = srt::Evolver::defaults();
    options.bound = 10;
    options.max_generations = 3;
    const srt::Evolver evolver(state, {}, options);
    const std::string path = folder + "/state.evolver";
    evolver.save(path);
    const srt::Evolver again = srt::Evolver::restore(path);
    std::remove(path.c_str());
    CHECK(evolver.step().generation == 1);
    CHECK(again.run([](const sv_srt_generation &) { return false; }) == srt::EvolverEnd::Stopped);
    CHECK(evolver.run() == srt::EvolverEnd::Limit && again.run() == srt::EvolverEnd::Limit);
    CHECK(!again.is_converged() && again.options().bound == 10 && again.n2().to_vector<double>() == List<double>{0, 1, 4, 9});
    CHECK(evolver.history() == again.history() && evolver.history().size() == 4);
    CHECK(evolver.best().a.equal(again.best().a));
    FAILS(SV_ERROR_INVALID_HANDLE, srt::Evolver({Tensor(), Tensor()}));
}

void classifiers_are_trained_and_stored(const std::string &folder)
{
    const SyntheticData data = Classifier::synthetic(200, 1);
    const Classifier classifier{ClassifierOptions()};
    CHECK(classifier.features() == 100 && classifier.classes() == 5 && classifier.parameter_count() == 9157);
    ClassifierTraining options;
    options.epochs = 2;
    std::size_t epochs = 0;
    const sv_classifier_report report =
        classifier.train(data.features, data.labels, options, [&](const sv_classifier_epoch &epoch) {
            CHECK(epoch.epoch == ++epochs && epoch.validation_accuracy >= 0);
        });
    CHECK(epochs == 2 && report.epochs == 2 && report.training_rows == 160 && report.validation_rows == 40);
    const Classification found = classifier(data.features);
    CHECK(found.classes.dtype() == DType::I64 && found.posterior.shape() == Shape(200, 5));
    CHECK(found.posterior.equal(found.beliefs) && found.confidence.equal(found.beliefs.max(-1)));
    CHECK(classifier.logits(data.features).argmax(-1).equal(found.classes));
    CHECK(classifier.free_energies().size() == 100);
    List<std::uint64_t> confusion;
    const sv_classifier_evaluation evaluation = classifier.evaluate(data.features, data.labels, &confusion);
    CHECK(evaluation.rows == 200 && confusion.size() == 25);
    const std::uint64_t right = confusion[0] + confusion[6] + confusion[12] + confusion[18] + confusion[24];
    CHECK(right > 0 && evaluation.accuracy == static_cast<double>(right) / 200);
    FAILS(SV_ERROR_INVALID_ARGUMENT, classifier(data.features.slice(1, 0, 99)));

    const std::string path = folder + "/classifier.safetensors";
    classifier.set_fuse_prior(true);
    classifier.set_prior({0.2, 0.2, 0.2, 0.2, 0.2});
    classifier.learn_prior({1, 0, 0, 0, 0});
    CHECK(std::abs(classifier.prior()[0] - 0.28) < 1e-12);
    classifier.set_generative_model(data.centres, 3);
    classifier.save(path);
    const Classifier again = Classifier::load(path);
    std::remove(path.c_str());
    const Classification full = again(data.features);
    CHECK(full.free_energy.equal(classifier(data.features).free_energy) && !full.free_energy.equal(found.free_energy));
    again.set_generative_model({});
    const Tensor prior = Tensor::from(again.prior()).cast(DType::F32);
    CHECK(again(data.features).free_energy.equal(free_energy(full.posterior, prior)));
#if SELVEDGE_HAS_EXCEPTIONS
    bool caught = false;
    try {
        again.train(data.features, data.labels, options, [](const sv_classifier_epoch &) { throw 7; });
    } catch (int number) {
        caught = number == 7;
    }
    CHECK(caught);
#endif
}

void classifiers_describe_themselves_and_their_rows()
{
    const SyntheticData data = Classifier::synthetic(60, 1);
    ClassifierOptions options;
    options.hidden = {8, 7};
    options.fuse_prior = true;
    const Classifier classifier(options);
    CHECK(classifier.widths() == List<std::size_t>{100, 8, 7, 5});
    CHECK(classifier.settings() == std::make_pair(0.2, true) && !classifier.generative_model().defined());

    const Tensor first = data.features.slice(0, 0, 1);
    const Classification batch = classifier(first);
    const RowClassification row = classifier.classify(first.flatten().to_vector<float>());
    CHECK(static_cast<std::int64_t>(row.found) == batch.classes.to_vector<std::int64_t>()[0]);
    CHECK(allclose(Tensor::from(row.posterior).cast(DType::F32), batch.posterior.flatten(), 1e-5));
    CHECK(allclose(Tensor::from(row.beliefs).cast(DType::F32), batch.beliefs.flatten(), 1e-5));
    CHECK(row.confidence == *std::max_element(row.beliefs.begin(), row.beliefs.end()) && row.free_energy >= 0);
    FAILS(SV_ERROR_INVALID_ARGUMENT, classifier.classify(List<float>(99)));
    const Tensor posterior = batch.posterior, prior = Tensor::from(options.prior).cast(DType::F32);
    CHECK(allclose(fuse_prior(posterior, prior), batch.beliefs, 1e-5));

    const auto bins = classifier.calibration(data.features, data.labels);
    const sv_classifier_evaluation evaluation = classifier.evaluate(data.features, data.labels);
    std::uint64_t rows = 0;
    double right = 0;
    for (const sv_calibration_bin &bin : bins) {
        rows += bin.rows;
        right += bin.accuracy * static_cast<double>(bin.rows);
    }
    CHECK(bins.size() == 10 && rows == 60 && std::abs(right / 60 - evaluation.accuracy) < 1e-12);

    const List<double> even(5, 0.2), learned = learned_prior(even, {1, 0, 0, 0, 0});
    CHECK(std::abs(learned[0] - 0.28) < 1e-12 && std::abs(learned[4] - 0.18) < 1e-12);
    FAILS(SV_ERROR_LENGTH_MISMATCH, learned_prior(even, {1, 0}));

    classifier.set_generative_model(data.centres, 3);
    const auto [centres, deviation] = classifier.generative_model().parameters();
    CHECK(centres.equal(data.centres) && deviation == 3);
    const GenerativeModel model(tensor({{0.0, 0.0}, {1.0, 0.0}}), 0.5);
    const Tensor inputs = tensor({{0.5, 3.0}, {-2.0, 0.0}});
    const List<double> prior_of_two{0.25, 0.75};
    const Tensor exact = model.posterior(inputs, prior_of_two);
    CHECK(allclose(exact[0], tensor({0.25, 0.75})));
    CHECK(model.bayes_classes(inputs, prior_of_two).to_vector<std::int64_t>() == List<std::int64_t>{1, 0});
    // The exact posterior has the least free energy, which is the surprise.
    const Tensor energy = free_energy(exact, Tensor::from(prior_of_two), model.log_likelihood(inputs));
    CHECK(allclose(energy, model.surprise(inputs, prior_of_two)));
    FAILS(SV_ERROR_INVALID_ARGUMENT, model.posterior(inputs, {1}));
}

} // namespace

#endif
