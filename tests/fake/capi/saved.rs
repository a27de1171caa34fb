//! Damaged files of saved state: safetensors, models, optimizers, checkpoints, tokenizers, classifiers and evolvers. One table
//! of C functions, each with a few valid files; `fuzz` changes one of them for each case.

use std::ffi::{CStr, CString, c_char};
use std::fs;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use selvedge::capi::classifier::*;
use selvedge::capi::library::*;
use selvedge::capi::nn::gpt::*;
use selvedge::capi::nn::model::*;
use selvedge::capi::nn::optimizer::*;
use selvedge::capi::nn::tokenizer::*;
use selvedge::capi::nn::trainer::*;
use selvedge::capi::nn::variable::gradients::sv_variable_backward;
use selvedge::capi::nn::variable::sv_variable_create;
use selvedge::capi::srt::evolver::*;
use selvedge::capi::status::*;
use selvedge::capi::tensor::creation::*;
use selvedge::capi::tensor::io::*;
use selvedge::capi::tensor::{SV_DTYPE_F32, SV_DTYPE_I64};
use sha2::{Digest, Sha256};

use super::fuzz::{accepts, arrays, bounded, chosen_case, folder, mutate, run, seal, tensor_of, text};
use super::{Outcome, message};
use crate::random::Random;
use crate::support::Fake;

const CPU: i32 = -1;

type Read<'a> = Box<dyn Fn(&mut Random) -> Result<bool, Box<dyn std::error::Error>> + 'a>;

/// A C function that reads bytes nobody vouches for.
struct Entry<'a> {
    name: &'static str,
    /// The valid files, which the function reads at these paths.
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Calls the function, uses what it accepts, and returns whether it did.
    read: Read<'a>,
}

impl<'a> Entry<'a> {
    fn new(
        name: &'static str,
        paths: &[PathBuf],
        read: impl Fn(&mut Random) -> Result<bool, Box<dyn std::error::Error>> + 'a,
    ) -> Result<Entry<'a>, Box<dyn std::error::Error>> {
        let files = paths.iter().map(|path| Ok((path.clone(), fs::read(path)?)));
        Ok(Entry { name, files: files.collect::<std::io::Result<_>>()?, read: Box::new(read) })
    }
}

/// Releases the result of an accepted file. A refused one leaves none.
fn release(accepted: bool, result: u64) -> Result<bool, Box<dyn std::error::Error>> {
    match (accepted, result) {
        (false, 0) => Ok(false),
        (true, result) if result != 0 => {
            ok!(sv_release(result));
            Ok(true)
        }
        other => Err(format!("accepted and handle are {other:?}").into()),
    }
}

fn vector(dtype: i32, shape: &[i64]) -> Result<u64, Box<dyn std::error::Error>> {
    let mut tensor = 0;
    ok!(sv_tensor_ones(dtype, shape.as_ptr(), shape.len(), CPU, &mut tensor));
    Ok(tensor)
}

fn safetensors<'a>(folder: &Path) -> Result<Entry<'a>, Box<dyn std::error::Error>> {
    let path = folder.join("tensors.safetensors");
    let name = text(&path)?;
    let names = [c"a", c"b", c"c", c"d", c"e"];
    let (tensors, pointers) = (arrays()?, names.map(|name| name.as_ptr()));
    ok!(sv_tensor_write_safetensors(name.as_ptr(), pointers.as_ptr(), tensors.as_ptr(), 5));
    Entry::new("safetensors", &[path], move |random| {
        let (mut list, mut length, mut tensor) = (vec![0 as c_char; 256], 0, 0);
        let wanted = names[random.below(names.len())];
        // SAFETY: the pointers are to texts, a buffer of that size and locals.
        let (listed, read) = unsafe {
            let listed = sv_safetensors_names(name.as_ptr(), list.as_mut_ptr(), list.len(), &mut length);
            let listed = accepts(listed)?;
            (listed, accepts(sv_tensor_read_safetensors(name.as_ptr(), wanted.as_ptr(), CPU, &mut tensor))?)
        };
        match read && !listed {
            true => Err("a tensor of a file whose names were refused".into()),
            false => tensor_of(read, tensor),
        }
    })
}

