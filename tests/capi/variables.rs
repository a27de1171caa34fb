//! Variables of a C program: values beside those of tensors, gradients beside differences, and gradients of gradients.

use std::ptr::null;

use selvedge::capi::library::sv_release;
use selvedge::capi::matmul::sv_matmul;
use selvedge::capi::nn::variable::elementwise::*;
use selvedge::capi::nn::variable::gradients::*;
use selvedge::capi::nn::variable::{
    indexing, normalization, reduce, shape, sv_variable_create, sv_variable_requires_grad, sv_variable_tensor,
};
use selvedge::capi::status::*;
use selvedge::capi::tensor::index::{SV_INDEX_AT, SV_INDEX_TENSOR, sv_index, sv_tensor_index};
use selvedge::capi::tensor::indexing as tensor_indexing;
use selvedge::capi::tensor::normalization as tensor_normalization;
use selvedge::capi::tensor::operations::*;
use selvedge::capi::tensor::reduce::*;
use selvedge::capi::tensor::shape::*;
use selvedge::capi::tensor::{SV_DTYPE_BOOL, SV_DTYPE_F64, SV_OPEN, creation, sv_operand, sv_slice, views};

use super::{CPU, check, elements, fails, integers, number, ok, real, release, shape_of, take, tensor};

pub fn doubles(elements: &[f64], shape: &[i64]) -> u64 {
    let (data, bytes) = (elements.as_ptr().cast(), size_of_val(elements));
    // SAFETY: the pointers are to slices of these lengths.
    ok(|result| unsafe {
        creation::sv_tensor_from_host(data, bytes, SV_DTYPE_F64, shape.as_ptr(), shape.len(), CPU, result)
    })
}

fn bools(elements: &[u8], shape: &[i64]) -> u64 {
    let (data, bytes) = (elements.as_ptr().cast(), elements.len());
    // SAFETY: as above.
    ok(|result| unsafe {
        creation::sv_tensor_from_host(data, bytes, SV_DTYPE_BOOL, shape.as_ptr(), shape.len(), CPU, result)
    })
}

/// Returns a leaf that requires a gradient.
pub fn leaf(elements: &[f64], shape: &[i64]) -> u64 {
    let tensor = doubles(elements, shape);
    // SAFETY: the pointer is to a number.
    let leaf = ok(|result| unsafe { sv_variable_create(tensor, 1, result) });
    check(sv_release(tensor));
    leaf
}

pub fn constant(tensor: u64) -> u64 {
    // SAFETY: as above.
    ok(|result| unsafe { sv_variable_create(tensor, 0, result) })
}

pub fn of(variable: u64) -> sv_variable_operand {
    sv_variable_operand { variable, other: number(real(0.0)) }
}

pub fn other(other: sv_operand) -> sv_variable_operand {
    sv_variable_operand { variable: 0, other }
}

pub fn operation(code: u32, operands: &[sv_variable_operand]) -> u64 {
    // SAFETY: the pointers are to a slice of this length and a number.
    ok(|result| unsafe { sv_variable_operation(code, operands.as_ptr(), operands.len(), result) })
}

pub fn sum(variable: u64) -> u64 {
    // SAFETY: the pointer is to a number, and axes of NULL are all.
    ok(|result| unsafe { reduce::sv_variable_reduce(variable, SV_REDUCE_SUM, null(), 0, 0, 0.0, result) })
}

pub fn value(variable: u64) -> Vec<f64> {
    // SAFETY: the pointer is to a number.
    take(ok(|result| unsafe { sv_variable_tensor(variable, result) }))
}

pub fn grad(variable: u64) -> Vec<f64> {
    // SAFETY: as above.
    take(ok(|result| unsafe { sv_variable_grad(variable, result) }))
}

fn variable_shape(variable: u64) -> Vec<i64> {
    // SAFETY: as above.
    let tensor = ok(|result| unsafe { sv_variable_tensor(variable, result) });
    let shape = shape_of(tensor);
    check(sv_release(tensor));
    shape
}

