//! Tables of operations whose results on a device are those on the CPU.

use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

/// An operation's name, and its results on the operands' device.
pub type Case = (&'static str, fn(&[Tensor]) -> selvedge::Result<Vec<Tensor>>);

/// How close results on a device and on the CPU are.
#[derive(Clone, Copy)]
pub enum Agreement {
    /// They have the same bits, but those of a NaN.
    Bits,
    /// Elements differ by at most this, relative to the larger of 1 and the CPU's element.
    Within(f64),
}

/// Runs each case on the CPU and on the device, and compares all results.
pub fn check(cases: &[Case], operands: &[Tensor], agreement: Agreement) -> selvedge::Result<()> {
    let device = Device::cuda(0)?;
    let there: Vec<Tensor> = operands.iter().map(|operand| operand.to(&device)).collect::<Result<_, _>>()?;
    for (name, run) in cases {
        let (wanted, found) = (run(operands)?, run(&there)?);
        assert_eq!(wanted.len(), found.len(), "{name}");
        for (index, (wanted, found)) in wanted.iter().zip(&found).enumerate() {
            assert_agree(&format!("{name}, result {index}"), found, wanted, agreement);
        }
    }
    Ok(())
}

/// Compares a tensor on a device with one on the CPU.
#[track_caller]
pub fn assert_agree(what: &str, found: &Tensor, wanted: &Tensor, agreement: Agreement) {
    assert!(!found.device().is_cpu() && wanted.device().is_cpu(), "{what}: devices");
    let kind = |tensor: &Tensor| (tensor.dtype(), tensor.shape().to_vec());
    assert_eq!(kind(found), kind(wanted), "{what}");
    match agreement {
        Agreement::Bits => {
            let [there, here] = [found, wanted].map(|tensor| tensor.to_bytes().expect("bytes"));
            if there == here {
                return;
            }
            let size = wanted.dtype().size();
            let elements = there.chunks(size).zip(here.chunks(size));
            // The sign and the payload of a NaN may differ.
            let nan = |tensor: &Tensor| match tensor.is_nan() {
                Ok(nan) => nan.to_vec::<bool>().expect("truth values"),
                // Integers.
                Err(_) => vec![false; tensor.count()],
            };
            let (nan_there, nan_here) = (nan(found), nan(wanted));
            let is_nan = |at: usize| nan_there[at] && nan_here[at];
            if let Some((at, _)) =
                elements.enumerate().find(|(at, (there, here))| there != here && !is_nan(*at))
            {
                let range = at * size..(at + 1) * size;
                panic!("{what}: element {at} is {:?}, on the CPU {:?}", &there[range.clone()], &here[range]);
            }
        }
        Agreement::Within(tolerance) => {
            let numbers = |tensor: &Tensor| -> Vec<f64> {
                tensor.cast(DType::F64).and_then(|tensor| tensor.to_vec()).expect("numbers")
            };
            for (at, (x, y)) in numbers(found).into_iter().zip(numbers(wanted)).enumerate() {
                let is_close = x == y || x.is_nan() && y.is_nan();
                let is_close = is_close || (x - y).abs() <= tolerance * y.abs().max(1.0);
                assert!(is_close, "{what}: element {at} is {x}, on the CPU {y}");
            }
        }
    }
}
