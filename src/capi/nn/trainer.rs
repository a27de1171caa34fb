//! Trainers of transformers, and their checkpoints.

use std::ffi::{c_char, c_void};

use super::super::arguments::{out, out_structure, structure, text};
use super::super::buffer::User;
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, object, sv_gpt_trainer, sv_model, sv_tokenizer};
use super::super::tensor::{device, flag};
use super::gpt::{config_of, goes_on, last_checkpoint, sv_gpt_config};
use super::model::{ModelContent, ModelObject};
use super::tokenizer::{TokenizerObject, bytes_of};
use crate::nn::{Checkpoints, LossScale, Recompute, StepReport, TextFile, Trainer, TrainerOptions};

/// A trainer behind a handle: the model with the content [`ModelContent::Trainer`].
#[derive(Clone)]
pub(crate) struct TrainerObject(ModelObject);
object!(TrainerObject, Trainer);

/// Runs `work` on the trainer of a handle. Others that use the trainer or its model wait meanwhile.
fn with_trainer(handle: u64, work: &mut dyn FnMut(&mut Trainer) -> Result<()>) -> Result<()> {
    let object = TrainerObject::table().get(handle, "trainer")?;
    let mut model = object.0.write();
    match &mut model.content {
        ModelContent::Trainer(trainer) => work(trainer),
        _ => Err(Failure::argument("trainer", "a model without a trainer", "one of sv_gpt_trainer_create")),
    }
}

/// A backward of a trainer's step that computes no activation again.
pub const SV_RECOMPUTE_NOTHING: i32 = 0;
/// A backward that computes the feed-forward of each block and the norm before it again.
pub const SV_RECOMPUTE_FEED_FORWARD: i32 = 1;
/// A backward that computes whole blocks again.
pub const SV_RECOMPUTE_BLOCKS: i32 = 2;

/// The numbers of a run of training. `sv_gpt_trainer_defaults` sets all of them.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_gpt_trainer_options {
    /// The size of the struct in bytes.
    pub size: usize,
    /// Steps of the run, which the schedule of the learning rate is drawn over.
    pub steps: u64,
    /// Steps of the warm-up.
    pub warmup_steps: u64,
    /// Sequences of a batch.
    pub batch: usize,
    /// Ids of a sequence; 0 for the model's context.
    pub context: usize,
    /// Batches whose gradients are averaged in a step.
    pub accumulation: usize,
    /// Batches of the validation text in an evaluation.
    pub evaluation_batches: usize,
    /// The largest learning rate, above 0.
    pub learning_rate: f64,
    /// The learning rate at the end.
    pub min_learning_rate: f64,
    /// AdamW's decay, of parameters with two axes or more.
    pub weight_decay: f64,
    /// AdamW's decay of the mean of gradients.
    pub beta1: f64,
    /// AdamW's decay of the mean of squares.
    pub beta2: f64,
    /// The largest norm of all gradients together; 0 to leave them.
    pub max_norm: f64,
    /// The seed of the weights, the batches and the dropout.
    pub seed: u64,
}

/// The figures of a step.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_gpt_step {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The step, counted from 1.
    pub step: u64,
    /// The mean loss of its batches, in nats an id.
    pub loss: f64,
    /// The norm of all gradients together before clipping; NaN if they are not clipped.
    pub grad_norm: f64,
    /// The learning rate.
    pub learning_rate: f64,
}

/// A function that is called after each step of a trainer, on the thread that trains. The struct is valid during the call. It
/// returns `SV_CONTINUE`, or `SV_STOP` to end the run, and may call functions of the trainer, such as `sv_gpt_trainer_evaluate`.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_gpt_step_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, step: *const sv_gpt_step) -> i32>;

/// Writes the default numbers of a run, which suit a small model: 300 steps of 16 sequences, a learning rate of 5e-3 that falls
/// to 5e-4 after 20 steps of warm-up, and gradients clipped to norm 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_trainer_defaults(options: *mut sv_gpt_trainer_options) -> i32 {
    guard::call("sv_gpt_trainer_defaults", || {
        let options = out_structure(options, "options")?;
        let default = TrainerOptions::default();
        options.write(sv_gpt_trainer_options {
            size: 0,
            steps: default.steps,
            warmup_steps: default.warmup_steps,
            batch: default.batch,
            context: default.context.unwrap_or(0),
            accumulation: default.accumulation,
            evaluation_batches: default.evaluation_batches,
            learning_rate: default.learning_rate,
            min_learning_rate: default.min_learning_rate,
            weight_decay: default.weight_decay,
            beta1: default.betas.0,
            beta2: default.betas.1,
            max_norm: default.max_norm.unwrap_or(0.0),
            seed: default.seed,
        });
        Ok(())
    })
}

