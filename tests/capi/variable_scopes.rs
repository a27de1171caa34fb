//! Scopes without gradients, training by hand, losses with options, and refusals of variables.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use selvedge::capi::handle::SV_NO_VARIABLE;
use selvedge::capi::library::sv_release;
use selvedge::capi::nn::variable::elementwise::*;
use selvedge::capi::nn::variable::gradients::*;
use selvedge::capi::nn::variable::losses::*;
use selvedge::capi::nn::variable::no_grad::*;
use selvedge::capi::nn::variable::{
    indexing, shape, sv_variable_assign, sv_variable_cast, sv_variable_create, sv_variable_detach,
    sv_variable_is_leaf, sv_variable_requires_grad, sv_variable_tensor, sv_variable_to_device,
};
use selvedge::capi::status::*;
use selvedge::capi::tensor::SV_DTYPE_F32;
use selvedge::capi::tensor::operations::*;

use super::variables::{ELEMENTS, constant, doubles, leaf, of, operation, other, sum, value};
use super::{CPU, check, fails, integers, message, number, ok, real, release, take, tensor};

fn is_enabled() -> bool {
    let mut enabled = -1;
    // SAFETY: the pointer is to a number.
    check(unsafe { sv_is_grad_enabled(&mut enabled) });
    enabled == 1
}

fn begin() -> usize {
    let mut depth = usize::MAX;
    // SAFETY: as above.
    check(unsafe { sv_no_grad_begin(&mut depth) });
    depth
}

#[test]
fn scopes_without_gradients_nest_and_an_outer_one_ends_those_left_open() {
    let x = leaf(&[2.0], &[1]);
    let is_recorded = || {
        let square = operation(SV_OP_SQUARE, &[of(x)]);
        let mut requires = -1;
        // SAFETY: as above.
        check(unsafe { sv_variable_requires_grad(square, &mut requires) });
        check(sv_release(square));
        requires == 1
    };
    let outer = begin();
    assert!(!is_enabled() && !is_recorded());
    let inner = begin();
    assert!(inner > outer);
    check(sv_no_grad_end(inner));
    fails(
        sv_no_grad_end(inner),
        SV_ERROR_INVALID_ARGUMENT,
        "depth: found 1; wanted one that sv_no_grad_begin wrote",
    );
    assert!(!is_enabled());
    // Two scopes stay open, as after an early return.
    begin();
    begin();
    check(sv_no_grad_end(outer));
    assert!(is_enabled() && is_recorded());
    fails(sv_no_grad_end(outer), SV_ERROR_INVALID_ARGUMENT, "below 0, its open scopes");

    // Another thread has scopes of its own.
    let here = begin();
    let there = std::thread::spawn(move || (is_enabled(), sv_no_grad_end(here))).join().unwrap();
    assert_eq!(there, (true, SV_ERROR_INVALID_ARGUMENT));
    check(sv_no_grad_end(here));
    check(sv_release(x));
}

#[test]
fn work_without_gradients_ends_its_scope_and_those_it_leaves_open() {
    /// Writes whether gradients were enabled, and leaves a scope open.
    unsafe extern "C" fn work(user: *mut c_void) {
        // SAFETY: the caller passes a pointer to a truth value.
        unsafe { user.cast::<bool>().write(is_enabled()) };
        begin();
    }
    let mut was_enabled = true;
    // SAFETY: the function takes a pointer to a truth value.
    unsafe {
        check(sv_no_grad(Some(work), (&raw mut was_enabled).cast()));
        assert!(!was_enabled && is_enabled());
        let outer = begin();
        check(sv_no_grad(Some(work), (&raw mut was_enabled).cast()));
        assert!(!is_enabled());
        check(sv_no_grad_end(outer));
        assert!(is_enabled());
        fails(sv_no_grad(None, null_mut()), SV_ERROR_INVALID_ARGUMENT, "work: found NULL; wanted a function");
    }
}

