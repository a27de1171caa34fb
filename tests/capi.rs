//! The functions of the C ABI on the CPU, called as C calls them: values, in-place forms, refusals and references. The modules have
//! the tests, and this file what they share.

use std::ffi::CStr;

use selvedge::capi::error::sv_last_error;
use selvedge::capi::library::sv_release;
use selvedge::capi::status::*;
use selvedge::capi::tensor::{
    SV_DTYPE_F32, SV_DTYPE_I64, SV_NUMBER_INTEGER, SV_NUMBER_REAL, copies, creation, properties, sv_number,
    sv_operand,
};

#[path = "capi/arrays.rs"]
mod arrays;
#[path = "capi/attention.rs"]
mod attention;
#[path = "capi/burst.rs"]
mod burst;
#[path = "capi/classifier.rs"]
mod classifier;
#[path = "capi/decoder.rs"]
mod decoder;
#[path = "capi/kernels.rs"]
mod kernels;
#[path = "cases/model_folders.rs"]
mod model_folders;
#[path = "capi/models.rs"]
mod models;
#[path = "capi/ordering.rs"]
mod ordering;
#[path = "capi/reserved.rs"]
mod reserved;
#[path = "capi/results.rs"]
mod results;
#[path = "capi/srt.rs"]
mod srt;
#[path = "capi/tensors.rs"]
mod tensors;
#[cfg(feature = "models")]
#[path = "capi/tokenizer.rs"]
mod tokenizer;
#[path = "capi/variable_scopes.rs"]
mod variable_scopes;
#[path = "capi/variables.rs"]
mod variables;

const CPU: i32 = -1;

/// Returns the result of a call that succeeds, from the function's last parameter.
fn ok(call: impl FnOnce(*mut u64) -> i32) -> u64 {
    let mut handle = 0;
    check(call(&mut handle));
    handle
}

#[track_caller]
fn release(handles: &[u64]) {
    for handle in handles {
        check(sv_release(*handle));
    }
}

#[track_caller]
fn check(status: i32) {
    assert_eq!(status, SV_OK, "{}", message());
}

fn message() -> String {
    // SAFETY: the text is valid until the next error of this thread.
    unsafe { CStr::from_ptr(sv_last_error()) }.to_str().unwrap().to_owned()
}

#[track_caller]
fn fails(status: i32, wanted: i32, text: &str) {
    assert_eq!(status, wanted, "{}", message());
    assert!(message().contains(text), "{text}: {}", message());
}

fn floats(elements: &[f32], shape: &[i64]) -> u64 {
    let (data, bytes) = (elements.as_ptr().cast(), size_of_val(elements));
    // SAFETY: the pointers are to slices of these lengths.
    ok(|result| unsafe {
        creation::sv_tensor_from_host(data, bytes, SV_DTYPE_F32, shape.as_ptr(), shape.len(), CPU, result)
    })
}

fn integers(elements: &[i64], shape: &[i64]) -> u64 {
    let (data, bytes) = (elements.as_ptr().cast(), size_of_val(elements));
    // SAFETY: as above.
    ok(|result| unsafe {
        creation::sv_tensor_from_host(data, bytes, SV_DTYPE_I64, shape.as_ptr(), shape.len(), CPU, result)
    })
}

/// Returns the elements of a tensor, whose dtype is `T`'s, and releases it.
fn take<T: Copy + Default>(tensor: u64) -> Vec<T> {
    let elements = elements(tensor);
    check(sv_release(tensor));
    elements
}

fn elements<T: Copy + Default>(tensor: u64) -> Vec<T> {
    let mut count = 0u64;
    // SAFETY: the pointers are to locals, and the vector has space for all elements.
    unsafe {
        check(properties::sv_tensor_count(tensor, &mut count));
        let mut elements = vec![T::default(); count as usize];
        check(copies::sv_tensor_to_host(tensor, elements.as_mut_ptr().cast(), size_of_val(&elements[..])));
        elements
    }
}

fn shape_of(tensor: u64) -> Vec<i64> {
    let mut rank = 0;
    // SAFETY: the pointers are to locals.
    unsafe {
        check(properties::sv_tensor_rank(tensor, &mut rank));
        let mut shape = vec![0; rank];
        check(properties::sv_tensor_shape(tensor, shape.as_mut_ptr(), rank));
        shape
    }
}

fn real(real: f64) -> sv_number {
    sv_number { kind: SV_NUMBER_REAL, reserved: 0, integer: 0, real, imaginary: 0.0 }
}

fn integer(integer: i64) -> sv_number {
    sv_number { kind: SV_NUMBER_INTEGER, reserved: 0, integer, real: 0.0, imaginary: 0.0 }
}

fn tensor(tensor: u64) -> sv_operand {
    sv_operand { tensor, number: integer(0) }
}

fn number(number: sv_number) -> sv_operand {
    sv_operand { tensor: 0, number }
}

// SAFETY of every call below: the pointers are to locals of the sizes that the call is given.
