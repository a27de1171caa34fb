//! Transformers of GPT-2's architecture: their configuration, loss and generation.
//!
//! A transformer is a model: `sv_model_forward` computes its logits, and `sv_model_load` and `sv_model_save` read and write its
//! parameters with Hugging Face's names.

use std::ffi::{CString, c_char, c_void};

use super::super::arguments::{
    or_default, out, out_structure, slice, slice_mut, structure, text, write_some, write_text,
};
use super::super::buffer::User;
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, sv_model, sv_tensor, sv_tokenizer, sv_variable};
use super::super::tensor::{SV_DTYPE_NONE, device, dtype, dtype_code, flag, parameter_dtype, tensor};
use super::model::{
    EvaluationMode, Model, ModelContent, ModelObject, SV_NN_GELU, SV_NN_GELU_TANH, SV_NN_RELU, SV_NN_SILU,
};
use super::tokenizer::TokenizerObject;
use super::variable::give_variable;
use crate::nn::{
    Activation, Batch, CheckpointList, Generation, Gpt, GptConfig, Initializer, Module, Sampler,
    SamplerOptions, tokenizer_from_json,
};
use crate::tensor::Generator;

/// The result of a callback that lets the function go on.
pub const SV_CONTINUE: i32 = 0;
/// The result of a callback that ends the function, which then succeeds.
pub const SV_STOP: i32 = 1;

/// The sizes and options of a transformer. Zeros are the defaults, but for `size` and the five sizes.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_gpt_config {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The number of token ids.
    pub vocab_size: usize,
    /// The longest sequence.
    pub context: usize,
    /// The size of the embeddings.
    pub width: usize,
    /// The number of blocks.
    pub layers: usize,
    /// The number of attention heads, which divide the width.
    pub heads: usize,
    /// The probability of dropout.
    pub dropout: f64,
    /// The number that norms add to the variance; 0 for 1e-5.
    pub norm_eps: f64,
    /// `SV_NN_GELU_TANH`, which 0 is too, `SV_NN_GELU`, `SV_NN_RELU` or `SV_NN_SILU`.
    pub activation: i32,
    /// 1 if the products of a block have no bias.
    pub without_bias: i32,
    /// 1 if the head has a weight of its own; otherwise it is the token embedding.
    pub untied_head: i32,
    /// The dtype of activations and products: `SV_DTYPE_BF16` or `SV_DTYPE_F16`, or `SV_DTYPE_NONE` for that of
    /// the parameters.
    pub compute_dtype: i32,
}

/// Returns the configuration at a pointer.
///
/// # Safety
///
/// As [`structure`].
pub(super) unsafe fn config_of(config: *const sv_gpt_config) -> Result<GptConfig> {
    let config = structure(config, "config")?;
    let &sv_gpt_config { vocab_size, context, width, layers, heads, dropout, norm_eps, .. } = config;
    Ok(GptConfig {
        vocab_size,
        context,
        width,
        layers,
        heads,
        dropout,
        activation: match config.activation {
            0 | SV_NN_GELU_TANH => Activation::GeluTanh,
            SV_NN_GELU => Activation::Gelu,
            SV_NN_RELU => Activation::Relu,
            SV_NN_SILU => Activation::Silu,
            other => {
                let wanted = "0, SV_NN_GELU_TANH, SV_NN_GELU, SV_NN_RELU or SV_NN_SILU";
                return Err(Failure::argument("config->activation", other, wanted));
            }
        },
        vocab_multiple: 1,
        has_bias: !flag(config.without_bias, "config->without_bias")?,
        has_tied_head: !flag(config.untied_head, "config->untied_head")?,
        norm_eps: or_default(norm_eps, 1e-5),
        compute_dtype: match config.compute_dtype {
            SV_DTYPE_NONE => None,
            code => Some(dtype(code)?),
        },
    })
}

impl Model {
    fn gpt(&self) -> Result<&Gpt> {
        match &self.content {
            ModelContent::Gpt(gpt) => Ok(gpt),
            ModelContent::Trainer(trainer) => Ok(trainer.model()),
            ModelContent::Layers(_) => {
                Err(Failure::argument("model", "a model of layers", "one of sv_gpt_create or a trainer"))
            }
        }
    }
}

