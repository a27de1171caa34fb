//! [`FAMILIES`], the differences between families that their `config.json` does not say.

use crate::nn::Activation;

/// A family of models.
pub(super) struct Family {
    /// The value of `model_type`.
    pub model_type: &'static str,
    /// True if a missing `tie_word_embeddings` means a tied head.
    pub is_tied: bool,
    /// True for norms that multiply by 1 + weight.
    pub has_norm_offset: bool,
    /// True for embeddings times sqrt(width).
    pub scales_embeddings: bool,
    /// True for four norms in place of two.
    pub has_four_norms: bool,
    /// True for norms of the heads of queries and keys.
    pub has_head_norms: bool,
    pub biases: BiasRule,
    /// True if one weight has queries, keys and values, and one has gate and up.
    pub is_packed: bool,
    /// The head dimension if the file has none; `None` for width / heads.
    pub head_dim: Option<usize>,
    /// The scores' factor is this key to the power of -1/2, with the value for a missing key; `None` for the head dimension's.
    pub score_scalar: Option<(&'static str, f64)>,
    /// The limits of scores and of logits for a missing key; `None` if the family has no such limit.
    pub score_cap: Option<f64>,
    pub logit_cap: Option<Option<f64>>,
    /// The activation for a missing `hidden_activation`, the only key that the family reads; `None` for one that reads `hidden_act`.
    pub activation: Option<Activation>,
    pub windows: WindowRule,
    pub rotary_base: f64,
    /// The rotary base of layers with a window, which no scaling changes, by its key and the value for a missing key.
    pub local_base: Option<(&'static str, f64)>,
}

/// The products that have a bias.
#[derive(Clone, Copy)]
pub(super) enum BiasRule {
    None,
    /// The products of attention by `attention_bias`, and of the feed-forward by `mlp_bias`.
    Keys,
    /// Queries, keys and values.
    Projections,
}

/// The layers with a window, where `layer_types` is missing.
#[derive(Clone, Copy)]
pub(super) enum WindowRule {
    None,
    All {
        /// The window for a missing key `sliding_window`; null is no window.
        default: Option<usize>,
    },
    /// With `use_sliding_window`, from layer `max_window_layers` on.
    Qwen,
    /// All but each nth layer, n by `sliding_window_pattern` or else this one.
    Pattern(usize),
}

const LLAMA: Family = Family {
    model_type: "llama",
    is_tied: false,
    has_norm_offset: false,
    scales_embeddings: false,
    has_four_norms: false,
    has_head_norms: false,
    biases: BiasRule::Keys,
    is_packed: false,
    head_dim: None,
    score_scalar: None,
    score_cap: None,
    logit_cap: None,
    activation: None,
    windows: WindowRule::None,
    rotary_base: 1e4,
    local_base: None,
};

const GEMMA: Family = Family {
    model_type: "gemma",
    is_tied: true,
    has_norm_offset: true,
    scales_embeddings: true,
    head_dim: Some(256),
    ..LLAMA
};

const GEMMA2: Family = Family {
    model_type: "gemma2",
    has_four_norms: true,
    score_scalar: Some(("query_pre_attn_scalar", 256.0)),
    score_cap: Some(50.0),
    logit_cap: Some(Some(30.0)),
    activation: Some(Activation::GeluTanh),
    windows: WindowRule::Pattern(2),
    ..GEMMA
};

/// The families with Llama's keys.
pub(super) static FAMILIES: [Family; 8] = [
    LLAMA,
    Family {
        model_type: "mistral",
        biases: BiasRule::None,
        windows: WindowRule::All { default: Some(4096) },
        ..LLAMA
    },
    Family { model_type: "qwen2", biases: BiasRule::Projections, windows: WindowRule::Qwen, ..LLAMA },
    Family {
        model_type: "qwen3",
        has_head_norms: true,
        head_dim: Some(128),
        windows: WindowRule::Qwen,
        ..LLAMA
    },
    GEMMA,
    GEMMA2,
    Family {
        model_type: "gemma3_text",
        has_head_norms: true,
        score_cap: None,
        logit_cap: Some(None),
        windows: WindowRule::Pattern(6),
        rotary_base: 1e6,
        local_base: Some(("rope_local_base_freq", 1e4)),
        ..GEMMA2
    },
    Family {
        model_type: "phi3",
        biases: BiasRule::None,
        is_packed: true,
        windows: WindowRule::All { default: None },
        ..LLAMA
    },
];
