//! Functions of whole arrays in the C ABI: reductions, rows, indices, random numbers and files.

use std::ffi::CString;

use selvedge::capi::library::sv_release;
use selvedge::capi::status::*;
use selvedge::capi::tensor::{
    SV_DTYPE_BOOL, SV_DTYPE_F32, SV_DTYPE_F64, SV_DTYPE_I64, indexing, io, normalization, random, reduce,
};

use super::{CPU, check, elements, fails, floats, integers, number, ok, real, shape_of, take};

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
        close(ok(|r| normalization::sv_tensor_softmax(x, -1, r)), [0.119203, 0.880797, 0.0000454, 0.9999546]);
        close(
            ok(|r| normalization::sv_tensor_log_softmax(x, 1, r)),
            [-2.126928, -0.126928, -10.000045, -0.0000454],
        );
        let layer_norm =
            |weight, bias, r| normalization::sv_tensor_layer_norm(x, size.as_ptr(), 1, weight, bias, 0.0, r);
        close(ok(|r| layer_norm(0, 0, r)), [-1.0, 1.0, -1.0, 1.0]);
        close(ok(|r| layer_norm(weight, bias, r)), [-2.0, 13.0, -2.0, 13.0]);
        let rms_norm =
            |weight, eps, r| normalization::sv_tensor_rms_norm(x, size.as_ptr(), 1, weight, eps, r);
        close(ok(|r| rms_norm(0, -1.0, r)), [0.4472136, 1.3416408, -1.0, 1.0]);
        close(ok(|r| rms_norm(weight, 20.0, r)), [0.4, 1.8, -1.4907119, 2.236068]);
        close(
            ok(|r| normalization::sv_tensor_group_norm(x, 1, weight, bias, 0.0, r)),
            [-2.0, 13.0, -2.0, 13.0],
        );
        close(ok(|r| normalization::sv_tensor_standardize(x, axes.as_ptr(), 1, r)), [-1.0, 1.0, -1.0, 1.0]);
        close(
            ok(|r| normalization::sv_tensor_normalize(x, 1.0, axes.as_ptr(), 1, 0.0, r)),
            [0.25, 0.75, -0.5, 0.5],
        );
        close(
            ok(|r| normalization::sv_tensor_normalize(x, 2.0, std::ptr::null(), 0, 100.0, r)),
            [0.01, 0.03, -0.05, 0.05],
        );

        let [mean, variance] = [floats(&[0.0, 0.0], &[2]), floats(&[1.0, 1.0], &[2])];
        let training = |mean, variance, r| {
            normalization::sv_tensor_batch_norm_training(x, mean, variance, weight, bias, 0.5, 0.0, r)
        };
        // The handles in either order lock the same tensors.
        close(ok(|r| training(mean, variance, r)), [2.0, 7.0, -2.0, 13.0]);
        assert_eq!((elements::<f32>(mean), elements::<f32>(variance)), (vec![-1.0, 2.0], vec![9.5, 1.5]));
        close(ok(|r| training(variance, mean, r)), [2.0, 7.0, -2.0, 13.0]);
        assert_eq!((elements::<f32>(variance), elements::<f32>(mean)), (vec![3.75, 2.75], vec![8.5, 2.0]));
        close(ok(|r| training(0, 0, r)), [2.0, 7.0, -2.0, 13.0]);
        let infinite = floats(&[f32::INFINITY, 0.0], &[2]);
        take::<f32>(ok(|r| training(infinite, variance, r)));
        assert_eq!(elements::<f32>(infinite), [f32::INFINITY, 2.0]);
        let inference = |weight, bias, r| normalization::sv_tensor_batch_norm(x, bias, weight, 0, 0, 1.0, r);
        close(ok(|r| inference(weight, bias, r)), [0.5773503, -3.5, -2.8867513, -2.5]);

        let mut result = 0;
        fails(normalization::sv_tensor_softmax(x, 2, &mut result), SV_ERROR_INVALID_ARGUMENT, "axis 2");
        fails(
            training(mean, mean, &mut result),
            SV_ERROR_INVALID_ARGUMENT,
            "running_var: found the same handle",
        );
        fails(training(mean, 0, &mut result), SV_ERROR_INVALID_HANDLE, "running_var");
        fails(layer_norm(x, 0, &mut result), SV_ERROR_INVALID_ARGUMENT, "a weight of shape [2, 2]");
        let status = normalization::sv_tensor_normalize(x, 2.0, std::ptr::null(), 1, 0.0, &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "axes: found NULL");
        assert_eq!(result, 0);
        for tensor in [x, weight, bias, mean, variance, infinite] {
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