/// A sum of the elements of a result, each with a weight of its own, so that none has the gradient of another one.
fn weighted_sum(result: u64) -> u64 {
    let count: i64 = variable_shape(result).iter().product();
    let weights: Vec<f64> = (0..count).map(|at| 0.5 + 0.25 * at as f64).collect();
    let weights = doubles(&weights, &variable_shape(result));
    let product = operation(SV_OP_MUL, &[of(result), other(tensor(weights))]);
    let total = sum(product);
    release(&[weights, product]);
    total
}

/// Compares the gradient of a function of a variable with central differences.
#[track_caller]
fn has_gradient_of_differences(name: &str, at: &[f64], of_shape: &[i64], function: &dyn Fn(u64) -> u64) {
    let total_at = |point: &[f64]| {
        let x = leaf(point, of_shape);
        let result = function(x);
        let total = weighted_sum(result);
        check(sv_release(result));
        (x, total)
    };
    let (x, total) = total_at(at);
    check(sv_variable_backward(total, 0));
    let found = grad(x);
    for place in 0..at.len() {
        let step = 1e-5;
        let sides = [step, -step].map(|step| {
            let mut point = at.to_vec();
            point[place] += step;
            let (x, total) = total_at(&point);
            let value = value(total)[0];
            release(&[x, total]);
            value
        });
        let wanted = (sides[0] - sides[1]) / (2.0 * step);
        let error = (found[place] - wanted).abs();
        assert!(error < 1e-7 * (1.0 + wanted.abs()), "{name} at {place}: {} and {wanted}", found[place]);
    }
    release(&[x, total]);
}

pub const ELEMENTS: [f64; 6] = [0.3, -1.2, 2.1, 0.7, -0.4, 1.6];

/// A function of a variable, and its function of a tensor.
type Row<'a> = (&'static str, Box<dyn Fn(u64) -> u64 + 'a>, Box<dyn Fn(u64) -> u64 + 'a>);

/// Rows of functions whose arguments between the handle and the result are the same.
macro_rules! rows {
    ($($of_variable:path, $of_tensor:path, ($($argument:expr),*);)*) => {
        vec![$((
            stringify!($of_variable),
            // SAFETY: the pointers are to locals of the sizes that the call is given.
            Box::new(|x: u64| ok(|result| unsafe { $of_variable(x, $($argument,)* result) })) as Box<dyn Fn(u64) -> u64>,
            // SAFETY: as above.
            Box::new(|x: u64| ok(|result| unsafe { $of_tensor(x, $($argument,)* result) })) as Box<dyn Fn(u64) -> u64>,
        )),*]
    };
}

/// Checks the values beside those of tensors, and the gradients beside differences.
fn agree(rows: Vec<Row<'_>>) {
    for (name, of_variable, of_tensor) in rows {
        let (x, tensor) = (leaf(&ELEMENTS, &[2, 3]), doubles(&ELEMENTS, &[2, 3]));
        let (found, wanted) = (of_variable(x), of_tensor(tensor));
        assert_eq!(
            (variable_shape(found), value(found)),
            (shape_of(wanted), elements::<f64>(wanted)),
            "{name}"
        );
        release(&[x, tensor, found, wanted]);
        has_gradient_of_differences(name, &ELEMENTS, &[2, 3], &of_variable);
    }
}

