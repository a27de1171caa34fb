//! The functions of tensors (here and in tests/capi/ordering.rs), of spiking networks (tests/capi/burst.rs) and of golden-ratio
//! tensors (tests/capi/srt.rs) of the C ABI on the CPU, called as C calls them: values, in-place forms, refusals and references.

use std::ffi::{CStr, CString, c_void};

use selvedge::capi::custom::{self, sv_array, sv_array_type, sv_custom_operation};
use selvedge::capi::error::sv_last_error;
use selvedge::capi::library::{sv_release, sv_retain};
use selvedge::capi::matmul::{self, sv_matmul_options};
use selvedge::capi::status::*;
use selvedge::capi::tensor::operations::*;
use selvedge::capi::tensor::{
    SV_DTYPE_BOOL, SV_DTYPE_F32, SV_DTYPE_F64, SV_DTYPE_I32, SV_DTYPE_I64, SV_NUMBER_INTEGER, SV_NUMBER_REAL,
    SV_OPEN, copies, creation, elementwise, indexing, io, properties, random, reduce, rows, shape, sv_number,
    sv_operand, sv_slice, views,
};
use selvedge::capi::{dlpack, fused};
use selvedge::fuse::Operation;

#[path = "capi/burst.rs"]
mod burst;
#[path = "capi/ordering.rs"]
mod ordering;
#[path = "capi/reserved.rs"]
mod reserved;
#[path = "capi/srt.rs"]
mod srt;

const CPU: i32 = -1;

