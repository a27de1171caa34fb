// The active-inference classifier: a recognition network, a prior, and the free energy of each decision.

#ifndef SELVEDGE_CLASSIFIER_HPP
#define SELVEDGE_CLASSIFIER_HPP

#include "callback.hpp"
#include "tensor.hpp"

SELVEDGE_BEGIN

/// The shape and the first values of a Classifier.
struct ClassifierOptions {
    std::size_t features = 100;
    std::vector<std::size_t> hidden = {64, 32, 16};
    /// The probability of each class.
    std::vector<double> prior = {0.7, 0.1, 0.1, 0.05, 0.05};
    bool fuse_prior = false;
    double dropout = 0.2;
    std::uint64_t seed = 0;
};

/// The settings of a training.
struct ClassifierTraining {
    std::size_t epochs = 100;
    std::size_t batch = 64;
    std::size_t patience = 10;
    double learning_rate = 1e-3;
    /// The part of the rows that is kept for validation.
    double validation = 0.2;
    std::uint64_t seed = 0;
};

/// The results of rows.
struct Classification {
    Tensor classes;
    Tensor posterior;
    Tensor beliefs;
    Tensor free_energy;
    Tensor confidence;
};

/// The result of one row.
struct RowClassification {
    std::size_t found = 0;
    double free_energy = 0;
    double confidence = 0;
    std::vector<double> posterior;
    std::vector<double> beliefs;
};

/// Rows of five classes, and the centres that they were drawn around.
struct SyntheticData {
    Tensor features;
    Tensor labels;
    Tensor centres;
};

/// A model of classes, each a Gaussian around its centre, of one deviation. A copy is the same model.
class GenerativeModel : public Object<GenerativeModel, sv_generative_model> {
public:
    GenerativeModel() noexcept = default;
    GenerativeModel(const Tensor &centres, double deviation)
        : Object(detail::get<sv_generative_model>(sv_generative_model_create, centres.handle(), deviation))
    {
    }

    /// Returns the centres, a row for each class, and the deviation.
    std::pair<Tensor, double> parameters() const
    {
        sv_tensor centres = nullptr;
        double deviation = 0;
        detail::call(sv_generative_model_parameters, handle(), &centres, &deviation);
        return {Tensor::adopt(centres), deviation};
    }
    /// Returns ln p(o|c) of rows, with a column for each class.
    Tensor log_likelihood(const Tensor &rows) const
    {
        return detail::make<Tensor>(sv_generative_model_log_likelihood, handle(), rows.handle());
    }
    /// Returns the exact posterior of rows, with a column for each class.
    Tensor posterior(const Tensor &rows, const std::vector<double> &prior) const
    {
        return by_prior(sv_generative_model_posterior, rows, prior);
    }
    /// Returns -ln p(o) of rows, the least free energy.
    Tensor surprise(const Tensor &rows, const std::vector<double> &prior) const
    {
        return by_prior(sv_generative_model_surprise, rows, prior);
    }
    /// Returns the class of the largest exact posterior of each row.
    Tensor bayes_classes(const Tensor &rows, const std::vector<double> &prior) const
    {
        return by_prior(sv_generative_model_bayes_classes, rows, prior);
    }

private:
    template <class Function>
    Tensor by_prior(Function function, const Tensor &rows, const std::vector<double> &prior) const
    {
        return detail::make<Tensor>(function, handle(), rows.handle(), prior.data(), prior.size());
    }
};

/// A classifier of rows of f32. A copy is the same classifier.
class Classifier : public Object<Classifier, sv_classifier> {
public:
    /// Gets each epoch of a training. It must not use the classifier.
    using EpochCallback = std::function<void(const sv_classifier_epoch &epoch)>;

    Classifier() noexcept = default;
    explicit Classifier(const ClassifierOptions &options, Device device = Device::cpu())
    {
        const sv_classifier_options raw = {sizeof raw,
                                           options.features,
                                           options.hidden.data(),
                                           options.hidden.size(),
                                           options.prior.data(),
                                           options.prior.size(),
                                           options.dropout,
                                           options.seed,
                                           options.fuse_prior,
                                           0};
        *this = detail::make<Classifier>(sv_classifier_create, &raw, device.ordinal());
    }