#[test]
fn shapes_of_variables_are_those_of_tensors_and_have_gradients() {
    let slices = [sv_slice { axis: 1, start: 0, stop: SV_OPEN, step: 2 }];
    let zero = real(0.5);
    agree(rows! {
        shape::sv_variable_reshape, views::sv_tensor_reshape, ([3, -1].as_ptr(), 2);
        shape::sv_variable_flatten, views::sv_tensor_flatten, (0, 1);
        shape::sv_variable_unflatten, views::sv_tensor_unflatten, (1, [3, 1].as_ptr(), 2);
        shape::sv_variable_unsqueeze, views::sv_tensor_unsqueeze, (1);
        shape::sv_variable_squeeze_all, views::sv_tensor_squeeze_all, ();
        shape::sv_variable_transpose, views::sv_tensor_transpose, (0, -1);
        shape::sv_variable_permute, views::sv_tensor_permute, ([1, 0].as_ptr(), 2);
        shape::sv_variable_movedim, views::sv_tensor_movedim, ([0].as_ptr(), [1].as_ptr(), 1);
        shape::sv_variable_flip, views::sv_tensor_flip, ([1].as_ptr(), 1);
        shape::sv_variable_expand, views::sv_tensor_expand, ([2, 2, 3].as_ptr(), 3);
        shape::sv_variable_slice, views::sv_tensor_slice, (slices.as_ptr(), 1);
        shape::sv_variable_select, views::sv_tensor_select, (1, -1);
        shape::sv_variable_narrow, views::sv_tensor_narrow, (1, 1, 2);
        shape::sv_variable_diagonal, views::sv_tensor_diagonal, (1, 0, 1);
        shape::sv_variable_roll, sv_tensor_roll, ([1].as_ptr(), [1].as_ptr(), 1);
        shape::sv_variable_repeat, sv_tensor_repeat, ([2, 2].as_ptr(), 2);
        shape::sv_variable_pad, sv_tensor_pad, ([1, 0, 0, 2].as_ptr(), 2, SV_PADDING_CONSTANT, &zero);
    });
    let squeeze = |x| {
        // SAFETY: the pointers are to numbers.
        let row = ok(|result| unsafe { shape::sv_variable_narrow(x, 0, 0, 1, result) });
        let result = ok(|result| unsafe { shape::sv_variable_squeeze(row, 0, result) });
        check(sv_release(row));
        result
    };
    has_gradient_of_differences("sv_variable_squeeze", &ELEMENTS, &[2, 3], &squeeze);
}

#[test]
fn parts_and_joins_of_variables_have_gradients() {
    let parts = |x, at: usize| {
        let mut parts = [0; 2];
        // SAFETY: the pointers are to arrays of two numbers.
        check(unsafe { shape::sv_variable_split(x, [1, 2].as_ptr(), 2, 1, parts.as_mut_ptr()) });
        check(sv_release(parts[1 - at]));
        parts[at]
    };
    has_gradient_of_differences("sv_variable_split", &ELEMENTS, &[2, 3], &|x| parts(x, 1));
    let cat = |x| {
        let part = parts(x, 1);
        // SAFETY: the pointers are to arrays of two numbers and to a number.
        let result = ok(|result| unsafe { shape::sv_variable_cat([part, x].as_ptr(), 2, -1, result) });
        check(sv_release(part));
        result
    };
    has_gradient_of_differences("sv_variable_cat", &ELEMENTS, &[2, 3], &cat);
    // SAFETY: as above.
    let stack = |x| ok(|result| unsafe { shape::sv_variable_stack([x, x].as_ptr(), 2, 0, result) });
    has_gradient_of_differences("sv_variable_stack", &ELEMENTS, &[2, 3], &stack);
    let x = leaf(&ELEMENTS, &[2, 3]);
    let (joined, stacked) = (cat(x), stack(x));
    assert_eq!((variable_shape(joined), variable_shape(stacked)), (vec![2, 5], vec![2, 2, 3]));
    assert_eq!(value(joined)[..5], [-1.2, 2.1, 0.3, -1.2, 2.1]);
    release(&[x, joined, stacked]);
}

