//! Tensors of the C ABI: creation, views, elementwise operations and forms in place.

use std::ffi::CStr;

use selvedge::capi::handle::SV_NO_TENSOR;
use selvedge::capi::library::{sv_release, sv_retain};
use selvedge::capi::status::*;
use selvedge::capi::tensor::operations::*;
use selvedge::capi::tensor::{
    SV_DTYPE_F32, SV_DTYPE_F64, SV_DTYPE_I32, SV_DTYPE_I64, SV_OPEN, copies, creation, elementwise, indexing,
    properties, shape, statistics, sv_number, sv_slice, views,
};
use selvedge::fuse::Operation;

use super::{
    CPU, check, elements, fails, floats, integer, integers, number, ok, real, shape_of, take, tensor,
};

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
            elementwise::sv_binary(
                SV_OP_GT,
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
        assert_eq!(take::<f32>(ok(|r| elementwise::sv_binary(SV_OP_ADD, x, x, r))), [0.5, 1.0]);
        assert_eq!(take::<f32>(ok(|r| elementwise::sv_unary(SV_OP_NEG, x, r))), [-0.25, -0.5]);
        assert_eq!(take::<f32>(ok(|r| elementwise::sv_ternary(SV_OP_FMA, x, x, x, r))), [0.3125, 0.75]);
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
        check(elementwise::sv_operation_in_place(SV_OP_ADD, x, &tensor(x), 1));
        check(elementwise::sv_operation_in_place(SV_OP_MUL, x, &number(real(10.0)), 1));
        let copy = ok(|r| copies::sv_tensor_copy(x, r));
        check(elementwise::sv_operation_in_place(SV_OP_SQRT, copy, std::ptr::null(), 0));
        assert_eq!(elements::<f32>(x), [20.0, 40.0, 60.0]);
        assert_eq!(elements::<f32>(view), [1.0, 2.0, 3.0]);
        let operands = [tensor(view), number(real(1.0))];
        check(elementwise::sv_operation_into(SV_OP_SUB, operands.as_ptr(), 2, x));
        assert_eq!(elements::<f32>(x), [0.0, 1.0, 2.0]);
        check(elementwise::sv_tensor_assign(x, &number(real(5.0))));
        let last = sv_slice { axis: 0, start: -1, stop: SV_OPEN, step: 1 };
        check(elementwise::sv_tensor_assign_slice(x, &last, 1, &number(integer(7))));
        assert_eq!(elements::<f32>(x), [5.0, 5.0, 7.0]);
        let mask = ok(|r| elementwise::sv_binary(SV_OP_LT, view, x, r));
        check(indexing::sv_tensor_masked_fill_in_place(x, mask, &number(real(0.0))));
        assert_eq!(elements::<f32>(x), [0.0; 3]);
        let mut close = 7;
        check(statistics::sv_tensor_allclose(x, view, 0.0, 3.0, &mut close));
        assert_eq!(close, 1);
        let none = tensor(SV_NO_TENSOR);
        let status = elementwise::sv_operation_in_place(SV_OP_ADD, x, &none, 1);
        fails(status, SV_ERROR_INVALID_HANDLE, "add: ");
    }
}
