//! Operands that do not match, for every function of several tensors.

use selvedge::Error;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

#[path = "../cases/srt.rs"]
mod cases;

use cases::{COMPLEX, DOUBLE, OfOperands, REAL};

#[test]
fn an_operand_of_another_shape_is_refused_with_both_shapes() {
    let of = |shape: [usize; 2], dtype| Tensor::ones(&shape, dtype, &Device::cpu()).unwrap();
    for (functions, dtype) in [
        (REAL, DType::F64),
        (REAL, DType::F32),
        (COMPLEX, DType::C64),
        (COMPLEX, DType::C128),
        (DOUBLE, DType::F64),
    ] {
        for OfOperands { name, count, run } in functions {
            let operands = vec![of([8, 8], dtype); *count];
            assert!(run(&operands).is_ok(), "{name} of {dtype}: {:?}", run(&operands));
            for at in 0..*count {
                let mut operands = operands.clone();
                operands[at] = of([3, 5], dtype);
                match run(&operands) {
                    Err(error @ Error::InvalidArgument { .. }) => {
                        let text = error.to_string();
                        // The other shape is [8, 8], a row of it, or 8 channels.
                        let names_both = text.contains('5') && text.contains('8');
                        assert!(names_both, "{name} of {dtype}, operand {at}: {text}");
                    }
                    other => panic!("{name} of {dtype}, operand {at}: {other:?}"),
                }
            }
        }
    }
}