#[test]
fn indices_and_masks_of_variables_are_those_of_tensors_and_have_gradients() {
    let (columns, places) = (integers(&[2, 0, 2], &[3]), integers(&[1, 0, 2, 2], &[2, 2]));
    let flat = integers(&[5, 0], &[2]);
    let mask = bools(&[1, 0, 1, 1, 0, 0], &[2, 3]);
    let entry = |kind, tensor, start| sv_index { kind, reserved: 0, tensor, start, stop: 0, step: 1 };
    let items = [entry(SV_INDEX_AT, 0, -1), entry(SV_INDEX_TENSOR, columns, 0)];
    agree(rows! {
        indexing::sv_variable_index, sv_tensor_index, (items.as_ptr(), 2);
        indexing::sv_variable_index_select, tensor_indexing::sv_tensor_index_select, (1, columns);
        indexing::sv_variable_gather, tensor_indexing::sv_tensor_gather, (1, places);
        indexing::sv_variable_take_along_axis, tensor_indexing::sv_tensor_take_along_axis, (1, places);
        indexing::sv_variable_take, tensor_indexing::sv_tensor_take, (flat);
        indexing::sv_variable_tril, sv_tensor_tril, (0);
        indexing::sv_variable_triu, sv_tensor_triu, (1);
    });
    // SAFETY: the pointers are to locals of the sizes that the calls are given.
    unsafe {
        let seven = real(7.0);
        let fill = |x| ok(|result| indexing::sv_variable_masked_fill(x, mask, &seven, result));
        let chosen = |x| ok(|result| indexing::sv_variable_masked_select(x, mask, result));
        let sorted = |x: u64| {
            let mut indices = 0;
            let values = ok(|result| indexing::sv_variable_sort(x, 1, 1, result, &mut indices));
            check(sv_release(indices));
            values
        };
        let largest = |x: u64| {
            let mut indices = 0;
            let values = ok(|result| indexing::sv_variable_topk(x, 2, 1, 1, result, &mut indices));
            assert_eq!(take::<i64>(indices).len(), 4);
            values
        };
        let x = leaf(&ELEMENTS, &[2, 3]);
        for (found, wanted) in [
            (fill(x), &[7.0, -1.2, 7.0, 7.0, -0.4, 1.6][..]),
            (chosen(x), &[0.3, 2.1, 0.7]),
            (sorted(x), &[2.1, 0.3, -1.2, 1.6, 0.7, -0.4]),
            (largest(x), &[2.1, 0.3, 1.6, 0.7]),
        ] {
            assert_eq!(value(found), wanted);
            check(sv_release(found));
        }
        let of_both: [(&str, &dyn Fn(u64) -> u64); 4] =
            [("masked_fill", &fill), ("masked_select", &chosen), ("sort", &sorted), ("topk", &largest)];
        for (name, function) in of_both {
            has_gradient_of_differences(name, &ELEMENTS, &[2, 3], function);
        }
        let table = |x| ok(|result| indexing::sv_variable_embedding(x, flat_rows(), result));
        has_gradient_of_differences("embedding", &ELEMENTS, &[2, 3], &table);

        // Writes have the gradients of both operands.
        let ones = leaf(&[1.0; 6], &[2, 3]);
        let index = integers(&[1, 1, 0], &[3]);
        let add = |x| ok(|result| indexing::sv_variable_index_add(ones, 1, index, x, result));
        let scatter = |x| ok(|result| indexing::sv_variable_scatter_add(ones, 1, places_of_all(), x, result));
        let put = |x: u64| {
            let rows = integers(&[1, 0], &[2]);
            let written = ok(|result| indexing::sv_variable_index_put(ones, &rows, 1, x, 1, result));
            check(sv_release(rows));
            written
        };
        let writes: [(&str, &dyn Fn(u64) -> u64); 3] =
            [("index_add", &add), ("scatter_add", &scatter), ("index_put", &put)];
        for (name, function) in writes {
            has_gradient_of_differences(name, &ELEMENTS, &[2, 3], function);
        }
        let added = add(x);
        assert_eq!(value(added)[..2], [1.0 + 2.1, 1.0 + 0.3 - 1.2]);
        release(&[x, ones, index, added, columns, places, flat, mask]);
    }
}

fn flat_rows() -> u64 {
    integers(&[1, 0, 1], &[3])
}

fn places_of_all() -> u64 {
    integers(&[0, 0, 2, 1, 2, 2], &[2, 3])
}

