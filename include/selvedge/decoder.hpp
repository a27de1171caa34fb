// Decoders: transformers of the families that Hugging Face folders hold, such as GPT-2 and Llama.

#ifndef SELVEDGE_DECODER_HPP
#define SELVEDGE_DECODER_HPP

#include <optional>

#include "gpt.hpp"

SELVEDGE_BEGIN

namespace nn {

/// The settings of a generation of Decoder.
struct GenerationOptions {
    /// The most new ids of a sequence, at least 1.
    std::size_t max_new_ids = 128;
    /// The divisor of the logits. With 0 the most likely id is taken.
    double temperature = 0;
    /// The most ids to draw from; 0 for all.
    std::size_t top_k = 0;
    /// The probability of the ids to draw from.
    double top_p = 1;
    /// The least probability of an id to draw, as a share of that of the most likely one.
    double min_p = 0;
    /// The divisor of positive logits, and the factor of others, for ids of the prompt and drawn ids.
    double repetition_penalty = 1;
    /// The number that is subtracted from the logit of an id that was drawn before.
    double presence_penalty = 0;
    /// The number that is subtracted from the logit of an id for each time that it was drawn.
    double frequency_penalty = 0;
    /// The seed of the draws. Sequence i draws from seed + i, whatever the other sequences are.
    std::uint64_t seed = 0;
    /// The ids that end a sequence, none if the list is empty; without a list, those of the decoder's configuration.
    std::optional<std::vector<std::uint32_t>> end_ids;
    /// True for logits whose bits do not depend on the other prompts; an error where no algorithm has that.
    bool is_batch_invariant = false;

    /// Returns the struct of selvedge.h, which refers to `end_ids`.
    sv_decoder_options raw() const noexcept
    {
        const bool ignores = end_ids && end_ids->empty();
        return {sizeof(sv_decoder_options), max_new_ids, temperature, top_p, top_k, min_p, repetition_penalty,
                presence_penalty, frequency_penalty, seed, end_ids ? end_ids->data() : nullptr, end_ids ? end_ids->size() : 0, std::int32_t{ignores},
                std::int32_t{is_batch_invariant}};
    }
};

/// A decoder-only transformer of a published model, which never changes. A copy is the same decoder.
class Decoder : public Object<Decoder, sv_decoder> {
public:
    /// Gets the number of each step from 0, and the new id of each sequence, SV_NO_ID for one that has ended. Returns false to
    /// stop.
    using StepCallback = std::function<bool(std::size_t step, Elements<const std::uint32_t> ids)>;

    Decoder() noexcept = default;

    /// Loads a folder as Hugging Face publishes it. Without a dtype the parameters have that of the stored embedding, but f32 on
    /// the CPU for 16 bits.
    static Decoder load(const std::string &folder, Device device = Device::cpu(), std::optional<DType> dtype = {})
    {
        const std::int32_t code = dtype ? static_cast<std::int32_t>(*dtype) : SV_DTYPE_NONE;
        return detail::make<Decoder>(sv_decoder_load, folder.c_str(), device.ordinal(), code);
    }
    /// Writes the files of a folder, which is created. transformers loads them.
    void save(const std::string &folder) const { detail::call(sv_decoder_save, handle(), folder.c_str()); }

    std::size_t vocab_size() const { return detail::get<std::size_t>(sv_decoder_vocab_size, handle()); }
    /// Returns the number of positions that the decoder was made for.
    std::size_t context() const { return detail::get<std::size_t>(sv_decoder_context, handle()); }
    /// Returns the number of elements of the parameters.
    std::size_t parameter_count() const { return detail::get<std::size_t>(sv_decoder_parameter_count, handle()); }

    /// Computes logits (batch, length, vocabulary) of ids (batch, length).
    Tensor logits(const Tensor &ids) const { return detail::make<Tensor>(sv_decoder_logits, handle(), ids.handle()); }

    /// Generates the ids that continue each prompt, with the id that ended it. Prompts may differ in length.
    std::vector<std::vector<std::uint32_t>> generate(const std::vector<std::vector<std::uint32_t>> &prompts,
                                                     const GenerationOptions &options = {},
                                                     StepCallback callback = nullptr) const
    {
        std::vector<std::vector<std::uint32_t>> found(prompts.size());
        std::vector<std::uint32_t> ids;
        std::vector<std::size_t> lengths;
        for (const std::vector<std::uint32_t> &prompt : prompts) {
            ids.insert(ids.end(), prompt.begin(), prompt.end());
            lengths.push_back(prompt.size());
        }
        const sv_decoder_options raw = options.raw();
        detail::Callback<Collector> context(Collector{found, callback});
        detail::call(sv_decoder_generate, handle(), ids.data(), lengths.data(), lengths.size(), &raw, &on_step,
                     context.user());
        context.rethrow();
        return found;
    }
    /// Generates the ids that continue one prompt.
    std::vector<std::uint32_t> generate(const std::vector<std::uint32_t> &prompt, const GenerationOptions &options = {},
                                        StepCallback callback = nullptr) const
    {
        auto found = generate(std::vector<std::vector<std::uint32_t>>{prompt}, options, std::move(callback));
        return found.empty() ? std::vector<std::uint32_t>() : std::move(found.front());
    }

private:
    /// Keeps the ids of each step, and passes them on.
    struct Collector {
        std::vector<std::vector<std::uint32_t>> &found;
        StepCallback &callback;

        bool operator()(std::size_t step, Elements<const std::uint32_t> ids)
        {
            for (std::size_t i = 0; i < ids.size(); i++)
                if (ids[i] != SV_NO_ID)
                    found[i].push_back(ids[i]);
            return !callback || callback(step, ids);
        }
    };

    static std::int32_t on_step(void *user, std::size_t step, const std::uint32_t *ids, std::size_t count)
    {
        const Elements<const std::uint32_t> view(ids, count);
        return detail::Callback<Collector>::run(user, step, view) ? SV_CONTINUE : SV_STOP;
    }
};

} // namespace nn

SELVEDGE_END

#endif
