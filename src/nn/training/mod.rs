//! Runs of training: the steps of a language model, and checkpoints in a folder.
//!
//! | file | contents |
//! |---|---|
//! | `checkpoint` | [`Checkpoint`], the state of a run, and [`CheckpointInfo`], its part in JSON |
//! | `checkpoints` | [`Checkpoints`], a folder that one process writes, and [`CheckpointList`], its contents |
//! | `language_model` | [`LanguageModel`], the models that a trainer trains |
//! | `lock` | the lock of the folder |
//! | `loss_scale` | [`LossScale`], the factor of a loss for gradients in f16 |
//! | `options` | [`TrainerOptions`], the numbers of a run |
//! | `step` | [`TrainingStep`], the step of any model, captured as one graph |
//! | `step_graph` | the capture and the launches of a step |
//! | `trainer` | [`Trainer`], a model with its optimizer and its text |
//!
//! Invariants:
//!
//! - A checkpoint is a folder that appears by a rename, after its files are on the disk, and disappears by a rename. A
//!   process that is killed at any moment leaves the last checkpoint whole.
//! - Each file's SHA-256 is compared before its contents are used.
//! - A captured step has the bits of an uncaptured one.
//! - Numbers are read back as the bits that were written.
//!
//! Tests: `tests/nn/checkpoints.rs`, `tests/nn/trainer.rs`, `tests/nn/step.rs`,
//! `tests/nn/loss_scale.rs`, `tests/nn/saved_models.rs`.

mod checkpoint;
mod checkpoints;
mod language_model;
mod lock;
mod loss_scale;
mod options;
mod step;
mod step_graph;
mod trainer;

pub(super) use checkpoint::hash_of;
pub use checkpoint::{BestCheckpoint, Checkpoint, CheckpointInfo};
pub use checkpoints::{CheckpointEntry, CheckpointList, Checkpoints};
pub use language_model::LanguageModel;
pub use loss_scale::LossScale;
pub use options::TrainerOptions;
pub use step::TrainingStep;
pub use trainer::{StepReport, Trainer};
