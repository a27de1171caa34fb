//! Tensors out of host memory and back, casts, numbers, and what is refused.

use selvedge::Error;
use selvedge::fuse::Number;
use selvedge::tensor::{Device, Fused, Generator, Tensor};
use selvedge::types::{Bool, DType};

fn cpu() -> Device {
    Device::cpu()
}

#[test]
fn memory_goes_in_and_comes_out() {
    let vector = vec![1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0];
    let x = Tensor::from_vec(vector.clone(), &[2, 3], &cpu()).unwrap();
    assert_eq!((x.dtype(), x.rank(), x.count(), x.device()), (DType::F64, 2, 6, cpu()));
    assert_eq!(x.to_vec::<f64>().unwrap(), vector);
    // A vector with spare capacity, an empty one, and one number.
    let mut roomy = Vec::with_capacity(100);
    roomy.push(7u16);
    assert_eq!(Tensor::from_vec(roomy, &[1], &cpu()).unwrap().item::<u16>().unwrap(), 7);
    assert_eq!(
        Tensor::from_vec(Vec::<f32>::new(), &[0, 5], &cpu()).unwrap().to_vec::<f32>().unwrap(),
        [0f32; 0]
    );
    assert_eq!(Tensor::new(3i8, &cpu()).unwrap().item::<i8>().unwrap(), 3);
    let nested = Tensor::new(vec![[[1u8, 2]], [[3, 4]], [[5, 6]]], &cpu()).unwrap();
    assert_eq!(
        (&nested.shape()[..], nested.to_vec::<u8>().unwrap()),
        (&[3, 1, 2][..], vec![1, 2, 3, 4, 5, 6])
    );
    assert_eq!(**Tensor::new([[0i32; 4]; 0], &cpu()).unwrap().shape(), [0, 0]);
    assert_eq!(x.to(&cpu()).unwrap().to_vec::<f64>().unwrap(), vector);
}

#[test]
fn bad_memory_is_an_error() {
    let wrong = Tensor::from_slice(&[1i32, 2, 3], &[2, 2], &cpu());
    assert!(matches!(wrong, Err(Error::LengthMismatch { wanted: 4, found: 3, .. })));
    let ragged = Tensor::new(vec![vec![1i32, 2], vec![3]], &cpu()).unwrap_err().to_string();
    assert!(ragged.contains("rows of 2 and of 1"), "{ragged}");
    let x = Tensor::new([1.0f32, 2.0], &cpu()).unwrap();
    let error = x.to_vec::<f64>().unwrap_err().to_string();
    assert!(error.contains("f64") && error.contains("f32") && error.contains("cast"), "{error}");
    assert!(matches!(x.item::<f32>(), Err(Error::LengthMismatch { wanted: 1, found: 2, .. })));
    for shape in [&[1usize << 62, 1][..], &[usize::MAX, 2]] {
        let error = Tensor::zeros(shape, DType::C128, &cpu()).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    }
    assert!(Tensor::new([1i32], &cpu()).unwrap().expand(&[1 << 45]).unwrap().to_vec::<i32>().is_err());
    assert!(Tensor::new([1i32], &cpu()).unwrap().expand(&[1 << 60]).unwrap().neg().is_err());
}

#[test]
fn numbers_have_the_dtype_of_what_they_meet() {
    let of = |dtype| Tensor::ones(&[2], dtype, &cpu()).unwrap();
    for (found, wanted) in [
        (of(DType::F16) * 2.5, DType::F16),
        (of(DType::U8) + 1, DType::U8),
        (of(DType::U8) + 1.5, DType::F32),
        (of(DType::Bool) + 1, DType::I64),
        (2.0 / of(DType::BF16), DType::BF16),
        (1 - of(DType::F64), DType::F64),
        (of(DType::I64) / 2, DType::F32),
        (of(DType::Bool).choose(&of(DType::F16), 2.5), DType::F16),
        (of(DType::Bool).choose(0.5, &of(DType::F64)), DType::F64),
        (of(DType::Bool).choose(1, 0.5), DType::F32),
        (of(DType::F32).clamp(0, 1), DType::F32),
        (&of(DType::F32) + &of(DType::I64), DType::F32),
    ] {
        assert_eq!(found.unwrap().dtype(), wanted);
    }
    // A number is rounded once, to the dtype itself.
    let x = Tensor::full(&[1], 0.1, DType::F64, &cpu()).unwrap();
    assert_eq!(x.item::<f64>().unwrap(), 0.1);
    let large = Tensor::full(&[1], u64::MAX, DType::U64, &cpu()).unwrap();
    assert_eq!(large.item::<u64>().unwrap(), u64::MAX);
    assert_eq!((Tensor::zeros(&[1], DType::F64, &cpu()).unwrap() + 0.1).unwrap().item::<f64>().unwrap(), 0.1);
    assert_eq!(x.full_like(Number::Integer(3)).unwrap().item::<f64>().unwrap(), 3.0);
}

#[test]
fn every_dtype_is_made_cast_and_read() {
    for dtype in DType::ALL {
        let ones = Tensor::ones(&[3], dtype, &cpu()).unwrap();
        assert_eq!(ones.dtype(), dtype);
        let back = ones.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(back, [1.0; 3], "{dtype}");
        for to in DType::ALL {
            let cast = ones.cast(to).unwrap();
            assert_eq!(cast.dtype(), to);
            assert_eq!(cast.cast(DType::F64).unwrap().to_vec::<f64>().unwrap(), [1.0; 3], "{dtype} to {to}");
        }
        let zeros = ones.zeros_like().unwrap();
        assert_eq!(zeros.cast(DType::F64).unwrap().to_vec::<f64>().unwrap(), [0.0; 3], "{dtype}");
        assert_eq!(ones.flip(&[0]).unwrap().copy().unwrap().dtype(), dtype);
    }
}