/// Creates a trainer: a new transformer, its optimizer, and a text, of which the last tenth is for evaluations.
///
/// The text is copied. All of a run follows from the options, the text and the device, bit for bit.
///
/// # Safety
///
/// `text` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_trainer_create(
    config: *const sv_gpt_config,
    text: *const c_char,
    bytes: usize,
    tokenizer: sv_tokenizer,
    options: *const sv_gpt_trainer_options,
    device: i32,
    trainer: *mut sv_gpt_trainer,
) -> i32 {
    guard::call("sv_gpt_trainer_create", || {
        let (config, text, options, result) = (
            config_of(config)?,
            bytes_of(text, bytes)?,
            structure(options, "options")?,
            out(trainer, "trainer")?,
        );
        let (tokenizer, device) = (TokenizerObject::find(tokenizer)?, self::device(device)?);
        if options.learning_rate == 0.0 {
            let wanted = "a number above 0, such as that of sv_gpt_trainer_defaults";
            return Err(Failure::argument(
                "options.learning_rate",
                "0, as in a struct that sets none",
                wanted,
            ));
        }
        let options = TrainerOptions {
            steps: options.steps,
            batch: options.batch,
            context: (options.context > 0).then_some(options.context),
            accumulation: options.accumulation,
            learning_rate: options.learning_rate,
            min_learning_rate: options.min_learning_rate,
            warmup_steps: options.warmup_steps,
            weight_decay: options.weight_decay,
            betas: (options.beta1, options.beta2),
            max_norm: (options.max_norm != 0.0).then_some(options.max_norm),
            evaluation_batches: options.evaluation_batches,
            seed: options.seed,
            ..TrainerOptions::default()
        };
        let created = Trainer::new(config, TextFile::from_bytes(text), &*tokenizer.0, options, &device)?;
        let model = ModelObject::new(ModelContent::Trainer(Box::new(created)), device);
        result.write(TrainerObject::table().insert(TrainerObject(model))?);
        Ok(())
    })
}

/// Gives the model of a trainer, which later steps go on to change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_trainer_model(trainer: sv_gpt_trainer, model: *mut sv_model) -> i32 {
    guard::call("sv_gpt_trainer_model", || {
        let result = out(model, "model")?;
        let TrainerObject(model) = TrainerObject::table().get(trainer, "trainer")?;
        result.write(ModelObject::table().insert(model)?);
        Ok(())
    })
}

/// Takes `count` steps, 1 or more, and writes the figures of the last one. `callback`, if not NULL, is called after each step
/// and may end the run.
///
/// A loss that is not finite is an error that names the step; the parameters are those of the step before then. Others that use
/// the trainer or its model wait during each step.
///
/// # Safety
///
/// `last` points to a struct, and `callback` may be called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_trainer_run(
    trainer: sv_gpt_trainer,
    count: u64,
    callback: sv_gpt_step_callback,
    user: *mut c_void,
    last: *mut sv_gpt_step,
) -> i32 {
    guard::call("sv_gpt_trainer_run", || {
        let (result, user) = (out_structure(last, "last")?, User(user));
        let mut last = None;
        for _ in 0..count {
            let mut taken = None;
            with_trainer(trainer, &mut |trainer| {
                taken = Some(trainer.step()?);
                Ok(())
            })?;
            let Some(StepReport { step, loss, grad_norm, learning_rate, .. }) = taken else { break };
            let size = size_of::<sv_gpt_step>();
            let grad_norm = grad_norm.unwrap_or(f64::NAN);
            let taken = last.insert(sv_gpt_step { size, step, loss, grad_norm, learning_rate });
            if let Some(callback) = callback {
                // SAFETY: the caller vouches for the function and its pointer; the struct lives during the call.
                if !goes_on(unsafe { callback(user.pointer(), taken) })? {
                    break;
                }
            }
        }
        result.write(last.ok_or_else(|| Failure::argument("count", count, "1 or more steps"))?);
        Ok(())
    })
}

/// Multiplies the loss by a scale in the steps of a trainer, for a model that computes in f16. A step whose gradients are not
/// finite is skipped: it leaves the parameters as they were, and the scale is multiplied by `backoff_factor`, but does not
/// fall below 2^-14. After `growth_interval` steps in a row that were not skipped, the scale is multiplied by `growth_factor`.
/// Factors of 1 keep it.
///
/// It must be called before the first step, and before `sv_gpt_trainer_resume`. PyTorch's numbers are 65536, 2, 0.5 and 2000.
/// Others that use the trainer or its model wait meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn sv_gpt_trainer_set_loss_scale(
    trainer: sv_gpt_trainer,
    initial: f64,
    growth_factor: f64,
    backoff_factor: f64,
    growth_interval: u32,
) -> i32 {
    guard::call("sv_gpt_trainer_set_loss_scale", || {
        let scale = LossScale { initial, growth_factor, backoff_factor, growth_interval };
        with_trainer(trainer, &mut |trainer| Ok(trainer.set_loss_scale(Some(scale))?))
    })
}