#[test]
fn reductions_softmax_and_norms_of_variables_are_those_of_tensors_and_have_gradients() {
    for (code, parameter) in [
        (SV_REDUCE_SUM, 0.0),
        (SV_REDUCE_PROD, 0.0),
        (SV_REDUCE_MIN, 0.0),
        (SV_REDUCE_MAX, 0.0),
        (SV_REDUCE_MEAN, 0.0),
        (SV_REDUCE_VAR, 1.0),
        (SV_REDUCE_STD, 0.0),
        (SV_REDUCE_NORM, 3.0),
        (SV_REDUCE_LOGSUMEXP, 0.0),
    ] {
        agree(rows! {
            reduce::sv_variable_reduce, sv_tensor_reduce, (code, [1].as_ptr(), 1, 0, parameter);
            reduce::sv_variable_reduce, sv_tensor_reduce, (code, [-2].as_ptr(), 1, 1, parameter);
            reduce::sv_variable_reduce, sv_tensor_reduce, (code, null(), 0, 0, parameter);
        });
    }
    agree(rows! {
        reduce::sv_variable_scan, sv_tensor_scan, (SV_SCAN_SUM, 1);
        reduce::sv_variable_scan, sv_tensor_scan, (SV_SCAN_PROD, 0);
        normalization::sv_variable_softmax, tensor_normalization::sv_tensor_softmax, (1);
        normalization::sv_variable_log_softmax, tensor_normalization::sv_tensor_log_softmax, (-1);
        normalization::sv_variable_layer_norm, tensor_normalization::sv_tensor_layer_norm, ([3].as_ptr(), 1, 0, 0, 1e-5);
        normalization::sv_variable_rms_norm, tensor_normalization::sv_tensor_rms_norm, ([3].as_ptr(), 1, 0, -1.0);
    });
    let x = leaf(&ELEMENTS, &[2, 3]);
    let mut result = 0;
    // SAFETY: the pointers are to numbers.
    unsafe {
        for code in [0, SV_REDUCE_ARGMAX, SV_REDUCE_ANY, SV_REDUCE_NANSUM, 99] {
            let status = reduce::sv_variable_reduce(x, code, null(), 0, 0, 0.0, &mut result);
            fails(status, SV_ERROR_INVALID_ARGUMENT, "sv_tensor_reduce has the others");
        }
        let status = reduce::sv_variable_reduce(x, SV_REDUCE_VAR, null(), 0, 0, 0.5, &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "the correction");
        let status = reduce::sv_variable_reduce(x, SV_REDUCE_SUM, null(), 0, 2, 0.0, &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "keepdim: found 2; wanted 0 or 1");
        let status = reduce::sv_variable_scan(x, SV_SCAN_MAX, 0, &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "sv_tensor_scan has the others");
    }
    assert_eq!(result, 0);
    check(sv_release(x));
}

#[test]
fn compositions_of_operations_have_gradients() {
    // SAFETY: the pointers are to locals of the sizes that the calls are given.
    unsafe {
        let half = other(number(real(0.5)));
        // tanh(x / 2) · x - e^-x
        let smooth = |x| {
            let scaled = operation(SV_OP_MUL, &[of(x), half]);
            let bent = operation(SV_OP_TANH, &[of(scaled)]);
            let product = operation(SV_OP_MUL, &[of(bent), of(x)]);
            let negative = operation(SV_OP_NEG, &[of(x)]);
            let decay = operation(SV_OP_EXP, &[of(negative)]);
            let result = operation(SV_OP_SUB, &[of(product), of(decay)]);
            release(&[scaled, bent, product, negative, decay]);
            result
        };
        has_gradient_of_differences("tanh(x / 2) x - exp(-x)", &ELEMENTS, &[2, 3], &smooth);
        // ½ ^ x, with the number first, and x xᵀ, a product of both sides.
        let power = |x| operation(SV_OP_POW, &[half, of(x)]);
        has_gradient_of_differences("pow", &ELEMENTS, &[2, 3], &power);
        let gram = |x| {
            let transposed = ok(|result| shape::sv_variable_transpose(x, 0, 1, result));
            let product = ok(|result| sv_variable_matmul(x, transposed, result));
            check(sv_release(transposed));
            product
        };
        has_gradient_of_differences("x xᵀ", &ELEMENTS, &[2, 3], &gram);
        let tensor_of = doubles(&ELEMENTS, &[2, 3]);
        let turned = ok(|result| views::sv_tensor_transpose(tensor_of, 0, 1, result));
        let wanted: Vec<f64> = take(ok(|result| sv_matmul(tensor_of, turned, null(), result)));
        let x = leaf(&ELEMENTS, &[2, 3]);
        let found = gram(x);
        assert_eq!(value(found), wanted);
        // The mask is a tensor, and a row broadcasts to both rows.
        let mask = bools(&[1, 0, 1], &[3]);
        let row = doubles(&[1.0, 2.0, 3.0], &[3]);
        let chosen = |x| operation(SV_OP_CHOOSE, &[other(tensor(mask)), of(x), other(tensor(row))]);
        has_gradient_of_differences("choose", &ELEMENTS, &[2, 3], &chosen);
        let pick = chosen(x);
        assert_eq!(value(pick), [0.3, 2.0, 2.1, 0.7, 2.0, 1.6]);
        let broadcast = |x| operation(SV_OP_DIV, &[other(tensor(tensor_of)), of(x)]);
        has_gradient_of_differences("a row below", &[1.5, -2.0, 0.5], &[3], &broadcast);
        // Integers and comparisons have no gradient.
        let positive = operation(SV_OP_GT, &[of(x), other(number(real(0.0)))]);
        let mut requires = -1;
        check(sv_variable_requires_grad(positive, &mut requires));
        assert_eq!(requires, 0);
        fails(sv_variable_backward(positive, 0), SV_ERROR_BACKWARD, "gt");
        release(&[tensor_of, turned, x, found, mask, row, pick, positive]);
    }
}