#[test]
fn truth_values_are_zeros_and_ones_on_the_host() {
    // Bytes that other programs call true.
    let bytes: Vec<Bool> = bytemuck::cast_slice(&[0u8, 1, 2, 255]).to_vec();
    let x = Tensor::from_vec(bytes, &[4], &cpu()).unwrap();
    assert_eq!(bytemuck::cast_slice::<Bool, u8>(&x.to_vec::<Bool>().unwrap()), [0, 1, 1, 1]);
    assert_eq!(x.cast(DType::I32).unwrap().to_vec::<i32>().unwrap(), [0, 1, 1, 1]);
}

#[test]
fn the_best_device_is_chosen_and_said() {
    let (device, reason) = Device::choose();
    assert_eq!(device.is_cpu(), reason.is_some());
    assert_eq!(Device::best(), device);
    assert!(matches!(Device::cpu().stream(), Err(Error::InvalidArgument { .. })));
    assert!(Device::cpu().synchronize().is_ok() && Device::cpu().as_cuda().is_none());
    assert_eq!(format!("{:?}", Device::cpu()), "cpu");
}

#[test]
fn devices_parse_from_their_names() {
    assert_eq!("cpu".parse::<Device>().unwrap(), Device::cpu());
    for name in ["", "CPU", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda0"] {
        let error = name.parse::<Device>().unwrap_err().to_string();
        let wanted = format!("a device: found the name {name:?}; wanted cpu, cuda, or cuda: and an ordinal");
        assert_eq!(error, wanted);
    }
}

#[test]
fn elements_are_written_to_bytes_of_the_caller() {
    let x = Tensor::new([[1u16, 2], [3, 4]], &cpu()).unwrap().transpose(0, 1).unwrap();
    let mut bytes = [0; 8];
    x.copy_to_bytes(&mut bytes).unwrap();
    assert_eq!(bytes.as_slice(), x.to_bytes().unwrap());
    let error = x.copy_to_bytes(&mut bytes[1..]).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { wanted: 8, found: 7, .. }), "{error}");
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_of_ndarray_come_and_go() {
    let array = ndarray::Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as i64);
    let mut view = array.view();
    view.swap_axes(0, 2);
    view.invert_axis(ndarray::Axis(1));
    let x = Tensor::from_ndarray(&view, &cpu()).unwrap();
    assert_eq!(**x.shape(), [4, 3, 2]);
    assert_eq!(x.to_ndarray::<i64>().unwrap(), view.into_dyn());
    assert_eq!(Tensor::from_ndarray(&array, &cpu()).unwrap().to_ndarray::<i64>().unwrap(), array.into_dyn());
    assert!(matches!(x.to_ndarray::<f32>(), Err(Error::DTypeMismatch { .. })));
}

#[test]
fn a_host_out_of_memory_is_an_error_with_the_bytes() {
    // More than addresses count on any machine, and less than 63 bits do.
    const COUNT: usize = 1 << 55;
    let cpu = Device::cpu();
    let x = Tensor::new([1.0f32], &cpu).unwrap().expand(&[COUNT]).unwrap();
    let index = Tensor::new([0i64], &cpu).unwrap().expand(&[COUNT]).unwrap();
    let random = Generator::new(1);
    let (of_4, of_8) = ((COUNT * 4) as u64, (COUNT * 8) as u64);
    let tensors = [
        ("zeros", Tensor::zeros(&[COUNT], DType::F32, &cpu), of_4),
        ("ones", Tensor::ones(&[1 << 20, COUNT >> 20], DType::F64, &cpu), of_8),
        ("full", Tensor::full(&[COUNT], 2.0, DType::F32, &cpu), of_4),
        ("arange", Tensor::arange(0, COUNT as i64, 1, DType::I64, &cpu), of_8),
        ("linspace", Tensor::linspace(0.0, 1.0, COUNT, DType::F64, &cpu), of_8),
        ("uniform", random.uniform(0.0, 1.0, &[COUNT], DType::F32, &cpu), of_4),
        ("neg", x.neg(), of_4),
        ("fused", Fused::new(|[x]| x * 2.0 + 1.0).run([&x]), of_4),
        ("copy", x.copy(), of_4),
        ("contiguous", x.contiguous(), of_4),
        ("cast", x.cast(DType::F64), of_8),
        ("cat", Tensor::cat(&[&x, &x], 0), 2 * of_4),
        ("cumsum", x.cumsum(0), of_4),
        ("take", x.take(&index), of_4),
        ("one_hot", index.one_hot(1), of_8),
    ];
    let check = |name: &str, error: Option<Error>, bytes: u64| {
        let Some(error @ Error::OutOfMemory { device: None, requested, .. }) = &error else {
            panic!("{name}: {error:?}")
        };
        assert_eq!(*requested, bytes, "{name}");
        let text = error.to_string();
        assert!(text.contains("the host is out of memory") && text.contains(&bytes.to_string()), "{text}");
    };
    for (name, result, bytes) in tensors {
        check(name, result.err(), bytes);
    }
    check("to_vec", x.to_vec::<f32>().err(), of_4);
    check("to_bytes", x.to_bytes().err(), of_4);
}
