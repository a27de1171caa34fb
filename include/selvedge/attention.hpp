// Scaled dot-product attention.

#ifndef SELVEDGE_ATTENTION_HPP
#define SELVEDGE_ATTENTION_HPP

#include <optional>

#include "random.hpp"
#include "tensor.hpp"

SELVEDGE_BEGIN

/// Options of scaled dot-product attention. A tensor that is not given is a null pointer.
struct AttentionOptions {
    /// Bools that are true where a query reads a key, or floats that are added to the scaled scores; it broadcasts to (batch, query
    /// heads, query length, key length).
    const Tensor *mask = nullptr;
    /// Whether a query reads no later key. The last query is at the last key's position.
    bool is_causal = false;
    /// How many keys before its own position a query reads; all without it.
    std::optional<std::int64_t> window_before = std::nullopt;
    /// How many keys after its own position a query reads; all without it.
    std::optional<std::int64_t> window_after = std::nullopt;
    /// The factor of the scores; 1 / sqrt(head dimension) without it.
    std::optional<double> scale = std::nullopt;
    /// The limit c of the scaled scores x, which become c tanh(x / c); 0 for none.
    double soft_cap = 0;
    /// The probability that a probability is replaced by 0.
    double dropout = 0;
    /// The generator of the dropout; a default-constructed one is the device's own.
    Generator generator = {};
    /// The numbers of queries and of keys of each batch, integers of shape (batch).
    const Tensor *query_lengths = nullptr;
    const Tensor *key_lengths = nullptr;
    /// The first query and key of each sequence in a batch of 1, and the ends of the last one; empty where each batch is one sequence.
    std::vector<std::int64_t> query_offsets = {};
    std::vector<std::int64_t> key_offsets = {};

    /// The struct of the C ABI, which points into this one.
    sv_attention_options raw() const
    {
        sv_attention_options raw{};
        raw.size = sizeof raw;
        raw.mask = detail::handle_of(mask);
        raw.generator = generator.handle();
        raw.query_lengths = detail::handle_of(query_lengths);
        raw.key_lengths = detail::handle_of(key_lengths);
        raw.query_offsets = query_offsets.data();
        raw.key_offsets = key_offsets.data();
        raw.offset_count = query_offsets.size();
        raw.scale = scale.value_or(0);
        raw.soft_cap = soft_cap;
        raw.dropout = dropout;
        raw.window_before = window_before.value_or(0);
        raw.window_after = window_after.value_or(0);
        raw.has_scale = scale.has_value();
        raw.is_causal = is_causal;
        raw.has_window_before = window_before.has_value();
        raw.has_window_after = window_after.has_value();
        return raw;
    }
};

/// Computes softmax(scale · Q Kᵀ) V for queries of shape (batch, heads, length, head dimension). Keys and values have a length of their
/// own and a number of heads that divides the queries'.
inline Tensor scaled_dot_product_attention(const Tensor &queries, const Tensor &keys, const Tensor &values,
                                           const AttentionOptions &options = {})
{
    const sv_attention_options raw = options.raw();
    if (options.query_offsets.size() != options.key_offsets.size()) {
        detail::fail(Error(SV_ERROR_LENGTH_MISMATCH, "scaled_dot_product_attention: found " +
                                                         std::to_string(options.query_offsets.size()) +
                                                         " offsets of queries and " +
                                                         std::to_string(options.key_offsets.size()) + " of keys"));
        return {};
    }
    return detail::make<Tensor>(sv_tensor_scaled_dot_product_attention, queries.handle(), keys.handle(),
                                values.handle(), &raw);
}

SELVEDGE_END

#endif