#[test]
fn gradients_of_gradients_are_those_of_the_formula() {
    let x = leaf(&[1.0, 2.0, -3.0], &[3]);
    // SAFETY: the pointers are to locals of the sizes that the calls are given.
    unsafe {
        let cube = operation(SV_OP_POW, &[of(x), other(number(real(3.0)))]);
        let total = sum(cube);
        let gradients = |of: u64, gradient: u64, create_graph| {
            let mut found = [0];
            let status = sv_variable_gradients(of, gradient, &x, 1, create_graph, found.as_mut_ptr());
            check(status);
            found[0]
        };
        let first = gradients(total, 0, 1);
        assert_eq!(value(first), [3.0, 12.0, 27.0]);
        // The product of the Hessian, 6 x on its diagonal, and a vector.
        let vector = doubles(&[1.0, -1.0, 0.5], &[3]);
        let direction = constant(vector);
        let second = gradients(first, direction, 1);
        assert_eq!(value(second), [6.0, -12.0, -9.0]);
        let third = gradients(sum(second), 0, 0);
        assert_eq!(value(third), [6.0, -6.0, 3.0]);
        // No leaf has a gradient of its own yet, and the values are there for a backward.
        let mut none = 1;
        check(sv_variable_grad(x, &mut none));
        assert_eq!(none, 0);
        check(sv_variable_backward_retain_graph(total, 0));
        check(sv_variable_backward(total, 0));
        assert_eq!(grad(x), [6.0, 24.0, 54.0]);
        fails(sv_variable_backward(total, 0), SV_ERROR_BACKWARD, "");
        check(sv_variable_zero_grad(x));

        // Without create_graph the gradients are constants, and every operation has them.
        let mut requires = -1;
        let plain = gradients(sum(operation(SV_OP_SQUARE, &[of(x)])), 0, 0);
        check(sv_variable_requires_grad(plain, &mut requires));
        assert_eq!((value(plain), requires), (vec![2.0, 4.0, -6.0], 0));
        let product = ok(|result| reduce::sv_variable_reduce(x, SV_REDUCE_PROD, null(), 0, 0, 0.0, result));
        assert_eq!(value(gradients(product, 0, 0)), [-6.0, -3.0, 2.0]);
        let mut found = [7];
        let status = sv_variable_gradients(product, 0, &x, 1, 1, found.as_mut_ptr());
        fails(status, SV_ERROR_BACKWARD, "prod");
        let status = sv_variable_gradients(product, 0, &direction, 1, 0, found.as_mut_ptr());
        fails(status, SV_ERROR_BACKWARD, "input 0, which requires no gradient");
        let status = sv_variable_gradients(cube, 0, &x, 1, 0, found.as_mut_ptr());
        fails(status, SV_ERROR_BACKWARD, "without a gradient");
        let status = sv_variable_gradients(cube, product, &x, 1, 0, found.as_mut_ptr());
        fails(status, SV_ERROR_BACKWARD, "a gradient of f64 of shape []");
        assert_eq!(found, [7]);
        release(&[x, cube, total, first, vector, direction, second, third, plain, product]);
    }
}
