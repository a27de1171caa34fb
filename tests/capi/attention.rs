//! Scaled dot-product attention in the C ABI: each field of the options, and refusals.

use std::ptr::null;

use selvedge::capi::library::sv_release;
use selvedge::capi::status::*;
use selvedge::capi::tensor::attention::{
    sv_attention_options, sv_tensor_scaled_dot_product_attention as attention,
};
use selvedge::capi::tensor::random;

use super::{check, elements, fails, floats, integers, ok, take};

fn options() -> sv_attention_options {
    // SAFETY: zeros are a value of the struct.
    let mut options: sv_attention_options = unsafe { std::mem::zeroed() };
    options.size = size_of::<sv_attention_options>();
    options
}

/// Queries and keys of zeros, so that a result is the mean of the values that a query reads: 1, 2, 6 and 7.
fn means() -> [u64; 2] {
    [floats(&[0.0; 4], &[1, 1, 4, 1]), floats(&[1.0, 2.0, 6.0, 7.0], &[1, 1, 4, 1])]
}

#[test]
fn every_option_of_attention_has_an_effect() {
    let [x, values] = means();
    // SAFETY: the pointers are to structs and arrays that outlive the calls.
    let of =
        |options: &sv_attention_options| take::<f32>(ok(|r| unsafe { attention(x, x, values, options, r) }));
    let all = [4.0; 4];
    // SAFETY: NULL stands for the defaults.
    assert_eq!(take::<f32>(ok(|r| unsafe { attention(x, x, values, null(), r) })), all);
    assert_eq!(of(&options()), all);
    let causal = sv_attention_options { is_causal: 1, ..options() };
    assert_eq!(of(&causal), [1.0, 1.5, 3.0, 4.0]);
    let window = sv_attention_options { has_window_before: 1, window_before: 1, ..causal };
    assert_eq!(of(&window), [1.0, 1.5, 4.0, 6.5]);
    let after =
        sv_attention_options { has_window_after: 1, has_window_before: 1, window_after: 1, ..options() };
    assert_eq!(of(&after), [1.5, 4.0, 6.5, 7.0]);
    let mask = floats(&[0.0, f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY], &[4]);
    assert_eq!(of(&sv_attention_options { mask, ..options() }), [3.5; 4]);
    let lengths = integers(&[2], &[1]);
    assert_eq!(of(&sv_attention_options { key_lengths: lengths, ..options() }), [1.5; 4]);
    let padded = sv_attention_options { query_lengths: lengths, ..options() };
    assert_eq!(of(&padded), [4.0, 4.0, 0.0, 0.0]);
    let (queries, keys) = ([0i64, 1, 3], [0i64, 2, 4]);
    let packed = sv_attention_options {
        query_offsets: queries.as_ptr(),
        key_offsets: keys.as_ptr(),
        offset_count: 3,
        ..options()
    };
    assert_eq!(of(&packed), [1.5, 6.5, 6.5, 0.0]);
    assert_eq!(of(&sv_attention_options { dropout: 1.0, ..options() }), [0.0; 4]);

    // SAFETY: as above.
    let scores = |options: &sv_attention_options| {
        take::<f32>(ok(|r| unsafe { attention(values, values, values, options, r) }))[0]
    };
    // The scores of the first query are 1, 2, 6 and 7 times the scale.
    let softmax = |scores: [f32; 4]| {
        let weights = scores.map(f32::exp);
        weights.iter().zip([1.0, 2.0, 6.0, 7.0]).map(|(weight, value)| weight * value).sum::<f32>()
            / weights.iter().sum::<f32>()
    };
    let close = |found: f32, wanted: f32| assert!((found - wanted).abs() < 1e-4, "{found} is not {wanted}");
    close(scores(&options()), softmax([1.0, 2.0, 6.0, 7.0]));
    let steep = sv_attention_options { has_scale: 1, scale: 1e4, ..options() };
    // SAFETY: as above.
    let of_largest = take::<f32>(ok(|r| unsafe { attention(values, values, values, &steep, r) }));
    assert!(of_largest.iter().all(|found| (found - 7.0).abs() < 1e-5), "{of_largest:?}");
    let scale = sv_attention_options { has_scale: 1, scale: 0.25, ..options() };
    close(scores(&scale), softmax([0.25, 0.5, 1.5, 1.75]));
    let cap = sv_attention_options { soft_cap: 2.0, ..options() };
    close(scores(&cap), softmax([1.0, 2.0, 6.0, 7.0].map(|score: f32| 2.0 * (score / 2.0).tanh())));

    let generator = || {
        // SAFETY: the pointer is to a local.
        ok(|r| unsafe { random::sv_generator_create(7, r) })
    };
    let drawn = [generator(), generator()];
    let dropped = drawn.map(|generator| of(&sv_attention_options { generator, dropout: 0.5, ..options() }));
    assert_eq!(dropped[0], dropped[1]);
    assert_ne!(dropped[0], all);
    for handle in [x, values, mask, lengths, drawn[0], drawn[1]] {
        check(sv_release(handle));
    }
}

