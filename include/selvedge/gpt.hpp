// Transformers of GPT-2's architecture, their tokenizers, training and generation.

#ifndef SELVEDGE_GPT_HPP
#define SELVEDGE_GPT_HPP

#include "callback.hpp"
#include "nn.hpp"

SELVEDGE_BEGIN

namespace nn {

/// A two-way map between texts and ids. A copy is the same tokenizer.
class Tokenizer : public Object<Tokenizer, sv_tokenizer> {
public:
    Tokenizer() noexcept = default;

    /// Returns a tokenizer whose ids are bytes.
    static Tokenizer bytes() { return detail::make<Tokenizer>(sv_tokenizer_bytes); }
    /// Returns a tokenizer of the distinct characters of a text.
    static Tokenizer characters(const std::string &text)
    {
        return detail::make<Tokenizer>(sv_tokenizer_characters, text.data(), text.size());
    }
    static Tokenizer from_json(const std::string &json)
    {
        return detail::make<Tokenizer>(sv_tokenizer_from_json, json.c_str());
    }

    /// Loads the tokenizer of a published model's folder. The library needs the feature `models`.
    static Tokenizer load(const std::string &folder)
    {
        return detail::make<Tokenizer>(sv_tokenizer_load, folder.c_str());
    }

    std::string to_json() const { return detail::text(sv_tokenizer_to_json, handle()); }
    std::size_t vocab_size() const { return detail::get<std::size_t>(sv_tokenizer_vocab_size, handle()); }
    std::vector<std::uint32_t> encode(const std::string &text) const
    {
        // Most ids take a byte or more. Some tokenizers add ids.
        std::vector<std::uint32_t> ids(text.size());
        std::size_t count = 0;
        detail::call(sv_tokenizer_encode, handle(), text.data(), text.size(), ids.data(), ids.size(), &count);
        const bool fits = count <= ids.size();
        ids.resize(count);
        if (!fits)
            detail::call(sv_tokenizer_encode, handle(), text.data(), text.size(), ids.data(), ids.size(), &count);
        return ids;
    }
    std::string decode(const std::vector<std::uint32_t> &ids) const
    {
        return detail::text(sv_tokenizer_decode, handle(), ids.data(), ids.size());
    }
};

/// The draws of a generation.
struct Sampling {
    /// The number of new ids.
    std::size_t length = 100;
    /// The divisor of the logits. With 0 the most likely id is taken.
    double temperature = 1;
    /// The most ids to draw from; 0 for all.
    std::size_t top_k = 0;
    /// The probability of the ids to draw from.
    double top_p = 1;
    std::uint64_t seed = 0;

    sv_gpt_sampling raw() const noexcept
    {
        return {sizeof(sv_gpt_sampling), length, temperature, top_p, top_k, seed};
    }
};

/// A decoder-only transformer. forward() takes ids of shape (batch, length). A copy is the same model.
class Gpt : public Module<Gpt> {
public:
    /// Gets each new id, with the characters that it completes if the generation has a tokenizer. Returns false to stop. It
    /// must not use the model.
    using TokenCallback = std::function<bool(std::uint32_t id, const char *text)>;

    Gpt() noexcept = default;
    explicit Gpt(sv_gpt_config config, Device device = Device::cpu(), std::uint64_t seed = 0, DType dtype = DType::F32)
    {
        config.size = sizeof config;
        *this = detail::make<Gpt>(sv_gpt_create, &config, static_cast<std::int32_t>(dtype), device.ordinal(), seed);
    }

    /// Returns the model and the tokenizer of the last checkpoint in a folder.
    static std::pair<Gpt, Tokenizer> load_checkpoint(const std::string &folder, Device device = Device::cpu())
    {
        sv_model model = nullptr;
        sv_tokenizer tokenizer = nullptr;
        detail::call(sv_gpt_load_checkpoint, folder.c_str(), device.ordinal(), &model, &tokenizer);
        return {Gpt::adopt(model), Tokenizer::adopt(tokenizer)};
    }

    sv_gpt_config config() const
    {
        sv_gpt_config config{};
        config.size = sizeof config;
        detail::call(sv_gpt_configuration, handle(), &config);
        return config;
    }

    /// Computes the mean cross entropy of a batch of ids.
    Variable loss(const Tensor &inputs, const Tensor &targets) const
    {
        return detail::make<Variable>(sv_gpt_loss, handle(), inputs.handle(), targets.handle());
    }