/// Creates a transformer with new weights of a seed, as the GPT-2 paper draws them, in the training mode.
///
/// `sv_model_forward` and `sv_model_predict` take ids of shape (batch, length), `SV_DTYPE_I64` or `SV_DTYPE_I32`, and give logits
/// of shape (batch, length, vocabulary).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_create(
    config: *const sv_gpt_config,
    dtype: i32,
    device: i32,
    seed: u64,
    model: *mut sv_model,
) -> i32 {
    guard::call("sv_gpt_create", || {
        let (config, model) = (config_of(config)?, out(model, "model")?);
        let (dtype, device) = (parameter_dtype(dtype)?, self::device(device)?);
        let initializer = Initializer::new(&device).with_dtype(dtype).with_generator(&Generator::new(seed));
        let created = ModelObject::new(ModelContent::Gpt(Box::new(Gpt::new(config, &initializer)?)), device);
        model.write(ModelObject::table().insert(created)?);
        Ok(())
    })
}

/// Writes the configuration of a transformer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_configuration(model: sv_model, config: *mut sv_gpt_config) -> i32 {
    guard::call("sv_gpt_configuration", || {
        let result = out_structure(config, "config")?;
        let config = *ModelObject::find(model)?.read().gpt()?.config();
        let GptConfig { vocab_size, context, width, layers, heads, dropout, norm_eps, .. } = config;
        result.write(sv_gpt_config {
            size: 0,
            vocab_size,
            context,
            width,
            layers,
            heads,
            dropout,
            norm_eps,
            activation: match config.activation {
                Activation::GeluTanh => SV_NN_GELU_TANH,
                Activation::Gelu => SV_NN_GELU,
                Activation::Relu => SV_NN_RELU,
                Activation::Silu => SV_NN_SILU,
            },
            without_bias: i32::from(!config.has_bias),
            untied_head: i32::from(!config.has_tied_head),
            compute_dtype: config.compute_dtype.map_or(SV_DTYPE_NONE, dtype_code),
        });
        Ok(())
    })
}

/// Computes the mean cross entropy of a batch in nats an id, a variable of one element. `inputs` and `targets`, the id after
/// each input, are tensors of ids of shape (batch, length).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_loss(
    model: sv_model,
    inputs: sv_tensor,
    targets: sv_tensor,
    result: *mut sv_variable,
) -> i32 {
    give_variable("sv_gpt_loss", result, &|| {
        let model = ModelObject::find(model)?;
        let batch = Batch { inputs: tensor(inputs, "inputs")?, targets: tensor(targets, "targets")? };
        let model = model.read();
        Ok(model.gpt()?.loss(&batch)?)
    })
}

/// Reads the transformer and the tokenizer of the last checkpoint in a folder, such as one of `sv_gpt_trainer_save` or of
/// `selvedge train`. The model is in the evaluation mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_load_checkpoint(
    folder: *const c_char,
    device: i32,
    model: *mut sv_model,
    tokenizer: *mut sv_tokenizer,
) -> i32 {
    guard::call("sv_gpt_load_checkpoint", || {
        let (folder, model, tokenizer) =
            (text(folder, "folder")?, out(model, "model")?, out(tokenizer, "tokenizer")?);
        let device = self::device(device)?;
        let checkpoint = last_checkpoint(folder, &device)?;
        let config = GptConfig::from_json(&checkpoint.info.model.to_string())?;
        let found = TokenizerObject(tokenizer_from_json(&checkpoint.info.tokenizer)?.into());
        let mut gpt = Gpt::from_state_dict(config, &checkpoint.parameters, &device)?;
        gpt.eval();
        let created = ModelObject::new(ModelContent::Gpt(Box::new(gpt)), device);
        created.write().is_training = false;
        let found = TokenizerObject::table().insert(found)?;
        match ModelObject::table().insert(created) {
            Ok(created) => model.write(created),
            Err(failure) => {
                TokenizerObject::table().release(found, "tokenizer")?;
                return Err(failure);
            }
        }
        tokenizer.write(found);
        Ok(())
    })
}

/// Reads the last checkpoint of a folder.
pub(super) fn last_checkpoint(folder: &str, device: &crate::tensor::Device) -> Result<crate::nn::Checkpoint> {
    match CheckpointList::read(folder)?.latest() {
        Some(entry) => Ok(entry.load(device)?),
        None => {
            let (path, found) = (folder.to_owned(), "no checkpoint".to_owned());
            Err(crate::Error::File { path, found, wanted: "the folder of a run".to_owned() }.into())
        }
    }
}

/// The settings of a generation. Zeros are the defaults, but for `size` and `length`.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_gpt_sampling {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The number of new ids.
    pub length: usize,
    /// The divisor of the logits. With 0 the most likely id is taken.
    pub temperature: f64,
    /// The probability of the ids to draw from; 0 for 1.
    pub top_p: f64,
    /// The most ids to draw from; 0 for all.
    pub top_k: usize,
    /// The seed of the draws.
    pub seed: u64,
}