#[test]
fn bad_options_of_attention_are_named() {
    let [x, values] = means();
    let wide = floats(&[0.0; 8], &[1, 1, 4, 2]);
    let mut result = 7;
    // SAFETY: the pointers are to structs and arrays that outlive the calls.
    let mut refused = |options: sv_attention_options, text: &str| unsafe {
        fails(attention(x, x, values, &options, &mut result), SV_ERROR_INVALID_ARGUMENT, text);
    };
    refused(sv_attention_options { is_causal: 2, ..options() }, "options.is_causal: found 2");
    refused(sv_attention_options { scale: 0.5, ..options() }, "options.scale: found 0.5");
    refused(sv_attention_options { window_before: 3, ..options() }, "options.window_before: found 3");
    let negative = sv_attention_options { has_window_after: 1, window_after: -1, ..options() };
    refused(negative, "options.window_after: found -1");
    refused(sv_attention_options { soft_cap: -1.0, ..options() }, "a soft cap of -1");
    refused(sv_attention_options { dropout: 1.5, ..options() }, "a dropout of 1.5");
    let falling = [0i64, 3, 1];
    let packed = |offsets: &[i64]| sv_attention_options {
        query_offsets: offsets.as_ptr(),
        key_offsets: falling.as_ptr(),
        offset_count: offsets.len(),
        ..options()
    };
    refused(packed(&[0, -2, 1]), "options.query_offsets: found -2");
    refused(packed(&[0, 2, 4]), "offset");
    refused(
        sv_attention_options { key_offsets: null(), ..packed(&[0, 2, 4]) },
        "options.key_offsets: found NULL",
    );
    let both = sv_attention_options { key_lengths: x, ..packed(&[0, 2, 4]) };
    refused(both, "options.query_lengths and options.key_lengths");
    // SAFETY: as above.
    unsafe {
        fails(attention(x, wide, values, null(), &mut result), SV_ERROR_INVALID_ARGUMENT, "[1, 1, 4, 2]");
        let missing = sv_attention_options { mask: 1 << 60, ..options() };
        fails(attention(x, x, values, &missing, &mut result), SV_ERROR_INVALID_HANDLE, "options.mask");
    }
    assert_eq!(result, 7);
    for handle in [x, values, wide] {
        check(sv_release(handle));
    }
}

#[test]
fn the_result_of_attention_has_the_queries_shape_and_the_values_dimension() {
    let [queries, keys] = [floats(&[0.0; 24], &[1, 4, 3, 2]), floats(&[0.0; 20], &[1, 2, 5, 2])];
    let values = floats(&[1.0; 30], &[1, 2, 5, 3]);
    // SAFETY: the pointers are to locals.
    let result = ok(|r| unsafe { attention(queries, keys, values, null(), r) });
    assert_eq!(super::shape_of(result), [1, 4, 3, 3]);
    assert_eq!(elements::<f32>(result), [1.0; 36]);
    for handle in [queries, keys, values, result] {
        check(sv_release(handle));
    }
}
