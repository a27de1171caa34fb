//! Decoders: transformers of the families that Hugging Face folders hold, such as GPT-2 and Llama.
//!
//! A decoder never changes, so any number of threads may use one at a time.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use super::super::arguments::{or_default, out, slice, structure, text};
use super::super::buffer::User;
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, object, sv_decoder, sv_tensor};
use super::super::tensor::{SV_DTYPE_NONE, device, flag, give, parameter_dtype, tensor};
use super::gpt::goes_on;
use crate::nn::{Decoder, DecoderGeneration, DecoderOptions, GenerationOptions, Module, Variable, no_grad};

/// The id of a sequence that has ended, in the steps of a generation.
pub const SV_NO_ID: u32 = u32::MAX;

/// A decoder behind a handle.
#[derive(Clone)]
pub(crate) struct DecoderObject(Arc<Decoder>);
object!(DecoderObject, Decoder);

impl DecoderObject {
    fn find(handle: u64) -> Result<DecoderObject> {
        DecoderObject::table().get(handle, "decoder")
    }
}

/// Loads the decoder of a folder as Hugging Face publishes it: `config.json`, `generation_config.json` if there is one, and
/// `model.safetensors` or the files of `model.safetensors.index.json`.
///
/// `dtype` is that of the parameters. `SV_DTYPE_NONE` is the dtype of the stored embedding, but f32 on the CPU for 16 bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_decoder_load(
    folder: *const c_char,
    device: i32,
    dtype: i32,
    decoder: *mut sv_decoder,
) -> i32 {
    guard::call("sv_decoder_load", || {
        let (folder, decoder) = (text(folder, "folder")?, out(decoder, "decoder")?);
        let dtype = match dtype {
            SV_DTYPE_NONE => None,
            code => Some(parameter_dtype(code)?),
        };
        let options = DecoderOptions { dtype, ..DecoderOptions::default() };
        let loaded = Decoder::load(folder, &self::device(device)?, &options)?;
        decoder.write(DecoderObject::table().insert(DecoderObject(Arc::new(loaded)))?);
        Ok(())
    })
}

/// Writes a decoder into a folder, which is created, in the files and names that `sv_decoder_load` and transformers read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_decoder_save(decoder: sv_decoder, folder: *const c_char) -> i32 {
    guard::call("sv_decoder_save", || {
        let folder = text(folder, "folder")?;
        Ok(DecoderObject::find(decoder)?.0.save(folder)?)
    })
}

/// Runs the body of a function that writes a number of a decoder.
///
/// # Safety
///
/// `result` is NULL or points to a `size_t` that this call alone uses.
unsafe fn give_size(
    function: &'static str,
    decoder: u64,
    result: *mut usize,
    name: &str,
    size: fn(&Decoder) -> usize,
) -> i32 {
    guard::call(function, || {
        let result = out(result, name)?;
        result.write(size(&DecoderObject::find(decoder)?.0));
        Ok(())
    })
}

/// Writes the number of ids. Ids are 0 to that number less 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_decoder_vocab_size(decoder: sv_decoder, size: *mut usize) -> i32 {
    give_size("sv_decoder_vocab_size", decoder, size, "size", |decoder| decoder.config().vocab_size())
}

/// Writes the number of positions that the decoder was made for. A decoder with learned positions has no others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_decoder_context(decoder: sv_decoder, context: *mut usize) -> i32 {
    give_size("sv_decoder_context", decoder, context, "context", |decoder| decoder.config().context())
}

/// Writes the number of elements of the parameters. A head that is the token embedding counts once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_decoder_parameter_count(decoder: sv_decoder, count: *mut usize) -> i32 {
    give_size("sv_decoder_parameter_count", decoder, count, "count", |decoder| {
        decoder.config().parameter_count()
    })
}

/// Computes the logits of a batch of ids, a tensor of shape (batch, length, vocabulary). `ids` has the shape (batch, length) and
/// `SV_DTYPE_I64` or `SV_DTYPE_I32`, on the decoder's device. Nothing is recorded for gradients.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_decoder_logits(
    decoder: sv_decoder,
    ids: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_decoder_logits", result, || {
        let (decoder, ids) = (DecoderObject::find(decoder)?.0, tensor(ids, "ids")?);
        Ok(no_grad(|| decoder.forward(&Variable::new(ids)))?.tensor())
    })
}

