//! `Backend` on the CPU: every operation against worked numbers, and operands on the backend's own device.

use selvedge::nn::{Backend, Cpu, Cuda, TransferCounts};
use selvedge::{DType, Error, Result};

#[path = "../cases/backend.rs"]
mod cases;

#[test]
fn every_operation_has_its_value() -> Result<()> {
    cases::every_operation_has_its_value(&Cpu::new(), 1e-12)
}

#[test]
fn bad_operands_are_typed_errors_and_own_operands_move_nowhere() -> Result<()> {
    let cpu = Cpu::new().with_automatic_transfers(true);
    let (x, y) = (cpu.ones(&[2], DType::F32)?, cpu.ones(&[3], DType::F32)?);
    let faults = [
        cpu.add(&x, &y),
        cpu.softmax(&x, 1),
        cpu.embedding(&x, &y),
        cpu.embedding_backward(&cpu.sum(&x)?, &x, 1),
        cpu.embedding_backward(&y, &x, 1),
        cpu.sparse_cross_entropy(&x, &y),
        cpu.layer_norm(&x, &y, &y, 0.0),
        cpu.from_slice(&[1.0f32], &[2]),
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        let error = fault.expect_err(&format!("case {number}"));
        assert!(!error.to_string().is_empty());
    }
    assert!(cpu.transfers().are_enabled() && !Cpu::new().transfers().are_enabled());
    assert_eq!(cpu.transfers().counts(), TransferCounts::default());
    if !Cuda::is_available() {
        let error = Cuda::new(0).map(drop).expect_err("no device");
        assert!(!matches!(error, Error::InvalidArgument { .. }), "{error}");
    }
    Ok(())
}
