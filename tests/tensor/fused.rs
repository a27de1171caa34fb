//! Fused functions: what they compute, what they are given, and that operations one by one give the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use selvedge::Error;
use selvedge::fuse::Operation;
use selvedge::tensor::{Device, Fused, Tensor, TensorOperand, fuse};
use selvedge::types::DType;

fn of(values: [f32; 4]) -> Tensor {
    Tensor::new(values, &Device::cpu()).expect("a tensor")
}

#[test]
fn a_fused_function_is_its_operations_one_by_one() {
    let (a, b, c) = (of([1.5, -2.0, 0.1, 1e30]), of([3.0, 4.0, -7.5, 1e20]), of([0.3, 0.3, f32::NAN, 1.0]));
    let fused = Fused::new(|[a, b, c]| ((a * b + c).tanh() - 0.25).maximum(a) / (b + 2));
    let step = (&(&a * &b).unwrap() + &c).unwrap().tanh().unwrap();
    let step = (step - 0.25).unwrap().maximum(&a).unwrap();
    let step = step.div(&(&b + 2).unwrap()).unwrap();
    let bits = |x: &Tensor| x.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>();
    assert_eq!(bits(&fused.run([&a, &b, &c]).unwrap()), bits(&step));
    assert_eq!(
        bits(&fuse([&a, &b, &c], |[a, b, c]| ((a * b + c).tanh() - 0.25).maximum(a) / (b + 2)).unwrap()),
        bits(&step)
    );
}

#[test]
fn one_function_takes_any_dtypes_and_numbers() {
    let f = Fused::new(|[x, y]| x * y);
    let cpu = Device::cpu();
    let ints = Tensor::new([1i32, 2], &cpu).unwrap();
    let halves = ints.cast(DType::F16).unwrap();
    for (result, dtype) in [
        (f.run([&ints, &ints]), DType::I32),
        (f.run([&ints, &halves]), DType::F16),
        (f.run((&halves, 0.5)), DType::F16),
        (f.run((&ints, 0.5)), DType::F32),
        (f.run((true, &ints)), DType::I32),
        (f.run((num_complex::Complex::new(0.0f64, 1.0), &halves)), DType::C64),
    ] {
        assert_eq!(result.unwrap().dtype(), dtype);
    }
    // The same expression for another number.
    for scale in [0.5, 3.0, -1.0] {
        assert_eq!(
            f.run((&ints, scale)).unwrap().to_vec::<f32>().unwrap(),
            [scale as f32, 2.0 * scale as f32]
        );
    }
    assert!(matches!(f.run((1.0, 2.0)), Err(Error::InvalidArgument { .. })));
    let eight = ints.cast(DType::F8E4M3).unwrap();
    assert!(matches!(f.run([&eight, &eight]), Err(Error::DTypeMismatch { .. })));
}

#[test]
fn a_number_that_its_dtype_does_not_hold_is_lowered_once() {
    let lowerings = Arc::new(AtomicUsize::new(0));
    let counter = lowerings.clone();
    let is_below = Fused::new(move |[x, limit]| {
        counter.fetch_add(1, Ordering::Relaxed);
        x.lt(limit)
    });
    let x = Tensor::new([1u8, 200], &Device::cpu()).unwrap();
    let run =
        |limit: i64| is_below.run((&x, limit)).unwrap().cast(DType::U8).unwrap().to_vec::<u8>().unwrap();
    for _ in 0..3 {
        assert_eq!(run(300), [1, 1]);
    }
    assert_eq!(lowerings.load(Ordering::Relaxed), 1);
    assert_eq!(run(-1), [0, 0]);
    assert_eq!(run(300), [1, 1]);
    assert_eq!(lowerings.load(Ordering::Relaxed), 3);
}

#[test]
fn closures_are_told_apart() {
    let x = of([1.0, 2.0, 3.0, 4.0]);
    let sum = |scale: f32| fuse([&x], move |[x]| x * scale).unwrap().to_vec::<f32>().unwrap()[1];
    assert_eq!((sum(2.0), sum(5.0)), (4.0, 10.0));
    let (one, two) = (fuse([&x], |[x]| x + 1.0).unwrap(), fuse([&x], |[x]| x + 2.0).unwrap());
    for _ in 0..2 {
        assert_eq!(one.to_vec::<f32>().unwrap()[0] + 1.0, two.to_vec::<f32>().unwrap()[0]);
    }
}