/// A model and its optimizer, which has the states of one step.
fn model<'a>(folder: &Path) -> Result<[Entry<'a>; 2], Box<dyn std::error::Error>> {
    let (mut model, mut optimizer, mut input, mut output) = (0, 0, 0, 0);
    // SAFETY: zeros are a value of the struct.
    let options = sv_optimizer_options {
        size: size_of::<sv_optimizer_options>(),
        kind: SV_OPTIMIZER_ADAMW,
        learning_rate: 0.1,
        ..unsafe { std::mem::zeroed() }
    };
    ok!(sv_model_create(SV_DTYPE_F32, CPU, 1, &mut model));
    ok!(sv_model_add_linear(model, 3, 2, 1));
    ok!(sv_optimizer_create(model, &options, &mut optimizer));
    ok!(sv_variable_create(vector(SV_DTYPE_F32, &[1, 3])?, 0, &mut input));
    ok!(sv_model_forward(model, input, &mut output));
    ok!(sv_variable_backward(output, vector(SV_DTYPE_F32, &[1, 2])?));
    ok!(sv_optimizer_step(optimizer));
    let paths = [folder.join("model.safetensors"), folder.join("optimizer.safetensors")];
    let [parameters, states] = [text(&paths[0])?, text(&paths[1])?];
    ok!(sv_model_save(model, parameters.as_ptr()));
    ok!(sv_optimizer_save(optimizer, states.as_ptr()));
    // SAFETY: both paths are texts.
    let load = move |_: &mut Random| accepts(unsafe { sv_model_load(model, parameters.as_ptr()) });
    // SAFETY: as above.
    let resume = move |_: &mut Random| accepts(unsafe { sv_optimizer_load(optimizer, states.as_ptr()) });
    Ok([Entry::new("model", &paths[..1], load)?, Entry::new("optimizer", &paths[1..], resume)?])
}

/// Writes the hashes of a checkpoint's files, so that a change is not refused for its hash alone.
fn rehash(folder: &Path) -> Outcome {
    let mut lines = String::new();
    for file in ["model.safetensors", "optimizer.safetensors", "info.json"] {
        lines += &format!("{:x}  {file}\n", Sha256::digest(fs::read(folder.join(file))?));
    }
    Ok(fs::write(folder.join("SHA256SUMS"), lines)?)
}

/// Loads a checkpoint's model and tokenizer.
fn load_checkpoint(name: &CStr) -> Result<bool, Box<dyn std::error::Error>> {
    let (mut model, mut tokenizer) = (0, 0);
    // SAFETY: the pointers are to a text and locals.
    let read = accepts(unsafe { sv_gpt_load_checkpoint(name.as_ptr(), CPU, &mut model, &mut tokenizer) })?;
    release(read, model)?;
    release(read, tokenizer)
}

/// Puts a large number in place of each number of a checkpoint's information: no model of such a size is made.
fn claims(folder: &Path, name: &CStr) -> Outcome {
    let info = folder.join("info.json");
    let valid = fs::read_to_string(&info)?;
    let is_start = |at: &usize| {
        let bytes = valid.as_bytes();
        bytes[*at].is_ascii_digit() && bytes[at - 1] == b' '
    };
    let places = (1..valid.len()).filter(is_start);
    for (at, number) in places.flat_map(|at| [(at, "1152921504606846976"), (at, "65536")]) {
        let length = valid[at..].bytes().take_while(u8::is_ascii_digit).count();
        fs::write(&info, format!("{}{number}{}", &valid[..at], &valid[at + length..]))?;
        rehash(folder)?;
        bounded(|| load_checkpoint(name))
            .map_err(|error| format!("{number} at byte {at} of {valid}: {error}"))?;
    }
    fs::write(&info, valid)?;
    rehash(folder)
}