#[test]
fn a_leaf_is_trained_by_hand() {
    let x = leaf(&[5.0, -3.0], &[2]);
    // SAFETY: the pointers are to locals of the sizes that the calls are given.
    unsafe {
        let status = sv_variable_assign(x, &number(real(0.0)));
        fails(status, SV_ERROR_INVALID_ARGUMENT, "an update within no_grad");
        for _ in 0..60 {
            let loss = sum(operation(SV_OP_SQUARE, &[of(x)]));
            check(sv_variable_zero_grad(x));
            check(sv_variable_backward(loss, 0));
            check(sv_release(loss));
            let gradient = constant(ok(|result| sv_variable_grad(x, result)));
            let scope = begin();
            let step = operation(SV_OP_MUL, &[of(gradient), other(number(real(0.1)))]);
            let moved = operation(SV_OP_SUB, &[of(x), of(step)]);
            let value = ok(|result| sv_variable_tensor(moved, result));
            check(sv_variable_assign(x, &tensor(value)));
            check(sv_no_grad_end(scope));
            release(&[gradient, step, moved, value]);
        }
        assert!(value(x).iter().all(|element| element.abs() < 1e-4), "{:?}", value(x));
        // A result of a recorded operation does not change, and a changed value has no backward.
        let square = operation(SV_OP_SQUARE, &[of(x)]);
        fails(
            sv_variable_assign(square, &number(real(0.0))),
            SV_ERROR_INVALID_ARGUMENT,
            "the result of square",
        );
        let total = sum(square);
        let scope = begin();
        check(sv_variable_assign(x, &number(real(1.0))));
        check(sv_no_grad_end(scope));
        fails(sv_variable_backward(total, 0), SV_ERROR_BACKWARD, "square");
        let mut is_leaf = [-1; 2];
        check(sv_variable_is_leaf(x, &mut is_leaf[0]));
        check(sv_variable_is_leaf(square, &mut is_leaf[1]));
        assert_eq!(is_leaf, [1, 0]);
        let detached = ok(|result| sv_variable_detach(square, result));
        check(sv_variable_is_leaf(detached, &mut is_leaf[0]));
        fails(sv_variable_backward(detached, 0), SV_ERROR_BACKWARD, "requires no gradient");
        let narrow = ok(|result| sv_variable_cast(x, SV_DTYPE_F32, result));
        assert_eq!(take::<f32>(ok(|result| sv_variable_tensor(narrow, result))), [1.0, 1.0]);
        let same = ok(|result| sv_variable_to_device(x, CPU, result));
        assert_eq!(value(same), [1.0, 1.0]);
        release(&[x, square, total, detached, narrow, same]);
    }
}

#[test]
fn losses_have_the_forms_of_their_options() {
    let x = leaf(&[0.5, -1.0, 2.0, 0.0, 1.0, -0.5], &[2, 3]);
    let (labels, target) = (integers(&[2, 7], &[2]), doubles(&[0.0; 6], &[2, 3]));
    let zeros = sv_loss_options {
        size: size_of::<sv_loss_options>(),
        reduction: 0,
        is_log_target: 0,
        has_ignore_index: 0,
        reserved: 0,
        ignore_index: 0,
        label_smoothing: 0.0,
    };
    // SAFETY: the pointers are to a struct and numbers.
    let with = |loss, target, options: &sv_loss_options, result: *mut u64| unsafe {
        sv_variable_loss_with_options(x, loss, target, options, result)
    };
    let found = |loss, target, options| {
        let loss = ok(|result| with(loss, target, &options, result));
        let values = value(loss);
        check(sv_release(loss));
        values
    };
    // SAFETY: as above.
    let plain = ok(|result| unsafe { sv_variable_loss(x, SV_LOSS_MSE, target, result) });
    assert_eq!(found(SV_LOSS_MSE, target, zeros), value(plain));
    let in_form = |reduction| sv_loss_options { reduction, ..zeros };
    assert_eq!(found(SV_LOSS_MSE, target, in_form(SV_LOSS_REDUCTION_NONE)), [0.25, 1.0, 4.0, 0.0, 1.0, 0.25]);
    assert_eq!(found(SV_LOSS_MSE, target, in_form(SV_LOSS_REDUCTION_SUM)), [6.5]);
    assert_eq!(found(SV_LOSS_MSE, target, in_form(SV_LOSS_REDUCTION_BATCH_MEAN)), [3.25]);
    assert_eq!(found(SV_LOSS_MSE, target, in_form(SV_LOSS_REDUCTION_MEAN)), [6.5 / 6.0]);
    // The second label is ignored, and -ln softmax of the first row at 2 is left.
    let ignored = sv_loss_options { has_ignore_index: 1, ignore_index: 7, ..zeros };
    let powers = [0.5f64, -1.0, 2.0].map(f64::exp);
    let wanted = -(powers[2] / powers.iter().sum::<f64>()).ln();
    assert!((found(SV_LOSS_CROSS_ENTROPY, labels, ignored)[0] - wanted).abs() < 1e-12);
    let smoothed = sv_loss_options { label_smoothing: 0.3, ..ignored };
    let all: f64 = powers.iter().map(|power| -(power / powers.iter().sum::<f64>()).ln()).sum();
    assert!((found(SV_LOSS_CROSS_ENTROPY, labels, smoothed)[0] - 0.7 * wanted - 0.1 * all).abs() < 1e-12);
    let logarithms = sv_loss_options { is_log_target: 1, ..in_form(SV_LOSS_REDUCTION_SUM) };
    assert!((found(SV_LOSS_KL_DIV, target, logarithms)[0] + 2.0).abs() < 1e-12);

    let mut result = 0;
    for (loss, options, text) in [
        (SV_LOSS_MSE, in_form(9), "options.reduction: found 9; wanted one of SV_LOSS_REDUCTION_..."),
        (SV_LOSS_MSE, ignored, "options.has_ignore_index"),
        (SV_LOSS_NLL, smoothed, "options.label_smoothing"),
        (SV_LOSS_CROSS_ENTROPY, logarithms, "options.is_log_target"),
        (SV_LOSS_CROSS_ENTROPY, sv_loss_options { ignore_index: 7, ..zeros }, "options.has_ignore_index 1"),
        (SV_LOSS_MSE, sv_loss_options { reserved: 1, ..zeros }, "options.reserved"),
        (99, zeros, "loss: found 99; wanted one of SV_LOSS_..."),
    ] {
        fails(with(loss, target, &options, &mut result), SV_ERROR_INVALID_ARGUMENT, text);
    }
    let status = with(SV_LOSS_CROSS_ENTROPY, labels, &zeros, &mut result);
    fails(status, SV_ERROR_INDEX_OUT_OF_RANGE, "7");
    assert_eq!(result, 0);
    release(&[x, labels, target, plain]);
}

