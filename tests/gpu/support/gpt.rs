//! A small transformer and the text that tests train it on.

use selvedge::nn::{
    ByteTokenizer, Decoder, DecoderConfig, GptConfig, Initializer, LoraOptions, TextFile, TokenizedText,
    Trainer, TrainerOptions,
};
use selvedge::tensor::Device;
use selvedge::types::DType;

/// Returns a trainer of a transformer with dropout.
pub fn small_trainer(
    compute_dtype: Option<DType>,
    options: TrainerOptions,
    device: &Device,
) -> selvedge::Result<Trainer> {
    let text = TextFile::from_bytes("to be, or not to be, that is the question: ".repeat(20));
    let config = GptConfig {
        layers: 2,
        width: 32,
        heads: 2,
        context: 16,
        dropout: 0.1,
        compute_dtype,
        ..GptConfig::tiny(256)
    };
    Trainer::new(config, text, &ByteTokenizer, options, device)
}

/// Returns a trainer of a decoder, of its weights or of adapters of a rank.
pub fn small_decoder_trainer(
    compute_dtype: Option<DType>,
    rank: usize,
    options: TrainerOptions,
    device: &Device,
) -> selvedge::Result<Trainer<Decoder>> {
    let config = r#"{"model_type": "llama", "vocab_size": 256, "hidden_size": 32, "intermediate_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
        "max_position_embeddings": 16, "rms_norm_eps": 1e-5}"#;
    let initializer = Initializer::new(device).with_seed(1);
    let initializer = compute_dtype.into_iter().fold(initializer, Initializer::with_compute_dtype);
    let mut model = Decoder::new(DecoderConfig::from_json(config, None)?, &initializer)?;
    if rank > 0 {
        model.add_lora(&LoraOptions::new(rank), 1)?;
    }
    let text = TextFile::from_bytes("to be, or not to be, that is the question: ".repeat(20));
    let text = TokenizedText::new(text, &ByteTokenizer)?;
    Trainer::with_model(model, text, Some(&ByteTokenizer), options)
}