/// A checkpoint of a transformer, as a model and for the trainer that goes on.
fn checkpoint<'a>(folder: &Path) -> Result<[Entry<'a>; 2], Box<dyn std::error::Error>> {
    let folder = folder.join("checkpoints");
    let name = text(&folder)?;
    let (mut tokenizer, mut trainer, bytes) = (0, 0, "a text ".repeat(300));
    // SAFETY: zeros are a value of each struct.
    let (mut config, mut options): (sv_gpt_config, sv_gpt_trainer_options) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    config.size = size_of_val(&config);
    (config.context, config.layers, config.heads, config.width) = (8, 1, 1, 8);
    options.size = size_of_val(&options);
    let characters = bytes.as_ptr().cast();
    ok!(sv_tokenizer_characters(characters, bytes.len(), &mut tokenizer));
    ok!(sv_tokenizer_vocab_size(tokenizer, &mut config.vocab_size));
    ok!(sv_gpt_trainer_defaults(&mut options));
    ok!(sv_gpt_trainer_create(&config, characters, bytes.len(), tokenizer, &options, CPU, &mut trainer));
    ok!(sv_gpt_trainer_save(trainer, name.as_ptr()));
    let mut step = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let step = step.find(|path| path.is_dir()).ok_or("no checkpoint")?;
    let paths = ["model.safetensors", "optimizer.safetensors", "info.json", "SHA256SUMS"];
    let paths = paths.map(|file| step.join(file));
    claims(&step, &name)?;
    let again = name.clone();
    let hashes = move |random: &mut Random, folder: &Path| match random.below(4) {
        0 => Ok(()),
        _ => rehash(folder),
    };
    let (first, second) = (step.clone(), step);
    let load = move |random: &mut Random| {
        hashes(random, &first)?;
        load_checkpoint(&name)
    };
    let resume = move |random: &mut Random| {
        hashes(random, &second)?;
        // SAFETY: the pointer is to a text.
        accepts(unsafe { sv_gpt_trainer_resume(trainer, again.as_ptr(), 1) })
    };
    Ok([Entry::new("checkpoint", &paths, load)?, Entry::new("trainer", &paths, resume)?])
}

fn tokenizer<'a>(folder: &Path) -> Result<Entry<'a>, Box<dyn std::error::Error>> {
    let (mut bytes, mut characters, mut paths) = (0, 0, Vec::new());
    let sample = "some text\u{e9}";
    ok!(sv_tokenizer_bytes(&mut bytes));
    ok!(sv_tokenizer_characters(sample.as_ptr().cast(), sample.len(), &mut characters));
    for (tokenizer, name) in [(bytes, "bytes.json"), (characters, "characters.json")] {
        let (mut json, mut length) = (vec![0u8; 4096], 0);
        ok!(sv_tokenizer_to_json(tokenizer, json.as_mut_ptr().cast(), json.len(), &mut length));
        paths.push(folder.join(name));
        fs::write(folder.join(name), &json[..length])?;
        ok!(sv_release(tokenizer));
    }
    let files = paths.clone();
    Entry::new("tokenizer", &paths, move |random| {
        let mut json = fs::read(&files[random.below(files.len())])?;
        json.retain(|byte| *byte != 0);
        let (json, mut tokenizer) = (CString::new(json)?, 0);
        // SAFETY: the pointers are to a text, buffers of their sizes and locals.
        unsafe {
            let read = accepts(sv_tokenizer_from_json(json.as_ptr(), &mut tokenizer))?;
            if read {
                let (mut ids, mut count, mut text, mut length) = ([0; 8], 0, [0 as c_char; 64], 0);
                let characters = sample.as_ptr().cast();
                accepts(sv_tokenizer_encode(tokenizer, characters, 6, ids.as_mut_ptr(), 8, &mut count))?;
                accepts(sv_tokenizer_decode(tokenizer, ids.as_ptr(), 8, text.as_mut_ptr(), 64, &mut length))?;
            }
            release(read, tokenizer)
        }
    })
}