    std::size_t features() const { return sizes().features; }
    std::size_t classes() const { return sizes().classes; }
    /// Returns the number of weights and biases.
    std::size_t parameter_count() const { return sizes().parameters; }
    /// Returns the widths of the layers, from the features to the classes.
    std::vector<std::size_t> widths() const
    {
        std::size_t count = 0;
        detail::call(sv_classifier_widths, handle(), nullptr, std::size_t{0}, &count);
        std::vector<std::size_t> widths(count);
        detail::call(sv_classifier_widths, handle(), widths.data(), count, &count);
        return widths;
    }
    /// Returns the probability of dropout, and whether beliefs are the posterior times the prior.
    std::pair<double, bool> settings() const
    {
        double dropout = 0;
        std::int32_t fuse_prior = 0;
        detail::call(sv_classifier_settings, handle(), &dropout, &fuse_prior);
        return {dropout, fuse_prior != 0};
    }

    /// Trains on rows with labels. The weights are those of the best epoch then.
    sv_classifier_report train(const Tensor &features, const Tensor &labels, const ClassifierTraining &options = {},
                               EpochCallback callback = nullptr) const
    {
        const sv_classifier_training_options raw = {
            sizeof raw,         options.epochs, options.batch, options.patience, options.learning_rate,
            options.validation, options.seed,   1,             0};
        sv_classifier_report report{};
        report.size = sizeof report;
        detail::Callback<EpochCallback> context(std::move(callback));
        detail::call(sv_classifier_train, handle(), features.handle(), labels.handle(), &raw,
                     context.defined() ? &on_epoch : nullptr, context.user(), &report);
        context.rethrow();
        return report;
    }

    /// Classifies rows.
    Classification operator()(const Tensor &rows) const
    {
        sv_tensor found[5] = {};
        detail::call(sv_classifier_run, handle(), rows.handle(), &found[0], &found[1], &found[2], &found[3], &found[4]);
        return {Tensor::adopt(found[0]), Tensor::adopt(found[1]), Tensor::adopt(found[2]), Tensor::adopt(found[3]),
                Tensor::adopt(found[4])};
    }
    /// Classifies one row of host memory.
    RowClassification classify(const std::vector<float> &row) const
    {
        RowClassification found;
        found.posterior.resize(classes());
        found.beliefs.resize(found.posterior.size());
        sv_classification raw{};
        raw.size = sizeof raw;
        detail::call(sv_classifier_classify, handle(), row.data(), row.size(), found.posterior.data(),
                     found.beliefs.data(), found.beliefs.size(), &raw);
        found.found = raw.found;
        found.free_energy = raw.free_energy;
        found.confidence = raw.confidence;
        return found;
    }
    Tensor logits(const Tensor &rows) const
    {
        return detail::make<Tensor>(sv_classifier_logits, handle(), rows.handle());
    }
    /// Compares the classes of rows with labels. `confusion`, if not null, gets a row for each label.
    sv_classifier_evaluation evaluate(const Tensor &rows, const Tensor &labels,
                                      std::vector<std::uint64_t> *confusion = nullptr) const
    {
        sv_classifier_evaluation evaluation{};
        evaluation.size = sizeof evaluation;
        if (confusion)
            confusion->resize(classes() * classes());
        detail::call(sv_classifier_evaluate, handle(), rows.handle(), labels.handle(), &evaluation,
                     confusion ? confusion->data() : nullptr, confusion ? confusion->size() : 0);
        return evaluation;
    }

    /// Returns the rows by their confidence, in ten bins of width 0.1.
    std::vector<sv_calibration_bin> calibration(const Tensor &rows, const Tensor &labels) const
    {
        std::vector<sv_calibration_bin> bins(10);
        std::size_t count = 0;
        detail::call(sv_classifier_calibration, handle(), rows.handle(), labels.handle(), bins.data(), bins.size(),
                     &count);
        bins.resize(count);
        return bins;
    }