    /// Generates the ids that continue a prompt.
    std::vector<std::uint32_t> generate(const std::vector<std::uint32_t> &prompt, const Sampling &sampling,
                                        TokenCallback callback = nullptr) const
    {
        const sv_gpt_sampling raw = sampling.raw();
        detail::Callback<TokenCallback> context(std::move(callback));
        std::vector<std::uint32_t> ids(sampling.length);
        std::size_t count = 0;
        detail::call(sv_gpt_generate, handle(), prompt.data(), prompt.size(), &raw,
                     context.defined() ? &on_token : nullptr, context.user(), ids.data(), ids.size(), &count);
        context.rethrow();
        ids.resize(count);
        return ids;
    }
    /// Generates the text that continues a prompt.
    std::string generate(const Tokenizer &tokenizer, const std::string &prompt, const Sampling &sampling,
                         TokenCallback callback = nullptr) const
    {
        const sv_gpt_sampling raw = sampling.raw();
        detail::Callback<TokenCallback> context(std::move(callback));
        // A character has 4 bytes at most, and U+FFFD for a byte has 3.
        std::string text(4 * sampling.length, '\0');
        std::size_t length = 0;
        detail::call(sv_gpt_generate_text, handle(), tokenizer.handle(), prompt.c_str(), &raw,
                     context.defined() ? &on_token : nullptr, context.user(), text.data(), text.size() + 1, &length);
        context.rethrow();
        text.resize(length);
        return text;
    }

private:
    static std::int32_t on_token(void *user, std::uint32_t id, const char *text)
    {
        return detail::Callback<TokenCallback>::run(user, id, text) ? SV_CONTINUE : SV_STOP;
    }
};

/// A transformer in training: its optimizer and its text. A copy is the same trainer.
class GptTrainer : public Object<GptTrainer, sv_gpt_trainer> {
public:
    /// Gets the figures of each step. Returns false to stop.
    using StepCallback = std::function<bool(const sv_gpt_step &step)>;

    GptTrainer() noexcept = default;
    GptTrainer(sv_gpt_config config, const std::string &text, const Tokenizer &tokenizer,
               const sv_gpt_trainer_options &options = defaults(), Device device = Device::cpu())
    {
        config.size = sizeof config;
        *this = detail::make<GptTrainer>(sv_gpt_trainer_create, &config, text.data(), text.size(), tokenizer.handle(),
                                         &options, device.ordinal());
    }

    /// Returns the numbers of a run of a small model.
    static sv_gpt_trainer_options defaults()
    {
        sv_gpt_trainer_options options{};
        options.size = sizeof options;
        detail::call(sv_gpt_trainer_defaults, &options);
        return options;
    }

    /// Returns the model, which later steps go on to change.
    Gpt model() const { return detail::make<Gpt>(sv_gpt_trainer_model, handle()); }
    /// Takes steps, and returns the figures of the last one.
    sv_gpt_step run(std::uint64_t count, StepCallback callback = nullptr) const
    {
        sv_gpt_step last{};
        last.size = sizeof last;
        detail::Callback<StepCallback> context(std::move(callback));
        detail::call(sv_gpt_trainer_run, handle(), count, context.defined() ? &on_step : nullptr, context.user(), &last);
        context.rethrow();
        return last;
    }
    /// Returns the loss of the validation text.
    double evaluate() const { return detail::get<double>(sv_gpt_trainer_evaluate, handle()); }
    std::uint64_t steps() const { return detail::get<std::uint64_t>(sv_gpt_trainer_steps, handle()); }
    /// Multiplies the loss by a scale, for a model that computes in f16, before the first step.
    void set_loss_scale(double initial = 65536, double growth_factor = 2, double backoff_factor = 0.5,
                        std::uint32_t growth_interval = 2000) const
    {
        detail::call(sv_gpt_trainer_set_loss_scale, handle(), initial, growth_factor, backoff_factor, growth_interval);
    }
    /// Sets the activations that a backward computes again, SV_RECOMPUTE_...: less memory, the same bits.
    void set_recompute(std::int32_t recompute) const
    {
        detail::call(sv_gpt_trainer_set_recompute, handle(), recompute);
    }
    /// Returns the loss scale of the next step, or 0.
    double loss_scale() const { return detail::get<double>(sv_gpt_trainer_loss_scale, handle()); }

    /// Saves a checkpoint in a folder.
    void save(const std::string &folder) const { detail::call(sv_gpt_trainer_save, handle(), folder.c_str()); }
    /// Continues from the last checkpoint in a folder.
    void resume(const std::string &folder, bool allow_other_text = false) const
    {
        detail::call(sv_gpt_trainer_resume, handle(), folder.c_str(), std::int32_t{allow_other_text});
    }

private:
    static std::int32_t on_step(void *user, const sv_gpt_step *step)
    {
        return detail::Callback<StepCallback>::run(user, *step) ? SV_CONTINUE : SV_STOP;
    }
};

} // namespace nn

SELVEDGE_END

#endif