/// A function that is called after each new id of a generation, on the thread that generates: with the id, and in
/// `sv_gpt_generate_text` with the characters that the id completes, in UTF-8; elsewhere `text` is empty. The text is valid
/// during the call. It returns `SV_CONTINUE`, or `SV_STOP` to end the generation, and must not call functions of the same model.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_gpt_token_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, id: u32, text: *const c_char) -> i32>;

/// Generates the ids that continue a prompt, until `emit` returns false. The model is in the evaluation mode meanwhile.
fn generate(
    model: u64,
    prompt: &[u32],
    options: &sv_gpt_sampling,
    emit: &mut dyn FnMut(u32) -> Result<bool>,
) -> Result<()> {
    let object = ModelObject::find(model)?;
    let sampler = SamplerOptions {
        temperature: options.temperature,
        top_k: (options.top_k > 0).then_some(options.top_k),
        top_p: or_default(options.top_p, 1.0),
        ..SamplerOptions::default()
    };
    let sampler = Sampler::new(sampler, options.seed)?;
    let mut model = object.write();
    let evaluation = EvaluationMode::new(&mut model);
    for id in Generation::new(evaluation.0.gpt()?, prompt, sampler)?.take(options.length) {
        if !emit(id?)? {
            break;
        }
    }
    Ok(())
}

/// Calls a callback with a new id, and returns whether to go on.
fn notify(callback: sv_gpt_token_callback, user: &User, id: u32, text: &str) -> Result<bool> {
    let Some(callback) = callback else { return Ok(true) };
    let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
    // SAFETY: the caller of the function vouches for the callback and its pointer; the text lives during the call.
    goes_on(unsafe { callback(user.pointer(), id, text.as_ptr()) })
}

/// Returns whether the result of a callback lets the function go on.
pub(in super::super) fn goes_on(result: i32) -> Result<bool> {
    match result {
        SV_CONTINUE => Ok(true),
        SV_STOP => Ok(false),
        other => Err(Failure::argument("the callback's result", other, "SV_CONTINUE or SV_STOP")),
    }
}

/// Generates ids that continue a prompt. When the context is full, the model reads the last half of it again and goes on.
///
/// `callback`, if not NULL, is called after each id. `count` gets the number of new ids; the array gets the first `capacity` of
/// them. Others that use the model wait meanwhile.
///
/// # Safety
///
/// `prompt` points to `prompt_count` numbers, and `ids` to `capacity` numbers. `callback` may be called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_generate(
    model: sv_model,
    prompt: *const u32,
    prompt_count: usize,
    options: *const sv_gpt_sampling,
    callback: sv_gpt_token_callback,
    user: *mut c_void,
    ids: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_gpt_generate", || {
        // Checked before the work. The slice ends here, because `prompt` may be the same memory.
        slice_mut(ids, capacity, "ids")?;
        let (prompt, options, count) =
            (slice(prompt, prompt_count, "prompt")?, structure(options, "options")?, out(count, "count")?);
        let (user, mut found) = (User(user), Vec::new());
        generate(model, prompt, options, &mut |id| {
            found.push(id);
            notify(callback, &user, id, "")
        })?;
        write_some(&found, ids, capacity, "ids")?;
        count.write(found.len());
        Ok(())
    })
}

/// Generates text that continues a prompt, by a tokenizer of the model's ids. The text has no prompt.
///
/// `callback`, if not NULL, is called after each id with the characters that the id completes. The text is cut to fit `capacity`;
/// `*length` gets the bytes of the whole text. Others that use the model wait meanwhile.
///
/// # Safety
///
/// `prompt` points to a zero-terminated text, `options` to a struct, `text` is NULL or points to `capacity` bytes, and `length`
/// is NULL or points to a `size_t`. `callback` may be called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gpt_generate_text(
    model: sv_model,
    tokenizer: sv_tokenizer,
    prompt: *const c_char,
    options: *const sv_gpt_sampling,
    callback: sv_gpt_token_callback,
    user: *mut c_void,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_gpt_generate_text", || {
        let (prompt, options) = (self::text(prompt, "prompt")?, structure(options, "options")?);
        let tokenizer = TokenizerObject::find(tokenizer)?.0;
        let (user, mut bytes, mut passed) = (User(user), Vec::new(), 0);
        generate(model, &tokenizer.encode(prompt)?, options, &mut |id| {
            bytes.extend(tokenizer.decode_bytes(&[id])?);
            let new = bytes.get(passed..).unwrap_or_default();
            let whole = match std::str::from_utf8(new) {
                // A character whose bytes have not all come.
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => new.len(),
            };
            let characters = String::from_utf8_lossy(new.get(..whole).unwrap_or_default());
            passed += whole;
            notify(callback, &user, id, &characters)
        })?;
        write_text(&String::from_utf8_lossy(&bytes), text, capacity, length)
    })
}
