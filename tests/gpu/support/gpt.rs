//! A small transformer and the text that tests train it on.

use selvedge::nn::{ByteTokenizer, GptConfig, TextFile, Trainer, TrainerOptions};
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
