//! Operations of one's own: what their implementations are given, and what becomes of wrong ones.

use selvedge::Error;
use selvedge::tensor::kernel::{self, Output};
use selvedge::tensor::{Device, Tensor};
use selvedge::types::{Bool, DType};

fn cpu() -> Device {
    Device::cpu()
}

fn line(count: usize) -> Tensor {
    Tensor::from_vec((0..count).map(|x| x as f32).collect(), &[count], &cpu()).unwrap()
}

/// Runs `host` on the operands; a CUDA device is none of these tests'.
macro_rules! on_host {
    ($inputs:expr, $outputs:expr, $host:expr) => {
        kernel::run("mine", $inputs, $outputs, $host, |_, _, _| unreachable!("there is no device here"))
    };
}

#[test]
fn outputs_have_any_dtype_and_shape() {
    let x = line(5);
    for dtype in [DType::Bool, DType::I8, DType::U64, DType::C128, DType::F8E4M3] {
        let output = Output::new(&cpu(), dtype, &[2, 0, 3]).unwrap();
        assert_eq!((output.dtype(), &output.shape()[..]), (dtype, &[2usize, 0, 3][..]));
        assert_eq!(output.into_tensor().count(), 0);
    }
    let mut sum = Output::new(&cpu(), DType::F64, &[]).unwrap();
    let mut signs = Output::new(&cpu(), DType::Bool, &[5, 1]).unwrap();
    on_host!([&x, &x], [&mut sum, &mut signs], |[x, again], [mut sum, mut signs]| {
        assert_eq!((x.dtype(), x.layout().count(), again.dtype()), (DType::F32, 5, DType::F32));
        sum.write([x.as_slice::<f32>()?.iter().map(|x| f64::from(*x)).sum::<f64>()])?;
        signs.write(again.as_slice::<f32>()?.iter().map(|x| Bool::from(*x > 2.0)))
    })
    .unwrap();
    assert_eq!(sum.into_tensor().item::<f64>().unwrap(), 10.0);
    assert_eq!(signs.into_tensor().to_bytes().unwrap(), [0, 0, 0, 1, 1]);
}

#[test]
fn inputs_come_in_their_layout() {
    let x = line(6).reshape(&[2, 3]).unwrap();
    let turned = x.t().unwrap();
    let part = line(6).slice(0, 2..4).unwrap();
    on_host!([&turned, &part], [&mut Output::new(&cpu(), DType::F32, &[0]).unwrap()], |[turned, part], _| {
        assert_eq!(turned.layout().strides(), [1, 3]);
        let error = turned.as_slice::<f32>().unwrap_err().to_string();
        assert!(error.contains("call contiguous() first"), "{error}");
        assert_eq!(part.as_slice::<f32>()?, [2.0, 3.0]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_is_there_can_be_written() {
    let mut x = line(4);
    let clone = x.clone();
    // The input shares its elements with the output, which gets its own first.
    on_host!([&clone], [&mut x], |[from], [mut to]| {
        for (to, from) in to.as_slice_mut::<f32>()?.iter_mut().zip(from.as_slice::<f32>()?.iter().rev()) {
            *to += 10.0 * from;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [30.0, 21.0, 12.0, 3.0]);
    assert_eq!(clone.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0]);
    on_host!([], [&mut x.slice_mut(0, 1..3).unwrap()], |_, [mut to]| to.write([7.0f32, 8.0])).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [30.0, 7.0, 8.0, 3.0]);
    // Elements that share a place are taken apart.
    let mut repeated = Tensor::new([1.0f32], &cpu()).unwrap().expand(&[3]).unwrap();
    on_host!([], [&mut repeated], |_, [mut to]| to.write([1.0f32, 2.0, 3.0])).unwrap();
    assert_eq!(repeated.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
}

#[test]
fn wrong_implementations_are_errors() {
    let x = line(3);
    for (count, found) in [(0, 0), (2, 2), (4, 4), (9, 9)] {
        let mut output = Output::new(&cpu(), DType::F32, &[3]).unwrap();
        let result = on_host!([&x], [&mut output], |_, [mut to]| to.write(vec![1.0f32; count]));
        assert!(
            matches!(result, Err(Error::LengthMismatch { wanted: 3, found: n, .. }) if n == found),
            "{result:?}"
        );
    }
    let mut output = Output::new(&cpu(), DType::F32, &[3]).unwrap();
    let result = on_host!([&x], [&mut output], |[x], [mut to]| {
        assert!(matches!(x.as_slice::<i32>(), Err(Error::DTypeMismatch { .. })));
        to.write([1.0f64; 3])
    });
    assert!(matches!(result, Err(Error::DTypeMismatch { .. })), "{result:?}");
    // The implementation's own error is what the operation returns, and the tensor is as it was.
    let mut y = line(2);
    let own = Error::InvalidArgument { operation: "mine", found: "one".into(), wanted: "two".into() };
    let result = on_host!([&x], [&mut y], |_, _| Err(own.clone()));
    assert_eq!(result.unwrap_err().to_string(), own.to_string());
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.0, 1.0]);
    let nothing: [&Tensor; 0] = [];
    let result = on_host!(nothing, [], |_, _: [_; 0]| Ok(()));
    assert!(matches!(result, Err(Error::InvalidArgument { operation: "mine", .. })), "{result:?}");
    assert!(Output::new(&cpu(), DType::F32, &[usize::MAX / 2, 16]).is_err());
}

#[test]
fn host_memory_is_no_buffer() {
    let result = line(3).into_buffer::<f32>();
    assert!(matches!(result.map(drop), Err(Error::DeviceMismatch { .. })));
    let result = line(3).into_buffer::<u8>();
    assert!(matches!(result.map(drop), Err(Error::DTypeMismatch { .. })));
}
