//! [`WeightNames`], the names of weights in files.

/// The names of a family's weights, without `.weight` and `.bias`; empty for parts that no model with these names has.
#[derive(Debug)]
pub(super) struct WeightNames {
    /// The first part of all names but the head's. Files may lack it.
    pub prefix: &'static str,
    pub embedding: &'static str,
    pub positions: &'static str,
    pub layers: &'static str,
    pub final_norm: &'static str,
    pub head: &'static str,
    pub attention_norm: &'static str,
    pub projections: [&'static str; 3],
    pub packed_projections: &'static str,
    pub head_norms: [&'static str; 2],
    pub output: &'static str,
    /// The norm before the feed-forward, of two norms.
    pub feed_forward_norm: &'static str,
    /// The norms after attention, before the feed-forward and after it, of four norms.
    pub four_norms: [&'static str; 3],
    pub gate: &'static str,
    pub up: &'static str,
    pub packed_gate: &'static str,
    pub down: &'static str,
}

/// The names of GPT-2.
pub(super) static GPT2: WeightNames = WeightNames {
    prefix: "transformer.",
    embedding: "wte",
    positions: "wpe",
    layers: "h",
    final_norm: "ln_f",
    head: "lm_head",
    attention_norm: "ln_1",
    projections: [""; 3],
    packed_projections: "attn.c_attn",
    head_norms: [""; 2],
    output: "attn.c_proj",
    feed_forward_norm: "ln_2",
    four_norms: [""; 3],
    gate: "",
    up: "mlp.c_fc",
    packed_gate: "",
    down: "mlp.c_proj",
};

/// The names of Llama, which the other families have too.
pub(super) static LLAMA: WeightNames = WeightNames {
    prefix: "model.",
    embedding: "embed_tokens",
    positions: "",
    layers: "layers",
    final_norm: "norm",
    head: "lm_head",
    attention_norm: "input_layernorm",
    projections: ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    packed_projections: "self_attn.qkv_proj",
    head_norms: ["self_attn.q_norm", "self_attn.k_norm"],
    output: "self_attn.o_proj",
    feed_forward_norm: "post_attention_layernorm",
    four_norms: ["post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"],
    gate: "mlp.gate_proj",
    up: "mlp.up_proj",
    packed_gate: "mlp.gate_up_proj",
    down: "mlp.down_proj",
};

/// The ends of names of tables that the model computes itself: the masks of older GPT-2 files and the frequencies of older Llama files.
pub(super) const COMPUTED: [&str; 3] = [".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"];