    std::vector<double> prior() const
    {
        std::vector<double> prior(classes());
        detail::call(sv_classifier_prior, handle(), prior.data(), prior.size());
        return prior;
    }
    void set_prior(const std::vector<double> &prior) const
    {
        detail::call(sv_classifier_set_prior, handle(), prior.data(), prior.size());
    }
    /// Moves the prior toward observed probabilities of the classes.
    void learn_prior(const std::vector<double> &observed) const
    {
        detail::call(sv_classifier_learn_prior, handle(), observed.data(), observed.size());
    }
    void set_fuse_prior(bool fuse_prior) const
    {
        detail::call(sv_classifier_set_fuse_prior, handle(), std::int32_t{fuse_prior});
    }
    /// Sets the Gaussians of the full mode, or with an empty tensor the KL mode.
    void set_generative_model(const Tensor &centres, double deviation = 1) const
    {
        detail::call(sv_classifier_set_generative_model, handle(), centres.handle(), deviation);
    }
    /// Returns the model of the full mode, or an undefined one in the KL mode.
    GenerativeModel generative_model() const
    {
        return detail::make<GenerativeModel>(sv_classifier_generative_model, handle());
    }
    /// Returns the free energies of the last rows, the oldest first.
    std::vector<double> free_energies() const
    {
        std::vector<double> energies(100);
        std::size_t count = 0;
        detail::call(sv_classifier_free_energies, handle(), energies.data(), energies.size(), &count);
        energies.resize(count);
        return energies;
    }

    void save(const std::string &path) const { detail::call(sv_classifier_save, handle(), path.c_str()); }
    static Classifier load(const std::string &path, Device device = Device::cpu())
    {
        return detail::make<Classifier>(sv_classifier_load, path.c_str(), device.ordinal());
    }

    /// Draws rows of five classes with a known Bayes rule.
    static SyntheticData synthetic(std::size_t count, std::uint64_t seed, Device device = Device::cpu())
    {
        sv_tensor features = nullptr, labels = nullptr, centres = nullptr;
        detail::call(sv_classifier_synthetic, count, seed, device.ordinal(), &features, &labels, &centres);
        return {Tensor::adopt(features), Tensor::adopt(labels), Tensor::adopt(centres)};
    }

private:
    struct Sizes {
        std::size_t features = 0;
        std::size_t classes = 0;
        std::size_t parameters = 0;
    };

    Sizes sizes() const
    {
        Sizes sizes;
        detail::call(sv_classifier_size, handle(), &sizes.features, &sizes.classes, &sizes.parameters);
        return sizes;
    }

    static void on_epoch(void *user, const sv_classifier_epoch *epoch)
    {
        detail::Callback<EpochCallback>::run(user, *epoch);
    }
};

/// Returns the free energy of each row of a posterior, with log likelihoods of its shape in the full mode.
inline Tensor free_energy(const Tensor &posterior, const Tensor &prior, const Tensor &log_likelihood = {})
{
    return detail::make<Tensor>(sv_free_energy, posterior.handle(), prior.handle(), log_likelihood.handle());
}

/// Returns the beliefs of each row of a posterior: the posterior times the prior, normalised.
inline Tensor fuse_prior(const Tensor &posterior, const Tensor &prior)
{
    return detail::make<Tensor>(sv_fuse_prior, posterior.handle(), prior.handle());
}

/// Returns the prior that Classifier::learn_prior sets.
inline std::vector<double> learned_prior(std::vector<double> prior, const std::vector<double> &observed)
{
    if (detail::have_equal_lengths("learned_prior", prior.size(), observed.size()))
        detail::call(sv_learned_prior, prior.data(), observed.data(), prior.size(), prior.data());
    return prior;
}

SELVEDGE_END

#endif
