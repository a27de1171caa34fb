//! Who shares elements with whom, and that nobody sees another's writes.

use selvedge::Error;
use selvedge::tensor::{Device, Fused, Tensor, TensorMut};
use selvedge::types::{DType, Slice};

fn cpu() -> Device {
    Device::cpu()
}

fn line() -> Tensor {
    Tensor::new([1.0f32, 2.0, 3.0, 4.0], &cpu()).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

#[test]
fn clones_and_views_keep_what_they_had() {
    let mut x = line();
    let (clone, view) = (x.clone(), x.slice(0, 1..3).unwrap());
    assert!(!x.is_unique());
    x.in_place().mul(10.0).unwrap();
    assert!(x.is_unique());
    assert_eq!(values(&x), [10.0, 20.0, 30.0, 40.0]);
    assert_eq!((values(&clone), values(&view)), (vec![1.0, 2.0, 3.0, 4.0], vec![2.0, 3.0]));
    // A view is written like any other tensor.
    let mut view = view;
    view.in_place().add(&clone.slice(0, ..2).unwrap()).unwrap();
    assert_eq!((values(&view), values(&clone)), (vec![3.0, 5.0], vec![1.0, 2.0, 3.0, 4.0]));
}

#[test]
fn what_is_held_alone_is_written_where_it_is() {
    let memory = vec![1.0f32, 2.0, 3.0];
    let address = memory.as_ptr();
    let mut x = Tensor::from_vec(memory, &[3], &cpu()).unwrap();
    let place = |x: &Tensor| x.as_slice::<f32>().unwrap().as_ptr();
    x.in_place().add(1.0).unwrap();
    x.slice_mut(0, 1..).unwrap().sub(1.0).unwrap();
    line().slice(0, 1..).unwrap().with_output(&mut x).mul(2.0).unwrap();
    x.as_slice_mut::<f32>().unwrap()[0] = 9.0;
    assert_eq!((values(&x), place(&x)), (vec![9.0, 6.0, 8.0], address));
    // With a clone it is written elsewhere, and the clone keeps the place.
    let clone = x.clone();
    x.as_slice_mut::<f32>().unwrap()[0] = 1.0;
    assert_eq!((values(&x)[0], values(&clone)[0], place(&clone)), (1.0, 9.0, address));
    assert_ne!(place(&x), address);
}

#[test]
fn an_operand_may_be_any_view_of_what_is_written() {
    let mut x = line();
    let backwards = x.flip(&[0]).unwrap();
    x.in_place().sub(&backwards).unwrap();
    assert_eq!(values(&x), [-3.0, -1.0, 1.0, 3.0]);
    let mut y = line();
    let shifted = y.slice(0, ..3).unwrap();
    y.slice_mut(0, 1..).unwrap().assign(&shifted).unwrap();
    assert_eq!(values(&y), [1.0, 1.0, 2.0, 3.0]);
    let mut out = line();
    let input = out.clone();
    input.flip(&[0]).unwrap().with_output(&mut out).mul(2.0).unwrap();
    assert_eq!((values(&out), values(&input)), (vec![8.0, 6.0, 4.0, 2.0], vec![1.0, 2.0, 3.0, 4.0]));
}

#[test]
fn repeated_elements_are_written_each_for_itself() {
    let mut x = Tensor::new([1i32, 2], &cpu()).unwrap().expand(&[2, 2]).unwrap();
    x.in_place().add(&Tensor::new([[0i32, 0], [10, 10]], &cpu()).unwrap()).unwrap();
    assert_eq!(x.to_vec::<i32>().unwrap(), [1, 2, 11, 12]);
    let mut windows = Tensor::new([1i32, 2, 3], &cpu()).unwrap().unfold(0, 2, 1).unwrap();
    windows.slice_mut(0, ..1).unwrap().fill(0).unwrap();
    assert_eq!(windows.to_vec::<i32>().unwrap(), [0, 0, 2, 3]);
}

#[test]
fn outputs_keep_their_dtype() {
    let mut x = Tensor::new([1i32, 5], &cpu()).unwrap();
    x.in_place().mul(&Tensor::new([2i64, 3], &cpu()).unwrap()).unwrap();
    assert_eq!((x.dtype(), x.to_vec::<i32>().unwrap()), (DType::I32, vec![2, 15]));
    for failed in [x.in_place().div(2).err(), x.in_place().add(0.5).err(), x.in_place().sqrt().err()] {
        let error = failed.unwrap();
        assert!(matches!(error, Error::DTypeMismatch { .. }), "{error}");
        assert!(error.to_string().contains("f32") && error.to_string().contains("i32"), "{error}");
    }
    // A failed operation changes nothing.
    assert_eq!(x.to_vec::<i32>().unwrap(), [2, 15]);
    let mut truth = Tensor::zeros(&[2], DType::F32, &cpu()).unwrap();
    x.with_output(&mut truth).gt(3).unwrap();
    assert_eq!(values(&truth), [0.0, 1.0]);
    let mut bytes = Tensor::zeros(&[2], DType::U8, &cpu()).unwrap();
    bytes.in_place().assign(&Tensor::new([-1.5f32, 300.0], &cpu()).unwrap()).unwrap();
    assert_eq!(bytes.to_vec::<u8>().unwrap(), [0, 255]);
}

#[test]
fn bad_outputs_are_errors_and_lose_nothing() {
    let mut x = line();
    let clone = x.clone();
    let wide = Tensor::zeros(&[2, 4], DType::F32, &cpu()).unwrap();
    assert!(matches!(x.in_place().add(&wide).map(drop), Err(Error::InvalidArgument { .. })));
    assert!(matches!(
        x.slice_mut(0, ..2).unwrap().assign(&wide).map(drop),
        Err(Error::InvalidArgument { .. })
    ));
    assert!(x.slice_mut(1, ..).is_err());
    assert!(x.slice_mut(0, Slice::from(..).step(0)).is_err());
    assert!(wide.with_output(&mut x).add(1.0).is_err());
    let two = Fused::with_outputs(|[x]| [x + 1.0, x * 2.0]);
    let mut other = Tensor::zeros(&[2], DType::F32, &cpu()).unwrap();
    assert!(two.run_into([&clone], [&mut x, &mut other]).is_err());
    assert_eq!((values(&x), values(&other)), (vec![1.0, 2.0, 3.0, 4.0], vec![0.0, 0.0]));
    assert!(matches!(
        x.in_place().operation(selvedge::fuse::Operation::Add, &[]).map(drop),
        Err(Error::ArgumentCount { wanted: 2, found: 1, .. })
    ));
}

#[test]
fn tensors_go_between_threads() {
    fn both<T: Send + Sync>(_: &T) {}
    let x = line();
    both(&x);
    let results: Vec<Vec<f32>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let mut own = x.clone();
                scope.spawn(move || {
                    for _ in 0..50 {
                        own.in_place().add(thread as f32).unwrap();
                    }
                    values(&own)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (thread, result) in results.iter().enumerate() {
        let wanted: Vec<f32> = (1..=4).map(|x| (x + 50 * thread) as f32).collect();
        assert_eq!(*result, wanted);
    }
    assert_eq!(values(&x), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn slices_are_the_elements_themselves() {
    let mut x = Tensor::new([[1i32, 2, 3], [4, 5, 6]], &cpu()).unwrap();
    assert_eq!(x.narrow(0, 1, 1).unwrap().as_slice::<i32>().unwrap(), [4, 5, 6]);
    let error = x.t().unwrap().as_slice::<i32>().unwrap_err().to_string();
    assert!(error.contains("contiguous"), "{error}");
    assert!(matches!(x.as_slice::<u32>(), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(x.as_slice_mut::<f32>(), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(x.device_slice::<i32>().map(drop), Err(Error::DeviceMismatch { .. })));
    assert!(matches!(x.device_slice_mut::<i32>().map(drop), Err(Error::DeviceMismatch { .. })));
    let mut turned = x.t().unwrap();
    turned.as_slice_mut::<i32>().unwrap()[1] = 0;
    assert_eq!(turned.to_vec::<i32>().unwrap(), [1, 0, 2, 5, 3, 6]);
    assert_eq!(x.to_vec::<i32>().unwrap(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn parts_of_parts_are_written() {
    let mut x = Tensor::zeros(&[3, 4], DType::I32, &cpu()).unwrap();
    let mut all = x.in_place();
    all.reborrow().select(0, 1).unwrap().fill(1).unwrap();
    all.reborrow().t().unwrap().select(0, 3).unwrap().add(5).unwrap();
    all.reborrow().diagonal(0, 0, 1).unwrap().sub(1).unwrap();
    let last: TensorMut<'_> = all.narrow(0, 2, 1).unwrap();
    last.squeeze(0)
        .unwrap()
        .flip(&[0])
        .unwrap()
        .assign(&Tensor::new([9i32, 8, 7, 6], &cpu()).unwrap())
        .unwrap();
    assert_eq!(x.to_vec::<i32>().unwrap(), [-1, 0, 0, 5, 1, 0, 1, 6, 6, 7, 8, 9]);
}

#[test]
fn zeros_in_the_memory_of_a_freed_tensor_are_zeros() -> selvedge::Result<()> {
    for elements in [1 << 14, (1 << 18) + 1] {
        for _ in 0..3 {
            drop(Tensor::full(&[elements], 1.5f32, DType::F32, &cpu())?);
            let zeros = Tensor::zeros(&[elements], DType::F32, &cpu())?;
            assert!(zeros.to_vec::<f32>()?.iter().all(|&element| element == 0.0), "{elements} elements");
            drop(Tensor::full(&[4 * elements], 7u8, DType::U8, &cpu())?);
            let bools = Tensor::empty(&[4 * elements], DType::Bool, &cpu())?.to_vec::<bool>()?;
            assert!(!bools.contains(&true), "{elements} elements");
        }
    }
    Ok(())
}