#[test]
fn outputs_are_several_and_broadcast() {
    let cpu = Device::cpu();
    let column = Tensor::new([[1.0f32], [2.0]], &cpu).unwrap();
    let row = Tensor::new([10.0f32, 20.0, 30.0], &cpu).unwrap();
    let f = Fused::with_outputs(|[x, y]| [x + y, x * y, x.lt(y)]);
    let [sum, product, less] = f.run_all([&column, &row]).unwrap();
    assert_eq!(sum.to_vec::<f32>().unwrap(), [11.0, 21.0, 31.0, 12.0, 22.0, 32.0]);
    assert_eq!(product.to_vec::<f32>().unwrap(), [10.0, 20.0, 30.0, 20.0, 40.0, 60.0]);
    assert_eq!((less.dtype(), **less.shape() == [2, 3]), (DType::Bool, true));
    // Into memory that is there, of other dtypes, one of it shared.
    let mut doubles = Tensor::zeros(&[2, 3], DType::F64, &cpu).unwrap();
    let mut part = Tensor::zeros(&[4, 3], DType::F32, &cpu).unwrap();
    let mut bytes = Tensor::zeros(&[2, 3], DType::U8, &cpu).unwrap();
    let clone = bytes.clone();
    f.run_into([&column, &row], [doubles.in_place(), part.slice_mut(0, 1..3).unwrap(), bytes.in_place()])
        .unwrap();
    assert_eq!(doubles.to_vec::<f64>().unwrap(), [11.0, 21.0, 31.0, 12.0, 22.0, 32.0]);
    assert_eq!(part.narrow(0, 1, 2).unwrap().to_vec::<f32>().unwrap(), product.to_vec::<f32>().unwrap());
    assert_eq!((bytes.to_vec::<u8>().unwrap(), clone.to_vec::<u8>().unwrap()), (vec![1; 6], vec![0; 6]));
    let mut narrow = Tensor::zeros(&[2, 3], DType::I32, &cpu).unwrap();
    let failed = Fused::new(|[x]| x / 2).run_into([&row], [&mut narrow]);
    assert!(matches!(failed, Err(Error::DTypeMismatch { .. })));
}

#[test]
fn the_plan_is_explained() {
    let x = of([1.0; 4]).expand(&[3, 4]).unwrap();
    let plan = Fused::new(|[x, scale]| (x * scale).relu()).explain((&x, 2.0)).unwrap();
    assert_eq!(plan.launches.len(), 1);
    assert!(plan.to_string().contains("shape [3, 4], strides [0, 1]"), "{plan}");
    assert!(plan.launches[0].ptx.contains(".entry"));
}

#[test]
fn every_operation_of_the_list_runs_on_tensors() {
    let cpu = Device::cpu();
    let mut count = 0;
    for &operation in Operation::ALL {
        for dtype in operation.dtypes().iter() {
            let mut x = Tensor::full(&[2, 3], 1, dtype, &cpu).unwrap();
            let y = x.clone();
            let others = [TensorOperand::Tensor(&y), TensorOperand::Tensor(&y)];
            let others = &others[..operation.arity() - 1];
            let result = x.operation(operation, others).unwrap();
            let wanted = operation.signature(&vec![dtype; operation.arity()]).unwrap().result;
            assert_eq!((result.dtype(), result.count()), (wanted, 6), "{operation:?} of {dtype}");
            // In place the same, in its own dtype, which holds the result here.
            x.in_place().operation(operation, others).unwrap();
            let bytes = |x: &Tensor| format!("{x}");
            assert_eq!(
                (x.dtype(), bytes(&x)),
                (dtype, bytes(&result.cast(dtype).unwrap())),
                "{operation:?} of {dtype}"
            );
            count += 1;
        }
    }
    assert!(count > 500, "{count}");
}

#[test]
fn a_function_with_reductions_over_groups_replaces_its_elements() {
    let values = || (0..96).map(|k| (k * 37 % 101) as f32 * 0.125).collect::<Vec<_>>();
    for axis in [0, 1] {
        let softmax = Fused::new(|[x, scale]| {
            let powers = (x * scale - (x * scale).max_group()).exp();
            powers / powers.sum_group()
        });
        let softmax = softmax.over(axis);
        let x = Tensor::from_vec(values(), &[4, 24], &Device::cpu()).unwrap();
        let wanted = softmax.run((&x, 0.5)).unwrap().to_vec::<f32>().unwrap();
        let (mut own, mut shared) = (x.copy().unwrap(), x.clone());
        softmax.run_in_place([&mut own], [0.5.into()]).unwrap();
        softmax.run_in_place([&mut shared], [0.5.into()]).unwrap();
        assert_eq!((own.to_vec::<f32>().unwrap(), shared.to_vec::<f32>().unwrap()), (wanted.clone(), wanted));
        assert_eq!(x.to_vec::<f32>().unwrap(), values());
    }
    let mut x = Tensor::from_vec(values(), &[4, 24], &Device::cpu()).unwrap();
    let error = Fused::new(|[x]| x.sum_group()).run_in_place([&mut x], []).unwrap_err().to_string();
    assert!(error.contains("in-place input for output 0"), "{error}");
    assert_eq!(x.to_vec::<f32>().unwrap(), values());
}