/// Returns the result of a call that succeeds, from the function's last parameter.
fn ok(call: impl FnOnce(*mut u64) -> i32) -> u64 {
    let mut handle = 0;
    check(call(&mut handle));
    handle
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

#[test]
fn tensors_are_created_described_and_converted() {
    unsafe {
        let x = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
        let (mut dtype, mut device, mut strides, mut contiguous) = (0, 0, [0; 2], 0);
        check(properties::sv_tensor_dtype(x, &mut dtype));
        check(properties::sv_tensor_device(x, &mut device));
        check(properties::sv_tensor_strides(x, strides.as_mut_ptr(), 2));
        check(properties::sv_tensor_is_contiguous(x, &mut contiguous));
        assert_eq!((dtype, device, strides, contiguous), (SV_DTYPE_F32, CPU, [3, 1], 1));
        fails(
            properties::sv_tensor_shape(x, strides.as_mut_ptr(), 1),
            SV_ERROR_INVALID_ARGUMENT,
            "rank: found 1",
        );
        let mut text = [0; 64];
        check(properties::sv_tensor_text(x, text.as_mut_ptr(), text.len(), std::ptr::null_mut()));
        assert!(CStr::from_ptr(text.as_ptr()).to_str().unwrap().starts_with("[["));
        let doubles = ok(|result| copies::sv_tensor_cast(x, SV_DTYPE_F64, result));
        assert_eq!(take::<f64>(doubles), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        for copy in [copies::sv_tensor_contiguous, copies::sv_tensor_copy] {
            assert_eq!(take::<f32>(ok(|result| copy(x, result))).len(), 6);
        }
        assert_eq!(take::<f32>(ok(|result| copies::sv_tensor_to_device(x, CPU, result)))[5], 6.0);
        let mut few = [0f32; 5];
        let short = copies::sv_tensor_to_host(x, few.as_mut_ptr().cast(), 20);
        fails(short, SV_ERROR_INVALID_ARGUMENT, "bytes: found 20; wanted 24 bytes");
        check(sv_retain(x));
        check(sv_release(x));
        check(sv_release(x));
        fails(properties::sv_tensor_dtype(x, &mut dtype), SV_ERROR_INVALID_HANDLE, "released");

        let three = [3i64];
        let shape = three.as_ptr();
        assert_eq!(take::<i32>(ok(|r| creation::sv_tensor_zeros(SV_DTYPE_I32, shape, 1, CPU, r))), [0; 3]);
        assert_eq!(take::<i64>(ok(|r| creation::sv_tensor_ones(SV_DTYPE_I64, shape, 1, CPU, r))), [1; 3]);
        let full = ok(|r| creation::sv_tensor_full(&real(2.5), SV_DTYPE_F32, shape, 1, CPU, r));
        assert_eq!(take::<f32>(full), [2.5; 3]);
        let range =
            ok(|r| creation::sv_tensor_arange(&integer(1), &integer(7), &integer(2), SV_DTYPE_I64, CPU, r));
        assert_eq!(take::<i64>(range), [1, 3, 5]);
        let line = ok(|r| creation::sv_tensor_linspace(0.0, 1.0, 3, SV_DTYPE_F64, CPU, r));
        assert_eq!(take::<f64>(line), [0.0, 0.5, 1.0]);
        assert_eq!(
            take::<f32>(ok(|r| creation::sv_tensor_eye(2, 2, SV_DTYPE_F32, CPU, r))),
            [1.0, 0.0, 0.0, 1.0]
        );
        let mut result = 7;
        let negative = [-1i64];
        let status = creation::sv_tensor_zeros(SV_DTYPE_F32, negative.as_ptr(), 1, CPU, &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "shape: found -1");
        fails(
            creation::sv_tensor_zeros(99, shape, 1, CPU, &mut result),
            SV_ERROR_INVALID_ARGUMENT,
            "dtype: found 99",
        );
        fails(
            creation::sv_tensor_zeros(1, shape, 1, -7, &mut result),
            SV_ERROR_INVALID_ARGUMENT,
            "device: found -7",
        );
        assert_eq!(result, 7, "a call that fails writes nothing");
    }
}

#[test]
fn views_share_elements_in_other_layouts() {
    unsafe {
        let x = integers(&[0, 1, 2, 3, 4, 5], &[2, 3]);
        let slices = [
            sv_slice { axis: 1, start: SV_OPEN, stop: SV_OPEN, step: -1 },
            sv_slice { axis: 0, start: 1, stop: 2, step: 1 },
        ];
        assert_eq!(take::<i64>(ok(|r| views::sv_tensor_slice(x, slices.as_ptr(), 2, r))), [5, 4, 3]);
        assert_eq!(take::<i64>(ok(|r| views::sv_tensor_select(x, 1, -1, r))), [2, 5]);
        assert_eq!(take::<i64>(ok(|r| views::sv_tensor_narrow(x, 1, 1, 2, r))), [1, 2, 4, 5]);
        assert_eq!(take::<i64>(ok(|r| views::sv_tensor_transpose(x, 0, 1, r))), [0, 3, 1, 4, 2, 5]);
        let order = [1i64, 0];
        assert_eq!(
            take::<i64>(ok(|r| views::sv_tensor_permute(x, order.as_ptr(), 2, r))),
            [0, 3, 1, 4, 2, 5]
        );
        let moved = ok(|r| views::sv_tensor_movedim(x, [0i64].as_ptr(), [1i64].as_ptr(), 1, r));
        assert_eq!(shape_of(moved), [3, 2]);
        let reshaped = ok(|r| views::sv_tensor_reshape(x, [3i64, -1].as_ptr(), 2, r));
        assert_eq!(shape_of(reshaped), [3, 2]);
        assert_eq!(shape_of(ok(|r| views::sv_tensor_flatten(x, 0, -1, r))), [6]);
        let tall = ok(|r| views::sv_tensor_unsqueeze(x, 0, r));
        assert_eq!(shape_of(tall), [1, 2, 3]);
        assert_eq!(shape_of(ok(|r| views::sv_tensor_squeeze(tall, 0, r))), [2, 3]);
        assert_eq!(shape_of(ok(|r| views::sv_tensor_squeeze_all(tall, r))), [2, 3]);
        assert_eq!(shape_of(ok(|r| views::sv_tensor_expand(tall, [4i64, 2, 3].as_ptr(), 3, r))), [4, 2, 3]);
        assert_eq!(take::<i64>(ok(|r| views::sv_tensor_flip(x, [0i64].as_ptr(), 1, r))), [3, 4, 5, 0, 1, 2]);
        assert_eq!(take::<i64>(ok(|r| views::sv_tensor_diagonal(x, 1, 0, 1, r))), [1, 5]);
        assert_eq!(shape_of(ok(|r| views::sv_tensor_unfold(x, 1, 2, 1, r))), [2, 2, 2]);
        let mut parts = [0; 2];
        check(views::sv_tensor_split(x, [1i64, 2].as_ptr(), 2, 1, parts.as_mut_ptr()));
        assert_eq!(take::<i64>(parts[0]), [0, 3]);
        assert_eq!(take::<i64>(parts[1]), [1, 2, 4, 5]);

        let pair = [x, x];
        assert_eq!(shape_of(ok(|r| shape::sv_tensor_cat(pair.as_ptr(), 2, 0, r))), [4, 3]);
        assert_eq!(shape_of(ok(|r| shape::sv_tensor_stack(pair.as_ptr(), 2, 0, r))), [2, 2, 3]);
        let rolled = ok(|r| shape::sv_tensor_roll(x, [1i64].as_ptr(), [1i64].as_ptr(), 1, r));
        assert_eq!(take::<i64>(rolled), [2, 0, 1, 5, 3, 4]);
        assert_eq!(shape_of(ok(|r| shape::sv_tensor_repeat(x, [2i64, 1].as_ptr(), 2, r))), [4, 3]);
        assert_eq!(shape_of(ok(|r| shape::sv_tensor_repeat_interleave(x, 2, 1, r))), [2, 6]);
        let widths = [0i64, 0, 1, 0];
        let padded =
            ok(|r| shape::sv_tensor_pad(x, widths.as_ptr(), 2, shape::SV_PADDING_CONSTANT, &integer(9), r));
        assert_eq!(take::<i64>(padded), [9, 0, 1, 2, 9, 3, 4, 5]);
        assert_eq!(take::<i64>(ok(|r| shape::sv_tensor_tril(x, 0, r))), [0, 0, 0, 3, 4, 0]);
        assert_eq!(take::<i64>(ok(|r| shape::sv_tensor_triu(x, 0, r))), [0, 1, 2, 0, 4, 5]);
        let mask = ok(|r| {
            sv_gt(
                x,
                ok(|r| creation::sv_tensor_full(&integer(3), SV_DTYPE_I64, std::ptr::null(), 0, CPU, r)),
                r,
            )
        });
        let filled = ok(|r| shape::sv_tensor_masked_fill(x, mask, &number(integer(-1)), r));
        assert_eq!(take::<i64>(filled), [0, 1, 2, 3, -1, -1]);
        assert_eq!(take::<i64>(x), [0, 1, 2, 3, 4, 5], "views change nothing");
    }
}

#[test]
fn every_operation_computes_by_its_code() {
    unsafe {
        let x = floats(&[0.25, 0.5], &[2]);
        let integers = integers(&[6, 3], &[2]);
        for operation in Operation::ALL {
            let (mut arity, mut code, mut name) = (0, 0, [0; 32]);
            check(elementwise::sv_operation_arity(operation.code(), &mut arity));
            check(elementwise::sv_operation_name(
                operation.code(),
                name.as_mut_ptr(),
                32,
                std::ptr::null_mut(),
            ));
            check(elementwise::sv_operation_code(name.as_ptr(), &mut code));
            assert_eq!((arity, code), (operation.arity(), operation.code()));
            let x = if operation.dtypes().contains(selvedge::DType::F32) { x } else { integers };
            let run = |result: *mut u64| match arity {
                1 => elementwise::sv_unary(code, x, result),
                2 => elementwise::sv_binary(code, x, x, result),
                _ => elementwise::sv_ternary(code, x, x, x, result),
            };
            let mut found = 0;
            let status = run(&mut found);
            // `mul_high` takes unsigned integers alone.
            if *operation == Operation::MulHigh {
                fails(status, SV_ERROR_DTYPE_MISMATCH, "mul_high");
                continue;
            }
            check(status);
            let operands = [tensor(x); 3];
            let again = ok(|result| elementwise::sv_operation(code, operands.as_ptr(), arity, result));
            let mut bytes = 0;
            check(properties::sv_tensor_count(found, &mut bytes));
            assert_eq!(shape_of(found), shape_of(again), "{}", operation.name());
            check(sv_release(again));
            check(sv_release(found));
        }
        assert_eq!(take::<f32>(ok(|r| sv_add(x, x, r))), [0.5, 1.0]);
        assert_eq!(take::<f32>(ok(|r| sv_neg(x, r))), [-0.25, -0.5]);
        assert_eq!(take::<f32>(ok(|r| sv_fma(x, x, x, r))), [0.3125, 0.75]);
        let mut result = 0;
        fails(
            elementwise::sv_unary(9999, x, &mut result),
            SV_ERROR_INVALID_ARGUMENT,
            "operation: found 9999",
        );
        fails(elementwise::sv_unary(SV_OP_ADD, x, &mut result), SV_ERROR_INVALID_ARGUMENT, "2 for add");
    }
}

#[test]
fn numbers_are_operands_on_either_side() {
    unsafe {
        let x = floats(&[1.0, 4.0], &[2]);
        let right = [tensor(x), number(real(0.5))];
        assert_eq!(
            take::<f32>(ok(|r| elementwise::sv_operation(SV_OP_MUL, right.as_ptr(), 2, r))),
            [0.5, 2.0]
        );
        let left = [number(integer(8)), tensor(x)];
        assert_eq!(
            take::<f32>(ok(|r| elementwise::sv_operation(SV_OP_DIV, left.as_ptr(), 2, r))),
            [8.0, 2.0]
        );
        let mut result = 0;
        let numbers = [number(integer(1)), number(integer(2))];
        let status = elementwise::sv_operation(SV_OP_ADD, numbers.as_ptr(), 2, &mut result);
        assert_ne!(status, SV_OK);
        let wrong = [tensor(x), number(sv_number { kind: 77, ..integer(0) })];
        let status = elementwise::sv_operation(SV_OP_ADD, wrong.as_ptr(), 2, &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "number.kind: found 77");
    }
}

#[test]
fn in_place_forms_change_one_tensor_alone() {
    unsafe {
        let x = floats(&[1.0, 2.0, 3.0], &[3]);
        let view = ok(|r| views::sv_tensor_narrow(x, 0, 0, 3, r));
        check(sv_add_in_place(x, x));
        check(elementwise::sv_operation_in_place(SV_OP_MUL, x, &number(real(10.0)), 1));
        check(sv_sqrt_in_place(ok(|r| copies::sv_tensor_copy(x, r))));
        assert_eq!(elements::<f32>(x), [20.0, 40.0, 60.0]);
        assert_eq!(elements::<f32>(view), [1.0, 2.0, 3.0]);
        let operands = [tensor(view), number(real(1.0))];
        check(elementwise::sv_operation_into(SV_OP_SUB, operands.as_ptr(), 2, x));
        assert_eq!(elements::<f32>(x), [0.0, 1.0, 2.0]);
        check(elementwise::sv_tensor_assign(x, &number(real(5.0))));
        let last = sv_slice { axis: 0, start: -1, stop: SV_OPEN, step: 1 };
        check(elementwise::sv_tensor_assign_slice(x, &last, 1, &number(integer(7))));
        assert_eq!(elements::<f32>(x), [5.0, 5.0, 7.0]);
        let mask = ok(|r| sv_lt(view, x, r));
        check(elementwise::sv_tensor_masked_fill_in_place(x, mask, &number(real(0.0))));
        assert_eq!(elements::<f32>(x), [0.0; 3]);
        let mut close = 7;
        check(elementwise::sv_tensor_allclose(x, view, 0.0, 3.0, &mut close));
        assert_eq!(close, 1);
        fails(sv_add_in_place(x, 0), SV_ERROR_INVALID_HANDLE, "y: found 0");
    }
}

#[test]
fn reductions_and_scans_fold_axes() {
    unsafe {
        let x = floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
        let all =
            |code, parameter| ok(|r| reduce::sv_tensor_reduce(x, code, std::ptr::null(), 0, 0, parameter, r));
        for (code, parameter, wanted) in [
            (reduce::SV_REDUCE_SUM, 0.0, 10.0),
            (reduce::SV_REDUCE_PROD, 0.0, 24.0),
            (reduce::SV_REDUCE_MIN, 0.0, 1.0),
            (reduce::SV_REDUCE_MAX, 0.0, 4.0),
            (reduce::SV_REDUCE_MEAN, 0.0, 2.5),
            (reduce::SV_REDUCE_VAR, 0.0, 1.25),
            (reduce::SV_REDUCE_STD, 0.0, 1.25f32.sqrt()),
            (reduce::SV_REDUCE_NORM, 1.0, 10.0),
        ] {
            assert_eq!(take::<f32>(all(code, parameter)), [wanted], "{code}");
        }
        for (code, wanted) in [
            (reduce::SV_REDUCE_ARGMIN, 0),
            (reduce::SV_REDUCE_ARGMAX, 3),
            (reduce::SV_REDUCE_COUNT_NONZERO, 4),
        ] {
            assert_eq!(take::<i64>(all(code, 0.0)), [wanted], "{code}");
        }
        for code in [reduce::SV_REDUCE_ANY, reduce::SV_REDUCE_ALL] {
            assert_eq!(take::<u8>(all(code, 0.0)), [1]);
        }
        assert!((take::<f32>(all(reduce::SV_REDUCE_LOGSUMEXP, 0.0))[0] - 4.440_19).abs() < 1e-5);
        let axis = [0i64];
        let rows = ok(|r| reduce::sv_tensor_reduce(x, reduce::SV_REDUCE_SUM, axis.as_ptr(), 1, 1, 0.0, r));
        assert_eq!(shape_of(rows), [1, 2]);
        assert_eq!(take::<f32>(rows), [4.0, 6.0]);
        for (code, wanted) in [
            (reduce::SV_SCAN_SUM, [1.0, 3.0, 3.0, 7.0]),
            (reduce::SV_SCAN_PROD, [1.0, 2.0, 3.0, 12.0]),
            (reduce::SV_SCAN_MAX, [1.0, 2.0, 3.0, 4.0]),
            (reduce::SV_SCAN_MIN, [1.0, 1.0, 3.0, 3.0]),
        ] {
            assert_eq!(take::<f32>(ok(|r| reduce::sv_tensor_scan(x, code, 1, r))), wanted, "{code}");
        }
        let mut result = 0;
        let status = reduce::sv_tensor_reduce(x, 99, std::ptr::null(), 0, 0, 0.0, &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "reduction: found 99");
        let status =
            reduce::sv_tensor_reduce(x, reduce::SV_REDUCE_VAR, std::ptr::null(), 0, 0, 0.5, &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "parameter: found 0.5");
    }
}

#[test]
fn softmax_and_normalisation_take_optional_parameters() {
    unsafe {
        let x = floats(&[1.0, 3.0, -5.0, 5.0], &[2, 2]);
        let [weight, bias] = [floats(&[2.0, 3.0], &[2]), floats(&[0.0, 10.0], &[2])];
        let (size, axes) = ([2i64], [-1i64]);
        let close = |tensor: u64, wanted: [f32; 4]| {
            let found = take::<f32>(tensor);
            let near = found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-4);
            assert!(near && found.len() == 4, "{found:?} is not {wanted:?}");
        };
        close(ok(|r| rows::sv_tensor_softmax(x, -1, r)), [0.119203, 0.880797, 0.0000454, 0.9999546]);
        close(ok(|r| rows::sv_tensor_log_softmax(x, 1, r)), [-2.126928, -0.126928, -10.000045, -0.0000454]);
        let layer_norm =
            |weight, bias, r| rows::sv_tensor_layer_norm(x, size.as_ptr(), 1, weight, bias, 0.0, r);
        close(ok(|r| layer_norm(0, 0, r)), [-1.0, 1.0, -1.0, 1.0]);
        close(ok(|r| layer_norm(weight, bias, r)), [-2.0, 13.0, -2.0, 13.0]);
        let rms_norm = |weight, eps, r| rows::sv_tensor_rms_norm(x, size.as_ptr(), 1, weight, eps, r);
        close(ok(|r| rms_norm(0, -1.0, r)), [0.4472136, 1.3416408, -1.0, 1.0]);
        close(ok(|r| rms_norm(weight, 20.0, r)), [0.4, 1.8, -1.4907119, 2.236068]);
        close(ok(|r| rows::sv_tensor_group_norm(x, 1, weight, bias, 0.0, r)), [-2.0, 13.0, -2.0, 13.0]);
        close(ok(|r| rows::sv_tensor_standardize(x, axes.as_ptr(), 1, r)), [-1.0, 1.0, -1.0, 1.0]);
        close(ok(|r| rows::sv_tensor_normalize(x, 1.0, axes.as_ptr(), 1, 0.0, r)), [0.25, 0.75, -0.5, 0.5]);
        close(
            ok(|r| rows::sv_tensor_normalize(x, 2.0, std::ptr::null(), 0, 100.0, r)),
            [0.01, 0.03, -0.05, 0.05],
        );

        let [mean, variance] = [floats(&[0.0, 0.0], &[2]), floats(&[1.0, 1.0], &[2])];
        let training = |mean, variance, r| {
            rows::sv_tensor_batch_norm_training(x, mean, variance, weight, bias, 0.5, 0.0, r)
        };
        // The handles in either order lock the same tensors.
        close(ok(|r| training(mean, variance, r)), [2.0, 7.0, -2.0, 13.0]);
        assert_eq!((elements::<f32>(mean), elements::<f32>(variance)), (vec![-1.0, 2.0], vec![9.5, 1.5]));
        close(ok(|r| training(variance, mean, r)), [2.0, 7.0, -2.0, 13.0]);
        assert_eq!((elements::<f32>(variance), elements::<f32>(mean)), (vec![3.75, 2.75], vec![8.5, 2.0]));
        close(ok(|r| training(0, 0, r)), [2.0, 7.0, -2.0, 13.0]);
        let inference = |weight, bias, r| rows::sv_tensor_batch_norm(x, bias, weight, 0, 0, 1.0, r);
        close(ok(|r| inference(weight, bias, r)), [0.5773503, -3.5, -2.8867513, -2.5]);

        let mut result = 0;
        fails(rows::sv_tensor_softmax(x, 2, &mut result), SV_ERROR_INVALID_ARGUMENT, "axis 2");
        fails(
            training(mean, mean, &mut result),
            SV_ERROR_INVALID_ARGUMENT,
            "running_var: found the same handle",
        );
        fails(training(mean, 0, &mut result), SV_ERROR_INVALID_HANDLE, "running_var");
        fails(layer_norm(x, 0, &mut result), SV_ERROR_INVALID_ARGUMENT, "a weight of shape [2, 2]");
        let status = rows::sv_tensor_normalize(x, 2.0, std::ptr::null(), 1, 0.0, &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "axes: found NULL");
        assert_eq!(result, 0);
        for tensor in [x, weight, bias, mean, variance] {
            check(sv_release(tensor));
        }
    }
}

#[test]
fn indices_read_and_write_elements() {
    unsafe {
        let x = floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
        let index = integers(&[1, 0], &[2]);
        let grid = integers(&[1, 0, 0, 1], &[2, 2]);
        assert_eq!(
            take::<f32>(ok(|r| indexing::sv_tensor_index_select(x, 0, index, r))),
            [3.0, 4.0, 1.0, 2.0]
        );
        assert_eq!(take::<f32>(ok(|r| indexing::sv_tensor_gather(x, 1, grid, r))), [2.0, 1.0, 3.0, 4.0]);
        assert_eq!(
            take::<f32>(ok(|r| indexing::sv_tensor_take_along_axis(x, 1, grid, r))),
            [2.0, 1.0, 3.0, 4.0]
        );
        assert_eq!(take::<f32>(ok(|r| indexing::sv_tensor_take(x, index, r))), [2.0, 1.0]);
        assert_eq!(take::<i64>(ok(|r| indexing::sv_tensor_one_hot(index, 2, r))), [0, 1, 1, 0]);
        let values = floats(&[7.0, 8.0, 9.0, 6.0], &[2, 2]);
        let scattered = [7.0, 8.0, 9.0, 6.0].map(|x: f32| x);
        let wanted = [scattered[1], scattered[0], scattered[2], scattered[3]];
        assert_eq!(take::<f32>(ok(|r| indexing::sv_tensor_scatter(x, 1, grid, values, r))), wanted);
        let copied = ok(|r| indexing::sv_tensor_index_copy(x, 0, index, values, r));
        assert_eq!(take::<f32>(copied), [9.0, 6.0, 7.0, 8.0]);
        let pair = floats(&[5.0, 0.5], &[2]);
        assert_eq!(take::<f32>(ok(|r| indexing::sv_tensor_put(x, index, pair, r))), [0.5, 5.0, 3.0, 4.0]);
        assert_eq!(elements::<f32>(x), [1.0, 2.0, 3.0, 4.0]);
        check(indexing::sv_tensor_put_in_place(x, index, pair));
        assert_eq!(elements::<f32>(x), [0.5, 5.0, 3.0, 4.0]);
        check(indexing::sv_tensor_index_copy_in_place(x, 0, index, values));
        assert_eq!(elements::<f32>(x), [9.0, 6.0, 7.0, 8.0]);
        check(indexing::sv_tensor_scatter_in_place(x, 1, grid, values));
        assert_eq!(elements::<f32>(x), wanted);
        let mut result = 0;
        let far = integers(&[2], &[1]);
        fails(
            indexing::sv_tensor_index_select(x, 0, far, &mut result),
            SV_ERROR_INDEX_OUT_OF_RANGE,
            "index 2",
        );
    }
}

#[test]
fn generators_repeat_their_stream() {
    unsafe {
        let mut generator = 0;
        check(random::sv_generator_create(7, &mut generator));
        let shape = [4i64];
        let draw =
            || take::<f32>(ok(|r| random::sv_randn(generator, SV_DTYPE_F32, shape.as_ptr(), 1, CPU, r)));
        let first = draw();
        let (mut seed, mut offset) = (0, 0);
        check(random::sv_generator_state(generator, &mut seed, &mut offset));
        assert_eq!((seed, offset), (7, 1));
        check(random::sv_generator_set_state(generator, 7, 0));
        assert_eq!(draw(), first);
        let (low, high) = (number(real(2.0)), number(real(3.0)));
        let even =
            ok(|r| random::sv_uniform(generator, &low, &high, SV_DTYPE_F64, shape.as_ptr(), 1, CPU, r));
        assert!(take::<f64>(even).iter().all(|x| (2.0..3.0).contains(x)));
        let exact = ok(|r| {
            random::sv_normal(generator, &low, &number(real(0.0)), SV_DTYPE_F64, shape.as_ptr(), 1, CPU, r)
        });
        assert_eq!(take::<f64>(exact), [2.0; 4]);
        let ones = ok(|r| {
            random::sv_bernoulli(generator, &number(real(1.0)), SV_DTYPE_BOOL, shape.as_ptr(), 1, CPU, r)
        });
        assert_eq!(take::<u8>(ones), [1; 4]);
        let fives = ok(|r| random::sv_randint(generator, 5, 6, SV_DTYPE_I64, shape.as_ptr(), 1, CPU, r));
        assert_eq!(take::<i64>(fives), [5; 4]);
        let mut order = take::<i64>(ok(|r| random::sv_permutation(generator, 4, CPU, r)));
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3]);
        let own = || take::<f32>(ok(|r| random::sv_rand(0, SV_DTYPE_F32, shape.as_ptr(), 1, CPU, r)));
        check(random::sv_manual_seed(CPU, 3));
        let before = own();
        check(random::sv_manual_seed(CPU, 3));
        assert_eq!(own(), before);
        check(sv_release(generator));
        let mut result = 0;
        let status = random::sv_rand(generator, SV_DTYPE_F32, shape.as_ptr(), 1, CPU, &mut result);
        fails(status, SV_ERROR_INVALID_HANDLE, "released");
    }
}