/// The settings of a generation of `sv_decoder_generate`. Zeros are the defaults, but for `size` and `max_new_ids`.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_decoder_options {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The most new ids of a sequence, at least 1.
    pub max_new_ids: usize,
    /// The divisor of the logits. With 0 the most likely id is taken.
    pub temperature: f64,
    /// The probability of the ids to draw from; 0 for 1.
    pub top_p: f64,
    /// The most ids to draw from; 0 for all.
    pub top_k: usize,
    /// The least probability of an id to draw, as a share of that of the most likely one.
    pub min_p: f64,
    /// The divisor of positive logits, and the factor of others, for ids of the prompt and drawn ids; 0 for 1.
    pub repetition_penalty: f64,
    /// The number that is subtracted from the logit of an id that was drawn before.
    pub presence_penalty: f64,
    /// The number that is subtracted from the logit of an id for each time that it was drawn.
    pub frequency_penalty: f64,
    /// The seed of the draws. Sequence i draws from seed + i, whatever the other sequences are.
    pub seed: u64,
    /// The ids that end a sequence; NULL for those of the decoder's configuration.
    pub end_ids: *const u32,
    /// The number of `end_ids`.
    pub end_id_count: usize,
    /// 1 if no id ends a sequence.
    pub ignores_end_ids: i32,
    /// 1 for logits whose bits do not depend on the other prompts; an error where no algorithm has that.
    pub is_batch_invariant: i32,
}

/// Returns the options in a struct.
///
/// # Safety
///
/// `end_ids` points to `end_id_count` numbers.
unsafe fn generation_options(options: &sv_decoder_options) -> Result<GenerationOptions> {
    if options.max_new_ids == 0 {
        return Err(Failure::argument("options->max_new_ids", 0, "1 or more"));
    }
    let end_ids = slice(options.end_ids, options.end_id_count, "options->end_ids")?;
    let end_ids = match (flag(options.ignores_end_ids, "options->ignores_end_ids")?, end_ids) {
        (true, []) => Some(Vec::new()),
        (true, ids) => {
            let found = format!("{} ids and options->ignores_end_ids", ids.len());
            return Err(Failure::argument("options->end_ids", found, "one of them"));
        }
        (false, []) => None,
        (false, ids) => Some(ids.to_vec()),
    };
    let mut found = GenerationOptions {
        max_new_ids: options.max_new_ids,
        end_ids,
        seed: options.seed,
        is_batch_invariant: flag(options.is_batch_invariant, "options->is_batch_invariant")?,
        ..GenerationOptions::default()
    };
    found.sampler.temperature = options.temperature;
    found.sampler.top_p = or_default(options.top_p, 1.0);
    found.sampler.top_k = (options.top_k > 0).then_some(options.top_k);
    found.sampler.min_p = options.min_p;
    found.sampler.repetition_penalty = or_default(options.repetition_penalty, 1.0);
    found.sampler.presence_penalty = options.presence_penalty;
    found.sampler.frequency_penalty = options.frequency_penalty;
    Ok(found)
}

/// A function that is called after each step of `sv_decoder_generate`, on the thread that generates: with the number of the
/// step from 0, and the new id of each of the `count` sequences, `SV_NO_ID` for one that has ended. `ids` is valid during the call.
/// It returns `SV_CONTINUE`, or `SV_STOP` to end the generation.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_decoder_step_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, step: usize, ids: *const u32, count: usize) -> i32>;

/// Generates ids that continue `count` prompts, which may differ in length, as one batch. `ids` has the ids of one prompt after
/// the other, and `lengths` the number of ids of each.
///
/// `callback` gets the new ids of each step. The last one of a sequence is the id that ended it.
///
/// # Safety
///
/// `lengths` points to `count` numbers, and `ids` to as many numbers as their sum. `options->end_ids` points to
/// `options->end_id_count` numbers. `callback` may be called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_decoder_generate(
    decoder: sv_decoder,
    ids: *const u32,
    lengths: *const usize,
    count: usize,
    options: *const sv_decoder_options,
    callback: sv_decoder_step_callback,
    user: *mut c_void,
) -> i32 {
    guard::call("sv_decoder_generate", || {
        let options = structure(options, "options")?;
        let (decoder, lengths) = (DecoderObject::find(decoder)?.0, slice(lengths, count, "lengths")?);
        let Some(callback) = callback else {
            return Err(Failure::argument("callback", "NULL", "a function, which gets the new ids"));
        };
        let options = generation_options(options)?;
        let total = lengths.iter().try_fold(0usize, |total, &length| total.checked_add(length));
        let total = total
            .ok_or_else(|| Failure::argument("lengths", "a sum beyond 2^64 - 1", "the lengths of prompts"))?;
        let mut rest = slice(ids, total, "ids")?;
        let mut prompts = Vec::new();
        for &length in lengths {
            let (prompt, others) = rest.split_at(length);
            prompts.push(prompt);
            rest = others;
        }
        let user = User(user);
        for (step, new) in DecoderGeneration::new(&decoder, &prompts, &options)?.enumerate() {
            let new: Vec<u32> = new?.into_iter().map(|id| id.unwrap_or(SV_NO_ID)).collect();
            // SAFETY: the caller vouches for the callback and its pointer; the ids live during the call.
            if !goes_on(unsafe { callback(user.pointer(), step, new.as_ptr(), new.len()) })? {
                break;
            }
        }
        Ok(())
    })
}
