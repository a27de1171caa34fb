//! Elementwise expressions on a device have the bits of the CPU, whatever the operation, the dtype and the layouts.
//!
//! `tests/parity` compares the CPU with a reference. Its arrays and classes of layouts are used here.

use selvedge::driver::{Device, Stream};
use selvedge::fuse::{DeviceInput, DeviceOutput, Expression, Graph, Operation};
use selvedge::types::{DType, Layout};

use crate::support::{Outcome, device_tests};

#[allow(dead_code, reason = "the suite without a device uses the rest")]
#[path = "../parity/arrays.rs"]
mod arrays;
#[allow(dead_code, reason = "as above")]
#[path = "../parity/classes.rs"]
mod classes;
#[allow(dead_code, reason = "as above")]
#[path = "../parity/value.rs"]
pub mod value;

use arrays::{Array, assert_same, on_device, on_host};
use classes::{CLASSES, Class, Role};
use value::{Value, special};

device_tests! {
    every_operation_has_the_bits_of_the_cpu, every_class_of_layouts_does, every_cast_does, expressions_do,
    runs_in_place, other_numbers_need_no_other_kernel, more_elements_than_32_bits_count => alone(), broken_rules_are_errors,
}

fn zero(dtype: DType) -> Value {
    match dtype {
        _ if dtype.is_storage_only() => Value::Bits(0),
        _ if dtype.is_complex() => Value::Complex(0.0, 0.0),
        _ if dtype.is_float() => Value::Real(0.0),
        _ => Value::Integer(0),
    }
}

/// Runs on both, with operand `k` of a class's layouts.
fn check(stream: &Stream, what: &str, expression: &Expression, class: &Class) -> Outcome {
    let inputs: Vec<Array> = expression
        .inputs()
        .iter()
        .enumerate()
        .map(|(k, &dtype)| {
            let special = special(dtype);
            let values: Vec<Value> = (0..special.len() * 11)
                .map(|at| special[(at * (2 * k + 1) + 5 * k) % special.len()])
                .collect();
            Array::new(dtype, (class.layout)(k, Role::Input), &values, 0)
        })
        .collect();
    let count = inputs.len();
    let before: Vec<Array> = expression
        .outputs()
        .iter()
        .map(|&dtype| Array::new(dtype, (class.layout)(count, Role::Output), &[zero(dtype)], 0))
        .collect();
    let (mut cpu, mut device) = (before.clone(), before.clone());
    on_host(expression, &inputs, &[], &mut cpu);
    on_device(stream, expression, &inputs, &mut device)?;
    assert_same(&format!("{what}, {}", class.name), &cpu, &device, &before);
    Ok(())
}

fn of_operation(operation: Operation, dtype: DType) -> Result<Expression, selvedge::Error> {
    let signature = operation.signature(&vec![dtype; operation.arity()])?;
    let graph = Graph::new();
    let inputs: Vec<_> =
        signature.operands[..operation.arity()].iter().map(|&dtype| graph.input(dtype)).collect();
    graph.expression(&[inputs[0].operation(operation, &inputs[1..])])
}

fn every_operation_has_the_bits_of_the_cpu() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let mut count = 0;
    for &operation in Operation::ALL {
        for dtype in operation.dtypes().iter() {
            let expression = of_operation(operation, dtype)?;
            check(&stream, &format!("{} of {dtype}", operation.name()), &expression, &CLASSES[0])?;
            count += 1;
        }
    }
    assert!(count > 500, "{count}");
    Ok(())
}

fn every_class_of_layouts_does() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    for class in CLASSES {
        for operation in [Operation::Conj, Operation::Add, Operation::Select] {
            for dtype in operation.dtypes().iter() {
                let expression = of_operation(operation, dtype)?;
                check(&stream, &format!("{} of {dtype}", operation.name()), &expression, class)?;
            }
        }
    }
    Ok(())
}

fn every_cast_does() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    for from in DType::ALL {
        for to in DType::ALL {
            let graph = Graph::new();
            let expression = graph.expression(&[graph.input(from).cast(to)])?;
            check(&stream, &format!("{from} as {to}"), &expression, &CLASSES[0])?;
        }
    }
    Ok(())
}