#[test]
fn files_hold_tensors() {
    let folder = std::env::temp_dir().join(format!("selvedge-capi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| CString::new(folder.join(name).to_str().unwrap()).unwrap();
    let (npy, npz) = (path("x.npy"), path("x.npz"));
    unsafe {
        let x = floats(&[1.0, 2.0], &[2]);
        check(io::sv_tensor_write_npy(x, npy.as_ptr()));
        assert_eq!(take::<f32>(ok(|r| io::sv_tensor_read_npy(npy.as_ptr(), CPU, r))), [1.0, 2.0]);
        for compress in [0, 1] {
            let names = [c"first".as_ptr(), c"second".as_ptr()];
            check(io::sv_tensor_write_npz(npz.as_ptr(), names.as_ptr(), [x, x].as_ptr(), 2, compress));
            let second = ok(|r| io::sv_tensor_read_npz(npz.as_ptr(), c"second".as_ptr(), CPU, r));
            assert_eq!(take::<f32>(second), [1.0, 2.0]);
        }
        let mut result = 0;
        let status = io::sv_tensor_read_npz(npz.as_ptr(), c"third".as_ptr(), CPU, &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "first, second");
        let status = io::sv_tensor_read_npy(path("none.npy").as_ptr(), CPU, &mut result);
        fails(status, SV_ERROR_FILE, "none.npy");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn fused_functions_are_built_from_expressions() {
    unsafe {
        let [x, y] = [0, 1].map(|index| ok(|r| fused::sv_expression_input(index, r)));
        let one = ok(|r| fused::sv_expression_number(&real(1.0), r));
        let apply = |code, operands: &[u64]| {
            ok(|r| fused::sv_expression_operation(code, operands.as_ptr(), operands.len(), r))
        };
        let product = apply(SV_OP_MUL, &[x, y]);
        let sum = apply(SV_OP_ADD, &[one, product]);
        let whole = ok(|r| fused::sv_expression_cast(sum, SV_DTYPE_I64, r));
        let position = ok(|r| fused::sv_expression_index(0, r));
        let outputs = [sum, whole, apply(SV_OP_ADD, &[position, whole])];
        let mut function = 0;
        check(fused::sv_fused_create(outputs.as_ptr(), 3, &mut function));
        for expression in [x, y, one, product, sum, whole, position] {
            check(sv_release(expression));
        }
        let (mut operands, mut results) = (0, 0);
        check(fused::sv_fused_counts(function, &mut operands, &mut results));
        assert_eq!((operands, results), (2, 3));
        let a = floats(&[1.5, 2.0], &[2]);
        for (second, wanted) in [(number(real(3.0)), [5.5, 7.0]), (tensor(a), [3.25, 5.0])] {
            let given = [tensor(a), second];
            let mut found = [0; 3];
            check(fused::sv_fused_run(function, given.as_ptr(), 2, found.as_mut_ptr(), 3));
            assert_eq!(take::<f32>(found[0]), wanted);
            let whole = wanted.map(|x| x as i64);
            assert_eq!(take::<i64>(found[1]), whole);
            assert_eq!(take::<i64>(found[2]), [whole[0], whole[1] + 1]);
        }
        let mut found = [0; 3];
        let short = [tensor(a)];
        let status = fused::sv_fused_run(function, short.as_ptr(), 1, found.as_mut_ptr(), 3);
        fails(status, SV_ERROR_LENGTH_MISMATCH, "2");
        let numbers = [number(real(1.0)); 2];
        let status = fused::sv_fused_run(function, numbers.as_ptr(), 2, found.as_mut_ptr(), 3);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "no tensors");
        let mut deep = ok(|r| fused::sv_expression_input(0, r));
        let mut status = SV_OK;
        for _ in 0..1100 {
            let mut next = 0;
            status = fused::sv_expression_operation(SV_OP_NEG, &deep, 1, &mut next);
            if status != SV_OK {
                break;
            }
            check(sv_release(deep));
            deep = next;
        }
        fails(status, SV_ERROR_INVALID_ARGUMENT, "split the function");
    }
}

#[test]
fn products_have_epilogues() {
    unsafe {
        let a = floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
        let bias = floats(&[-8.0, 1.0], &[2]);
        assert_eq!(
            take::<f32>(ok(|r| matmul::sv_matmul(a, a, std::ptr::null(), r))),
            [7.0, 10.0, 15.0, 22.0]
        );
        let mut options = sv_matmul_options {
            size: size_of::<sv_matmul_options>(),
            bias,
            residual: 0,
            activation: matmul::SV_ACTIVATION_RELU,
            result_dtype: 0,
            conjugate_left: 0,
            conjugate_right: 0,
            has_alpha: 1,
            reserved: 0,
            alpha: real(1.0),
        };
        assert_eq!(take::<f32>(ok(|r| matmul::sv_matmul(a, a, &options, r))), [0.0, 11.0, 7.0, 23.0]);
        let (mut result, mut aux) = (0, 0);
        check(matmul::sv_matmul_with_aux(a, a, &options, &mut result, &mut aux));
        assert_eq!(take::<f32>(aux), [-1.0, 11.0, 7.0, 23.0]);
        assert_eq!(take::<f32>(result), [0.0, 11.0, 7.0, 23.0]);
        let c = floats(&[1.0; 4], &[2, 2]);
        check(matmul::sv_matmul_add_to(c, &real(10.0), a, a, std::ptr::null()));
        assert_eq!(take::<f32>(c), [17.0, 20.0, 25.0, 32.0]);
        options.size = 8;
        fails(
            matmul::sv_matmul(a, a, &options, &mut result),
            SV_ERROR_INVALID_ARGUMENT,
            "options->size: found 8",
        );
        #[repr(C)]
        struct Newer(sv_matmul_options, u64);
        options.size = size_of::<Newer>();
        let newer = Newer(options, 0);
        let known = take::<f32>(ok(|r| matmul::sv_matmul(a, a, (&raw const newer).cast(), r)));
        assert_eq!(known, [0.0, 11.0, 7.0, 23.0]);
        let newer = Newer(options, 1);
        let status = matmul::sv_matmul(a, a, (&raw const newer).cast(), &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "does not know");
    }
}

/// Writes each input's element times the user's number.
unsafe extern "C" fn scale(
    user: *mut c_void,
    inputs: *const sv_array,
    inputs_count: usize,
    outputs: *const sv_array,
    outputs_count: usize,
) -> i32 {
    assert_eq!((inputs_count, outputs_count), (1, 1));
    unsafe {
        let (input, output) = (&*inputs, &*outputs);
        let factor = *user.cast::<f32>();
        if factor == 0.0 {
            return 42;
        }
        let count = (output.bytes / 4) as usize;
        assert_eq!((input.bytes, output.dtype, output.rank, *output.shape), (8, SV_DTYPE_F32, 1, 2));
        for at in 0..count {
            *output.data.cast::<f32>().add(at) = factor * *input.data.cast::<f32>().add(at);
        }
    }
    SV_OK
}

#[test]
fn custom_operations_run_callbacks() {
    unsafe {
        let x = floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
        let column = ok(|r| views::sv_tensor_select(x, 1, 1, r));
        let mut factor = 3.0f32;
        let user = &raw mut factor;
        let operation = sv_custom_operation {
            size: size_of::<sv_custom_operation>(),
            host: Some(scale),
            cuda: None,
            user: user.cast(),
        };
        let shape = [2i64];
        let output = sv_array_type { dtype: SV_DTYPE_F32, rank: 1, shape: shape.as_ptr() };
        let mut result = 0;
        check(custom::sv_custom_run(&operation, CPU, &column, 1, &output, 1, &mut result));
        assert_eq!(take::<f32>(result), [6.0, 12.0]);
        *user = 0.0;
        let status = custom::sv_custom_run(&operation, CPU, &column, 1, &output, 1, &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "returned 42");
        let none = sv_custom_operation { host: None, ..operation };
        let status = custom::sv_custom_run(&none, CPU, &column, 1, &output, 1, &mut result);
        fails(status, SV_ERROR_UNSUPPORTED, "no callback for the CPU");
    }
}

#[test]
fn tensors_go_through_dlpack_and_back() {
    unsafe {
        let x = floats(&[1.0, 2.0], &[2]);
        type Export = unsafe extern "C" fn(u64, u32, i64, *mut *mut c_void) -> i32;
        type Import = unsafe extern "C" fn(*mut c_void, *mut u64) -> i32;
        let pairs: [(Export, Import); 2] = [
            (dlpack::sv_tensor_to_dlpack, dlpack::sv_tensor_from_dlpack),
            (dlpack::sv_tensor_to_dlpack_legacy, dlpack::sv_tensor_from_dlpack_legacy),
        ];
        for (export, import) in pairs {
            for flags in [0, dlpack::SV_DLPACK_COPY, dlpack::SV_DLPACK_WRITABLE] {
                let mut managed = std::ptr::null_mut();
                check(export(x, flags, dlpack::SV_DLPACK_NO_STREAM, &mut managed));
                assert_eq!(take::<f32>(ok(|r| import(managed, r))), [1.0, 2.0]);
            }
            let mut managed = std::ptr::null_mut();
            fails(export(x, 9, -1, &mut managed), SV_ERROR_INVALID_ARGUMENT, "flags: found 9");
            assert!(managed.is_null());
            let mut result = 0;
            fails(import(managed, &mut result), SV_ERROR_INVALID_ARGUMENT, "managed: found NULL");
        }
        let mut managed = std::ptr::null_mut();
        check(dlpack::sv_tensor_to_dlpack(x, dlpack::SV_DLPACK_WRITABLE, -1, &mut managed));
        let shared = ok(|r| dlpack::sv_tensor_from_dlpack(managed, r));
        check(elementwise::sv_tensor_assign(shared, &number(real(9.0))));
        assert_eq!(elements::<f32>(x), [9.0, 9.0], "the consumer's writes are shown");
        check(sv_release(x));
        assert_eq!(take::<f32>(shared), [9.0, 9.0]);
    }
}

#[test]
fn streams_are_of_cuda_devices() {
    unsafe {
        let mut stream = 0;
        fails(copies::sv_stream_current(CPU, &mut stream), SV_ERROR_INVALID_ARGUMENT, "CPU");
        fails(copies::sv_stream_push(0), SV_ERROR_INVALID_HANDLE, "stream: found 0");
        fails(copies::sv_stream_pop(), SV_ERROR_INVALID_ARGUMENT, "no stream");
    }
}