fn classifier<'a>(folder: &Path) -> Result<Entry<'a>, Box<dyn std::error::Error>> {
    let path = folder.join("model.classifier");
    let (name, mut classifier, prior) = (text(&path)?, 0, [0.5, 0.5]);
    // SAFETY: zeros are a value of the struct.
    let options = sv_classifier_options {
        size: size_of::<sv_classifier_options>(),
        features: 2,
        prior: prior.as_ptr(),
        classes: 2,
        ..unsafe { std::mem::zeroed() }
    };
    ok!(sv_classifier_create(&options, CPU, &mut classifier));
    ok!(sv_classifier_save(classifier, name.as_ptr()));
    ok!(sv_release(classifier));
    Entry::new("classifier", &[path], move |_| {
        let mut result = 0;
        // SAFETY: the pointers are to a text and a local.
        let read = accepts(unsafe { sv_classifier_load(name.as_ptr(), CPU, &mut result) })?;
        release(read, result)
    })
}

fn evolver<'a>(folder: &Path) -> Result<Entry<'a>, Box<dyn std::error::Error>> {
    let path = folder.join("state.evolver");
    let (name, mut evolver, points) = (text(&path)?, 0, vector(SV_DTYPE_I64, &[4])?);
    // SAFETY: zeros are a value of the struct.
    let mut options: sv_srt_evolver_options = unsafe { std::mem::zeroed() };
    options.size = size_of_val(&options);
    ok!(sv_srt_evolver_defaults(&mut options));
    ok!(sv_srt_evolver_create(points, points, 0, &options, None, null_mut(), &mut evolver));
    ok!(sv_srt_evolver_save(evolver, name.as_ptr()));
    ok!(sv_release(evolver));
    let sealed = path.clone();
    Entry::new("evolver", &[path], move |random| {
        let mut bytes = fs::read(&sealed)?;
        seal(random, &mut bytes);
        fs::write(&sealed, bytes)?;
        let (mut result, mut is_converged) = (0, 0);
        // SAFETY: the pointers are to a text and locals.
        unsafe {
            let read = accepts(sv_srt_evolver_restore(name.as_ptr(), CPU, None, null_mut(), &mut result))?;
            if read {
                ok!(sv_srt_evolver_is_converged(result, &mut is_converged));
            }
            release(read, result)
        }
    })
}

/// Changes a file of one function of the table after the other.
pub fn states(_: &Fake) -> Outcome {
    let folder = folder("saved")?;
    let [model, optimizer] = model(&folder)?;
    let [checkpoint, trainer] = checkpoint(&folder)?;
    let entries = [
        safetensors(&folder)?,
        model,
        optimizer,
        checkpoint,
        trainer,
        tokenizer(&folder)?,
        classifier(&folder)?,
        evolver(&folder)?,
    ];
    let mut ended = [[0u64; 2]; 8];
    run("saved", |random| {
        let index = random.below(entries.len());
        let Entry { name, files, read } = &entries[index];
        let (path, valid) = &files[random.below(files.len())];
        fs::write(path, mutate(random, valid))?;
        let accepted = read(random).map_err(|error| format!("{name}: {error}"))?;
        for (path, valid) in files {
            fs::write(path, valid)?;
        }
        ended[index][usize::from(accepted)] += 1;
        Ok(accepted)
    })?;
    // One case that is repeated has one outcome.
    let alone = chosen_case().is_some();
    match entries.iter().zip(ended).find(|(_, ended)| ended.contains(&0)) {
        Some((entry, [refused, accepted])) if !alone => {
            Err(format!("{}: {refused} files were refused and {accepted} accepted", entry.name).into())
        }
        _ => Ok(()),
    }
}
