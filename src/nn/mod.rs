//! Neural networks on tensors: automatic differentiation, layers, losses and optimizers.
//!
//! | file | contents |
//! |---|---|
//! | `autograd` | [`Variable`], the tape, gradients of operations and of gradients, [`scaled_dot_product_attention`], [`linear_cross_entropy`], [`linear_layers`], custom functions, [`checkpoint`](fn@checkpoint) |
//! | `backend` | [`Backend`]: the operations of a network on [`Cpu`] or [`Cuda`], with automatic transfers on request |
//! | `module` | [`Module`]: a forward, named parameters, train and eval modes, `state_dict` |
//! | `initializer` | [`Initializer`]: the device, dtype and first values of parameters; [`WeightDistribution`] |
//! | `layers` | [`Linear`], [`Embedding`], [`LayerNorm`], [`RmsNorm`], [`BatchNorm1d`], [`BatchNorm2d`], [`Dropout`], [`MultiHeadAttention`], [`FeedForward`], [`TransformerBlock`], [`Sequential`], activations |
//! | `decoder` | [`Decoder`], a decoder-only transformer that a Hugging Face configuration describes, with its files, cache and generation |
//! | `gpt` | [`Gpt`], a decoder-only transformer, and [`Generation`] |
//! | `host_layers` | layers of one new position on the CPU, by slices instead of tensors |
//! | `limited_file` | the bytes of a file of limited size |
//! | `losses` | [`mse_loss`], [`cross_entropy`] and others, with PyTorch's defaults |
//! | `parameters` | [`Parameters`]: one buffer for each dtype, so that a step is one launch |
//! | `recompute` | [`Recompute`]: the activations that a backward computes again |
//! | `optimizers` | [`Sgd`], [`Adam`], [`AdamW`], [`Lion`], [`Adafactor`], [`Muon`], [`OptimizerPair`], [`clip_grad_norm`], [`LearningRateSchedule`] |
//! | `data_loader` | [`DataLoader`]: batches of the rows of tensors |
//! | `permutation` | the shuffled order of rows and windows |
//! | `text` | [`Tokenizer`], [`TextFile`], [`TokenFiles`], [`TokenizedText`], [`Batches`] |
//! | `training` | [`TrainingStep`]: a step as one graph; [`Checkpoints`]: the state of a run in a folder, from which it resumes bit for bit |
//!
//! ```
//! use selvedge::nn::{Adam, Initializer, Linear, Module, Optimizer, Reduction, Sequential, Tanh, Variable, mse_loss};
//! use selvedge::{Device, Tensor};
//!
//! let device = Device::best();
//! let x = Variable::new(Tensor::new([[0.0f32, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], &device)?);
//! let y = Variable::new(Tensor::new([[0.0f32], [1.0], [1.0], [0.0]], &device)?);
//! let initializer = Initializer::new(&device).with_seed(1);
//! let model = Sequential::new()
//!     .with(Linear::new(2, 8, &initializer)?)
//!     .with(Tanh)
//!     .with(Linear::new(8, 1, &initializer)?);
//! let mut optimizer = Adam::new(model.parameters(), 0.05)?;
//! for _ in 0..3 {
//!     optimizer.zero_grad();
//!     mse_loss(&model.forward(&x)?, &y, Reduction::Mean)?.backward()?;
//!     optimizer.step()?;
//! }
//! # Ok::<(), selvedge::Error>(())
//! ```

mod autograd;
mod backend;
mod checks;
mod data_loader;
mod decoder;
mod gpt;
mod host_layers;
mod initializer;
mod layers;
mod limited_file;
mod losses;
mod module;
mod optimizers;
mod parameters;
mod permutation;
mod precision;
mod recompute;
mod text;
mod training;

pub use autograd::{
    AttentionOptions, DynamicFusedFunction, Function, FunctionContext, FusedFunction, LinearLayer,
    NoGradGuard, Variable, VariableOperand, apply, checkpoint, detect_anomaly, is_grad_enabled,
    linear_cross_entropy, linear_layers, no_grad, scaled_dot_product_attention,
};
pub use backend::{AutomaticTransfers, Backend, Cpu, Cuda, TransferCounts};
pub use data_loader::{DataLoader, DataLoaderOptions, DataLoaderState};
pub use decoder::{
    Decoder, DecoderCache, DecoderConfig, DecoderGeneration, DecoderOptions, GenerationOptions, LoraOptions,
    TextLoss,
};
pub use gpt::{Generation, Gpt, GptConfig, KeyValueCache, LogProbabilities, Sampler, SamplerOptions};
pub use initializer::{Initializer, WeightDistribution};
pub use layers::{
    Activation, BatchNorm1d, BatchNorm2d, Dropout, Embedding, FeedForward, FeedForwardOptions, Gelu,
    GeluTanh, LayerNorm, Linear, MultiHeadAttention, MultiHeadAttentionOptions, Relu, RmsNorm, Sequential,
    Sigmoid, Silu, Tanh, TransformerBlock,
};
pub use losses::{
    CrossEntropyOptions, Reduction, binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy,
    kl_div, mse_loss, nll_loss,
};
pub use module::Module;
pub use optimizers::{
    Adafactor, Adam, AdamW, LearningRateSchedule, Lion, Muon, MuonRateAdjustment, Optimizer, OptimizerPair,
    ScheduleShape, Sgd, clip_grad_norm,
};
pub use parameters::Parameters;
pub use recompute::Recompute;
pub use text::{
    Batch, Batches, ByteTokenizer, CharTokenizer, Split, StopFilter, StreamDecoder, TextFile, TokenFiles,
    TokenFormat, TokenWriter, TokenizedText, Tokenizer, tokenizer_from_json,
};
#[cfg(feature = "models")]
pub use text::{BpeOptions, ChatMessage, ChatTemplate, SplitPattern, SubwordTokenizer};
pub use training::{
    BestCheckpoint, Checkpoint, CheckpointEntry, CheckpointInfo, CheckpointList, Checkpoints, LanguageModel,
    LossScale, StepReport, Trainer, TrainerOptions, TrainingStep,
};