#[test]
fn operations_refuse_other_handles_dtypes_shapes_and_counts() {
    let (x, row) = (leaf(&ELEMENTS, &[2, 3]), leaf(&[1.0, 2.0], &[2]));
    let (ints, plain) = (integers(&[1, 2], &[2]), doubles(&[1.0, 2.0], &[2]));
    let mut result = 0;
    // SAFETY: the pointers are to locals of the sizes that the calls are given.
    unsafe {
        let mut refuses = |code, operands: &[sv_variable_operand], wanted, text: &str| {
            fails(
                sv_variable_operation(code, operands.as_ptr(), operands.len(), &mut result),
                wanted,
                &format!("sv_variable_operation: {text}"),
            );
        };
        refuses(SV_OP_ADD, &[of(x), of(plain)], SV_ERROR_INVALID_HANDLE, "add: operands: found");
        assert!(message().contains("the handle of a tensor; wanted the handle of a live variable"));
        let none = of(SV_NO_VARIABLE);
        refuses(SV_OP_EXP, &[none], SV_ERROR_INVALID_HANDLE, "exp: operands: found SV_NO_VARIABLE");
        refuses(SV_OP_EXP, &[other(tensor(x))], SV_ERROR_INVALID_HANDLE, "exp: operands: found");
        let both = sv_variable_operand { variable: x, other: tensor(plain) };
        refuses(SV_OP_EXP, &[both], SV_ERROR_INVALID_ARGUMENT, "exp: operands.other.tensor");
        refuses(SV_OP_ADD, &[of(x)], SV_ERROR_INVALID_ARGUMENT, "count: found 1 operands; wanted 2 for add");
        refuses(9999, &[of(x)], SV_ERROR_INVALID_ARGUMENT, "operation: found 9999; wanted one of SV_OP_...");
        refuses(SV_OP_ADD, &[of(x), of(row)], SV_ERROR_INVALID_ARGUMENT, "add: ");
        assert!(message().contains("[2, 3] and [2]"), "{}", message());
        refuses(SV_OP_BIT_AND, &[of(x), of(x)], SV_ERROR_DTYPE_MISMATCH, "bit_and wants bool");
        let numbers = [other(number(real(1.0))), other(number(real(2.0)))];
        refuses(SV_OP_ADD, &numbers, SV_ERROR_INVALID_ARGUMENT, "");
        fails(
            sv_variable_operation(SV_OP_EXP, null(), 1, &mut result),
            SV_ERROR_INVALID_ARGUMENT,
            "operands: found NULL",
        );
        fails(
            sv_variable_operation(SV_OP_EXP, &of(x), 1, null_mut()),
            SV_ERROR_INVALID_ARGUMENT,
            "result: found NULL",
        );

        fails(sv_variable_create(ints, 1, &mut result), SV_ERROR_DTYPE_MISMATCH, "floats or complex numbers");
        fails(sv_variable_matmul(x, x, &mut result), SV_ERROR_INVALID_ARGUMENT, "sv_variable_matmul: matmul");
        fails(sv_variable_matmul(x, plain, &mut result), SV_ERROR_INVALID_HANDLE, "right: found");
        fails(
            shape::sv_variable_select(x, 0, 5, &mut result),
            SV_ERROR_INVALID_ARGUMENT,
            "select: found index 5",
        );
        fails(shape::sv_variable_cat([x, row].as_ptr(), 2, 0, &mut result), SV_ERROR_INVALID_ARGUMENT, "cat");
        let status = indexing::sv_variable_take(x, plain, &mut result);
        fails(status, SV_ERROR_DTYPE_MISMATCH, "take");
        let mut parts = [3, 4];
        let status = shape::sv_variable_split(x, [1, -1].as_ptr(), 2, 1, parts.as_mut_ptr());
        fails(status, SV_ERROR_INVALID_ARGUMENT, "sizes: found -1; wanted sizes from 0 on");
        assert_eq!(parts, [3, 4]);
    }
    assert_eq!(result, 0);
    release(&[x, row, ints, plain]);
}