/// Writes the loss scale of a trainer's next step; 0 without one. `grad_norm` of a skipped step is infinite or NaN.
///
/// Others that use the trainer or its model wait meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_trainer_loss_scale(trainer: sv_gpt_trainer, scale: *mut f64) -> i32 {
    guard::call("sv_gpt_trainer_loss_scale", || {
        let (result, mut scale) = (out(scale, "scale")?, 0.0);
        with_trainer(trainer, &mut |trainer| {
            scale = trainer.loss_scale()?.unwrap_or(0.0);
            Ok(())
        })?;
        result.write(scale);
        Ok(())
    })
}

/// Sets the activations that the backward of a trainer's later steps computes again, by a code `SV_RECOMPUTE_...`. The bits of the
/// steps stay the same. `SV_RECOMPUTE_BLOCKS` takes the least memory, for about one more forward a step.
///
/// Others that use the trainer or its model wait meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn sv_gpt_trainer_set_recompute(trainer: sv_gpt_trainer, recompute: i32) -> i32 {
    guard::call("sv_gpt_trainer_set_recompute", || {
        let choice = match recompute {
            SV_RECOMPUTE_NOTHING => Recompute::Nothing,
            SV_RECOMPUTE_FEED_FORWARD => Recompute::FeedForward,
            SV_RECOMPUTE_BLOCKS => Recompute::Blocks,
            other => return Err(Failure::argument("recompute", other, "a code SV_RECOMPUTE_...")),
        };
        with_trainer(trainer, &mut |trainer| {
            trainer.set_recompute(choice);
            Ok(())
        })
    })
}

/// Writes the mean loss of some batches of the validation text, the same at each call, in nats an id.
///
/// Others that use the trainer or its model wait meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_trainer_evaluate(trainer: sv_gpt_trainer, loss: *mut f64) -> i32 {
    guard::call("sv_gpt_trainer_evaluate", || {
        let (result, mut loss) = (out(loss, "loss")?, 0.0);
        with_trainer(trainer, &mut |trainer| {
            loss = trainer.evaluate()?;
            Ok(())
        })?;
        result.write(loss);
        Ok(())
    })
}

/// Writes the number of steps that a trainer has taken, with those before its checkpoint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_trainer_steps(trainer: sv_gpt_trainer, steps: *mut u64) -> i32 {
    guard::call("sv_gpt_trainer_steps", || {
        let (result, mut steps) = (out(steps, "steps")?, 0);
        with_trainer(trainer, &mut |trainer| {
            steps = trainer.step_count();
            Ok(())
        })?;
        result.write(steps);
        Ok(())
    })
}

/// Saves a checkpoint of a trainer in a folder of checkpoints, which is created if it is missing. The last three checkpoints
/// stay, and the one of the lowest loss of `sv_gpt_trainer_evaluate`.
///
/// `SV_ERROR_FILE` if another process writes to the folder. Others that use the trainer or its model wait meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_trainer_save(trainer: sv_gpt_trainer, folder: *const c_char) -> i32 {
    guard::call("sv_gpt_trainer_save", || {
        let folder = text(folder, "folder")?;
        with_trainer(trainer, &mut |trainer| {
            Checkpoints::open(folder)?.save(&trainer.checkpoint()?)?;
            Ok(())
        })
    })
}

/// Continues from the last checkpoint in a folder, of a run with the same model, tokenizer and seed; the steps that follow are
/// those of the run without a break, bit for bit. `allow_other_text` is 1 to continue on another text, or 0.
///
/// Others that use the trainer or its model wait meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_trainer_resume(
    trainer: sv_gpt_trainer,
    folder: *const c_char,
    allow_other_text: i32,
) -> i32 {
    guard::call("sv_gpt_trainer_resume", || {
        let folder = text(folder, "folder")?;
        let allow_other_text = flag(allow_other_text, "allow_other_text")?;
        with_trainer(trainer, &mut |trainer| {
            let checkpoint = last_checkpoint(folder, &trainer.model().device())?;
            Ok(trainer.resume(&checkpoint, allow_other_text)?)
        })
    })
}
