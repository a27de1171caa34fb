//! Sorting, index expressions, writes by index and statistics of the C ABI: codes, several results, and refusals. The values of
//! each function are in `classes_indexing.hpp`.

use selvedge::capi::status::*;
use selvedge::capi::tensor::accumulate::*;
use selvedge::capi::tensor::index::*;
use selvedge::capi::tensor::sorting::*;
use selvedge::capi::tensor::statistics::*;
use selvedge::capi::tensor::{SV_OPEN, random, reduce};

use super::{check, elements, fails, floats, integer, integers, number, ok, shape_of, take, tensor};

fn item(kind: i32) -> sv_index {
    sv_index { kind, reserved: 0, tensor: 0, start: SV_OPEN, stop: SV_OPEN, step: 1 }
}

// SAFETY of every call below: the pointers are to locals of the sizes that the call is given.

#[test]
fn calls_with_two_results_give_both_or_none() {
    let x = integers(&[3, 1, 3, 2], &[2, 2]);
    let (mut values, mut indices) = (7, 8);
    unsafe {
        for (code, wanted) in [
            (SV_WITH_INDICES_MAX, [[3, 3], [0, 0]]),
            (SV_WITH_INDICES_MIN, [[1, 2], [1, 1]]),
            (SV_WITH_INDICES_MEDIAN, [[1, 2], [1, 1]]),
            (SV_WITH_INDICES_MODE, [[1, 2], [1, 1]]),
        ] {
            check(sv_tensor_reduce_with_indices(x, code, 1, &mut values, &mut indices));
            assert_eq!([take::<i64>(values), take::<i64>(indices)], wanted, "{code}");
        }
        (values, indices) = (7, 8);
        let status = sv_tensor_reduce_with_indices(x, 9, 1, &mut values, &mut indices);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "one of SV_WITH_INDICES_...");
        fails(sv_tensor_sort(x, 2, 0, &mut values, &mut indices), SV_ERROR_INVALID_ARGUMENT, "axis");
        fails(sv_tensor_topk(x, 3, 1, 1, &mut values, &mut indices), SV_ERROR_INVALID_ARGUMENT, "k");
        fails(sv_tensor_sort(x, 0, 2, &mut values, &mut indices), SV_ERROR_INVALID_ARGUMENT, "descending");
        let status = sv_tensor_sort(x, 0, 0, &mut values, std::ptr::null_mut());
        fails(status, SV_ERROR_INVALID_ARGUMENT, "indices: found NULL");
        assert_eq!((values, indices), (7, 8));
        let (mut deviation, mut mean) = (0, 0);
        let y = floats(&[1.0, 3.0, 5.0, 9.0], &[2, 2]);
        check(sv_tensor_std_mean(y, [-1].as_ptr(), 1, 0, &mut deviation, &mut mean));
        assert_eq!((take::<f32>(deviation), take::<f32>(mean)), (vec![1.0, 2.0], vec![2.0, 7.0]));
        let gaps = floats(&[1.0, f32::NAN, 5.0, 9.0], &[2, 2]);
        for (axes, shape, wanted) in [(&[][..], [1, 1], &[15.0][..]), (&[-1], [2, 1], &[1.0, 14.0])] {
            let pointer = if axes.is_empty() { std::ptr::null() } else { axes.as_ptr() };
            let sum = ok(|result| {
                reduce::sv_tensor_reduce(gaps, reduce::SV_REDUCE_NANSUM, pointer, axes.len(), 1, 0.0, result)
            });
            assert_eq!(shape_of(sum), shape);
            assert_eq!(take::<f32>(sum), wanted);
        }
        let mut equal = 7;
        check(sv_tensor_equal(x, x, &mut equal));
        assert_eq!(equal, 1);
        let weights = floats(&[1.0, -1.0], &[2]);
        fails(random::sv_multinomial(0, weights, 1, 1, &mut values), SV_ERROR_INVALID_ARGUMENT, "weights");
    }
}

#[test]
fn index_expressions_read_and_write() {
    let x = integers(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], &[3, 4]);
    let at = |position| sv_index { start: position, ..item(SV_INDEX_AT) };
    let places = |handle| sv_index { tensor: handle, ..item(SV_INDEX_TENSOR) };
    let every_other = sv_index { step: 2, ..item(SV_INDEX_SLICE) };
    let rows = integers(&[2, 0], &[2]);
    let read =
        |items: &[sv_index]| ok(|result| unsafe { sv_tensor_index(x, items.as_ptr(), items.len(), result) });
    for (items, wanted) in [
        (&[at(-1)][..], &[8, 9, 10, 11][..]),
        (&[item(SV_INDEX_ELLIPSIS), at(1)], &[1, 5, 9]),
        (&[every_other, item(SV_INDEX_NEW_AXIS), at(0)], &[0, 8]),
        (&[places(rows), every_other], &[8, 10, 0, 2]),
    ] {
        assert_eq!(take::<i64>(read(items)), wanted);
    }
    let bad = integers(&[3], &[1]);
    let mut result = 7;
    unsafe {
        for (items, status, text) in [
            (vec![at(3)], SV_ERROR_INDEX_OUT_OF_RANGE, "3"),
            (vec![places(bad)], SV_ERROR_INDEX_OUT_OF_RANGE, "3"),
            (vec![item(9)], SV_ERROR_INVALID_ARGUMENT, "SV_INDEX"),
            (vec![sv_index { step: 0, ..every_other }], SV_ERROR_INVALID_ARGUMENT, "step"),
            (vec![item(SV_INDEX_ELLIPSIS); 2], SV_ERROR_INVALID_ARGUMENT, "ellips"),
            (vec![places(0)], SV_ERROR_INVALID_HANDLE, "items.tensor"),
        ] {
            fails(sv_tensor_index(x, items.as_ptr(), items.len(), &mut result), status, text);
        }
        assert_eq!(result, 7);
        // The value may be the tensor itself.
        let reversed = sv_index { step: -1, ..item(SV_INDEX_SLICE) };
        check(sv_tensor_index_assign_in_place(x, [reversed].as_ptr(), 1, &tensor(x)));
        assert_eq!(elements::<i64>(x), [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3]);
        let value = number(integer(5));
        let given = ok(|result| sv_tensor_index_assign(x, [at(0)].as_ptr(), 1, &value, result));
        assert_eq!(elements::<i64>(given)[..5], [5, 5, 5, 5, 4]);
        check(sv_tensor_index_add_in_place(x, 0, rows, x_rows(x)));
        assert_eq!(elements::<i64>(x), [8, 10, 12, 14, 4, 5, 6, 7, 4, 6, 8, 10]);
        let all = reduce::SV_REDUCE_ALL;
        let status = sv_tensor_scatter_reduce_in_place(x, 0, rows, rows, all, 1);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "SV_REDUCE_SUM");
        fails(
            sv_tensor_index_put(x, std::ptr::null(), 0, rows, 0, &mut result),
            SV_ERROR_INVALID_ARGUMENT,
            "0 indices",
        );
        assert_eq!(result, 7);
    }
}

/// Returns the last two rows of a tensor.
fn x_rows(x: u64) -> u64 {
    let rows = sv_index { start: 1, ..item(SV_INDEX_SLICE) };
    // SAFETY: the pointers are to locals.
    ok(|result| unsafe { sv_tensor_index(x, [rows].as_ptr(), 1, result) })
}