fn expressions_do() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    for class in CLASSES {
        let graph = Graph::new();
        let [x, y, z] = graph.inputs([DType::F32, DType::BF16, DType::I16]);
        let sum = (x * y + z).relu();
        let expression = graph.expression(&[
            sum,
            sum.gt(1.5),
            (sum.tanh() * 100.0).cast(DType::I8),
            sum.cast(DType::F16),
        ])?;
        check(&stream, "four outputs", &expression, class)?;
    }
    Ok(())
}

fn runs_in_place() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let graph = Graph::new();
    let expression = graph.expression(&[graph.input(DType::F32) * 2.0 + 1.0])?;
    let layout = Layout::contiguous(&[100_003])?;
    let mut memory = stream.upload(&(0..100_003).map(|k| k as f32).collect::<Vec<_>>())?;
    let output = DeviceOutput::new(&mut memory, layout)?;
    let input = DeviceInput::output(0, &output);
    expression.run(&stream, &[input], &[], &mut [output])?;
    let found = stream.download(&memory)?;
    assert!(found.iter().enumerate().all(|(k, x)| *x == 2.0 * k as f32 + 1.0));
    Ok(())
}

fn other_numbers_need_no_other_kernel() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let layout = Layout::contiguous(&[1000])?;
    let source = stream.upload(&[1.5f64; 1000])?;
    let mut target = stream.zeros::<f64>(1000)?;
    let graph = Graph::new();
    let expression = graph.expression(&[graph.input(DType::F64) * graph.scalar(DType::F64)])?;
    let output = DeviceOutput::new(&mut target, layout)?;
    expression.preload(&device, &[DeviceInput::new(&source, layout)?], &[output])?;
    for factor in [2.0, -0.5, 1e300] {
        let output = DeviceOutput::new(&mut target, layout)?;
        expression.run(&stream, &[DeviceInput::new(&source, layout)?], &[factor.into()], &mut [output])?;
        assert_eq!(stream.download(&target)?, [1.5 * factor; 1000]);
    }
    Ok(())
}

fn more_elements_than_32_bits_count() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let count = (1usize << 32) + 1003;
    if device.memory_info()?.free < 3 * count as u64 {
        return Ok(());
    }
    let graph = Graph::new();
    let expression = graph.expression(&[graph.input(DType::U8) + graph.input(DType::U8)])?;
    let mut source = stream.zeros::<u8>(count)?;
    stream.fill(&mut source.slice_mut(1 << 31..)?, 7)?;
    let row = stream.upload(&[5u8])?;
    let mut target = stream.zeros::<u8>(count)?;
    let layout = Layout::contiguous(&[count])?;
    let inputs = [DeviceInput::new(&source, layout)?, DeviceInput::new(&row, Layout::contiguous(&[1])?)?];
    expression.run(&stream, &inputs, &[], &mut [DeviceOutput::new(&mut target, layout)?])?;
    let around = |middle: usize| stream.download(&target.slice(middle - 500..middle + 500)?);
    assert!(around(1 << 31)?.iter().enumerate().all(|(k, x)| *x == if k < 500 { 5 } else { 12 }));
    for middle in [1 << 30, 3 << 30, 1 << 32, count - 500] {
        let wanted = if middle < 1 << 31 { 5 } else { 12 };
        assert_eq!(around(middle)?, [wanted; 1000], "around {middle}");
    }
    Ok(())
}

fn broken_rules_are_errors() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let graph = Graph::new();
    let expression = graph.expression(&[graph.input(DType::F32).sqrt()])?;
    let (four, five) = (Layout::contiguous(&[4])?, Layout::contiguous(&[5])?);
    let source = stream.zeros::<f32>(4)?;
    let whole = stream.zeros::<i32>(4)?;
    let mut target = stream.zeros::<f32>(4)?;
    assert!(DeviceInput::new(&source, five).is_err());
    assert!(DeviceOutput::new(&mut target, five).is_err());
    let wrong = DeviceInput::new(&whole, four)?;
    assert!(expression.run(&stream, &[wrong], &[], &mut [DeviceOutput::new(&mut target, four)?]).is_err());
    assert!(expression.run(&stream, &[], &[], &mut [DeviceOutput::new(&mut target, four)?]).is_err());
    let bytes = stream.zeros::<u8>(17)?;
    assert!(DeviceInput::of_bytes(DType::F32, &bytes.slice(1..)?, four).is_err());
    stream.synchronize()?;
    Ok(())
}
