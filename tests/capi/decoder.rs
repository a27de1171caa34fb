//! Decoders of published models, of a C program.

use std::ffi::{CString, c_void};
use std::path::Path;

use selvedge::capi::library::sv_release;
use selvedge::capi::nn::decoder::*;
use selvedge::capi::nn::gpt::SV_CONTINUE;
use selvedge::capi::status::*;
use selvedge::capi::tensor::{SV_DTYPE_BF16, SV_DTYPE_F32, SV_DTYPE_NONE};

use super::model_folders::unpacked;
use super::{CPU, check, fails, floats, integers, ok, shape_of, take};

pub fn text(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

fn load(folder: &Path, dtype: i32) -> u64 {
    let folder = text(folder);
    // SAFETY: the pointers are to a text and a number.
    ok(|result| unsafe { sv_decoder_load(folder.as_ptr(), CPU, dtype, result) })
}

fn options() -> sv_decoder_options {
    // SAFETY: the struct is made of numbers and a pointer, all of which may be 0.
    let zeros: sv_decoder_options = unsafe { std::mem::zeroed() };
    sv_decoder_options { size: size_of::<sv_decoder_options>(), max_new_ids: 6, ..zeros }
}

/// Adds the new ids to the vectors that `user` points to.
unsafe extern "C" fn collect(user: *mut c_void, _: usize, ids: *const u32, count: usize) -> i32 {
    // SAFETY: `user` is the vectors of `generate`, and the library gives as many ids.
    let (found, ids) =
        unsafe { (&mut *user.cast::<Vec<Vec<u32>>>(), std::slice::from_raw_parts(ids, count)) };
    for (found, &id) in found.iter_mut().zip(ids) {
        found.extend((id != SV_NO_ID).then_some(id));
    }
    SV_CONTINUE
}

fn generate(decoder: u64, prompts: &[&[u32]], options: &sv_decoder_options) -> Vec<Vec<u32>> {
    let (ids, lengths) = (prompts.concat(), prompts.iter().map(|prompt| prompt.len()).collect::<Vec<_>>());
    let mut found = vec![Vec::new(); prompts.len()];
    let user = (&raw mut found).cast();
    // SAFETY: the pointers are to slices of these lengths, and `collect` takes the vectors.
    check(unsafe {
        let (ids, lengths) = (ids.as_ptr(), lengths.as_ptr());
        sv_decoder_generate(decoder, ids, lengths, prompts.len(), options, Some(collect), user)
    });
    found
}

#[test]
fn decoders_of_c_have_dtypes_and_draw_by_their_options() {
    let folder = unpacked();
    let path = folder.path().join("llama2");
    let (decoder, narrow) = (load(&path, SV_DTYPE_NONE), load(&path, SV_DTYPE_BF16));
    let ids = integers(&[1, 2, 3, 4], &[1, 4]);
    // SAFETY: the pointers are to numbers.
    let logits = |decoder| ok(|result| unsafe { sv_decoder_logits(decoder, ids, result) });
    let of_narrow = logits(narrow);
    assert_eq!(shape_of(of_narrow), [1, 4, 128]);
    assert_eq!(take::<f32>(logits(decoder)).len(), 4 * 128);
    check(sv_release(of_narrow));

    let prompts: [&[u32]; 2] = [&[30, 90, 62, 35, 111], &[94, 16, 117]];
    // From reference.json: the most likely ids.
    let greedy = generate(decoder, &prompts, &options());
    assert_eq!(greedy, [[93, 11, 124, 88, 70, 28], [18, 46, 23, 88, 98, 107]]);
    assert_eq!(
        generate(decoder, &prompts, &sv_decoder_options { temperature: 9.0, top_k: 1, ..options() }),
        greedy
    );
    assert_eq!(
        generate(decoder, &prompts, &sv_decoder_options { temperature: 9.0, top_p: 1e-9, ..options() }),
        greedy
    );
    // A factor that excludes what was there makes every id a new one.
    let others = generate(decoder, &prompts, &sv_decoder_options { repetition_penalty: 1e30, ..options() });
    for (prompt, ids) in prompts.iter().zip(&others) {
        let all: std::collections::BTreeSet<u32> = prompt.iter().chain(ids).copied().collect();
        assert_eq!(all.len(), prompt.len() + ids.len(), "{prompt:?} {ids:?}");
    }
    let drawn = sv_decoder_options { temperature: 9.0, seed: 5, ..options() };
    let both = generate(decoder, &prompts, &drawn);
    assert_ne!(both, greedy);
    assert_eq!(generate(decoder, &prompts, &drawn), both);
    assert_eq!(generate(decoder, &prompts[1..], &sv_decoder_options { seed: 6, ..drawn }), both[1..]);
    for handle in [ids, decoder, narrow] {
        check(sv_release(handle));
    }
}

#[test]
fn decoders_of_c_refuse_arguments_by_name() {
    let folder = unpacked();
    let decoder = load(&folder.path().join("gpt2"), SV_DTYPE_F32);
    let (ids, lengths) = ([1u32, 2, 3], [2usize, 1]);
    let refused = |options: &sv_decoder_options, lengths: &[usize], text: &str| {
        let mut found = Vec::<Vec<u32>>::new();
        let user = (&raw mut found).cast();
        // SAFETY: the pointers are to slices of these lengths, or the lengths are refused before the ids are read.
        let status = unsafe {
            let (ids, count) = (ids.as_ptr(), lengths.len());
            sv_decoder_generate(decoder, ids, lengths.as_ptr(), count, options, Some(collect), user)
        };
        fails(status, SV_ERROR_INVALID_ARGUMENT, text);
    };
    refused(&options(), &[usize::MAX, 2], "lengths: found a sum beyond");
    refused(&options(), &[0, 1], "prompt 0 without ids");
    refused(&sv_decoder_options { max_new_ids: 0, ..options() }, &lengths, "options->max_new_ids: found 0");
    refused(&sv_decoder_options { max_new_ids: 48, ..options() }, &lengths, "at most 48 positions");
    refused(&sv_decoder_options { temperature: -1.0, ..options() }, &lengths, "temperature = -1");
    refused(&sv_decoder_options { top_p: 1.5, ..options() }, &lengths, "top_p = 1.5");
    refused(&sv_decoder_options { min_p: -0.5, ..options() }, &lengths, "min_p = -0.5");
    refused(
        &sv_decoder_options { repetition_penalty: -1.0, ..options() },
        &lengths,
        "repetition_penalty = -1",
    );
    refused(
        &sv_decoder_options { ignores_end_ids: 2, ..options() },
        &lengths,
        "options->ignores_end_ids: found 2",
    );
    refused(
        &sv_decoder_options { is_batch_invariant: 2, ..options() },
        &lengths,
        "options->is_batch_invariant: found 2",
    );
    refused(&sv_decoder_options { end_id_count: 1, ..options() }, &lengths, "options->end_ids: found NULL");
    let wrong = floats(&[1.0], &[1, 1]);
    let mut logits = 0;
    // SAFETY: the pointer is to a number.
    let status = unsafe { sv_decoder_logits(decoder, wrong, &mut logits) };
    assert!(status != SV_OK && logits == 0);
    check(sv_release(wrong));
    check(sv_release(decoder));
}
