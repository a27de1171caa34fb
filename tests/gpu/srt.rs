//! Golden-ratio operations on a device: each worked number, and the CPU's results on random operands. Fused expressions, sums and
//! exact products have the CPU's bits; fast products are within their class.

mod elements;
mod evolver;
mod products;
mod rows;

use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

use crate::support::{Outcome, device_tests};

#[path = "../../src/bin/selvedge/srt/worked/mod.rs"]
mod worked;

device_tests! {
    worked_numbers_are_met_and_agree_with_the_cpu,
    elementwise_operations_have_the_bits_of_the_cpu,
    phases_and_syntony_have_the_bits_of_the_cpu,
    complex_operations_have_the_bits_of_the_cpu,
    integers_have_the_bits_of_the_cpu,
    norms_have_the_bits_of_the_cpu,
    rows_of_eight_have_the_bits_of_the_cpu,
    exact_products_have_the_bits_of_the_cpu,
    fast_products_are_within_their_class,
    fast_brackets_round_once,
    evolutions_have_the_survivors_and_winners_of_the_cpu,
}

use elements::{
    complex_operations_have_the_bits_of_the_cpu, elementwise_operations_have_the_bits_of_the_cpu,
    integers_have_the_bits_of_the_cpu, phases_and_syntony_have_the_bits_of_the_cpu,
};
use evolver::evolutions_have_the_survivors_and_winners_of_the_cpu;
use products::{
    exact_products_have_the_bits_of_the_cpu, fast_brackets_round_once, fast_products_are_within_their_class,
};
use rows::{norms_have_the_bits_of_the_cpu, rows_of_eight_have_the_bits_of_the_cpu};

const CPU: Device = Device::cpu();

/// Standard normal numbers of a dtype on the CPU.
fn normal(generator: &Generator, shape: &[usize], dtype: DType) -> selvedge::Result<Tensor> {
    let parts = if dtype.is_complex() { [shape, &[2]].concat() } else { shape.to_vec() };
    let numbers = generator.randn(&parts, dtype.part(), &CPU)?;
    if dtype.is_complex() { numbers.view_as_complex() } else { Ok(numbers) }
}

fn worked_numbers_are_met_and_agree_with_the_cpu() -> Outcome {
    let device = Device::cuda(0)?;
    let mut failures = Vec::new();
    for case in worked::cases().into_iter().filter(|case| !case.is_on_host()) {
        for dtype in case.dtypes() {
            let name = format!("{} ({}, {}) in {dtype}", case.operation, case.section, case.class.name());
            let (there, here) = (case.compute(&device, *dtype)?, case.compute(&Device::cpu(), *dtype)?);
            if let (error, false) = case.error(&there, *dtype) {
                failures.push(format!("{name}: {there:?}, wanted {:?}, error {error:e}", case.wanted));
            }
            if !case.agrees(&there, &here, *dtype) {
                failures.push(format!("{name}: {there:?}, the CPU {here:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}
