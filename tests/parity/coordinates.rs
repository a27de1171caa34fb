//! Indices and positions depend only on the outputs' shape, for every layout of the operands.

use selvedge::fuse::{Expression, Graph, HostOutput};
use selvedge::types::{DType, Layout};

use super::arrays::Array;
use super::classes::{CLASSES, Class, Role};
use super::operations::check;
use super::value::{Value, read};
use crate::common::suite::Test;
use ptx_interpreter::{Kernel, Memory};

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for class in CLASSES {
        // The widest, a narrow and the narrowest lane.
        for dtype in [DType::I64, DType::I32, DType::F16, DType::U8, DType::C128] {
            tests.push(Test::new(format!("coordinates::{dtype}::{}", class.name), move || {
                run(class, dtype);
                Ok(())
            }));
        }
    }
    tests.push(Test::new("coordinates::past_32_bits", || {
        far();
        Ok(())
    }));
    tests.push(Test::new("coordinates::axes_are_checked", || {
        axes();
        Ok(())
    }));
    tests
}

/// Returns an expression of the position, the first and last index, and the position beside an input.
fn expression(dtype: DType, rank: usize) -> Expression {
    let graph = Graph::new();
    let mut outputs = vec![graph.position().cast(dtype)];
    if rank > 0 {
        outputs.extend([graph.index(0).cast(dtype), graph.index(-1).cast(dtype)]);
    }
    outputs.push(graph.input(DType::I16) + graph.position());
    graph.expression(&outputs).expect("an expression")
}

fn run(class: &Class, dtype: DType) {
    let layout = |role| (class.layout)(0, role);
    // Each output has a layout of its own if the class has several.
    let outputs = |count: usize| (0..count).map(|_| (class.layout)(1, Role::Output)).collect::<Vec<_>>();
    let shape = *outputs(1)[0].shape();
    let expression = expression(dtype, shape.rank());
    let zero = if dtype.is_complex() { Value::Complex(0.0, 0.0) } else { Value::Integer(0) };
    let zero = if dtype.is_float() { Value::Real(0.0) } else { zero };
    let before: Vec<Array> = expression
        .outputs()
        .iter()
        .zip(outputs(expression.outputs().len()))
        .map(|(&found, layout)| {
            let zero = if found == dtype { zero } else { Value::Integer(0) };
            Array::new(found, layout, &[zero], 0)
        })
        .collect();
    let numbers: Vec<Value> = (0..97).map(|k| Value::Integer(k * 31 - 1000)).collect();
    let inputs = [Array::new(DType::I16, layout(Role::Input), &numbers, 3)];
    let after = check(&expression, &inputs, &before, true);

    let last = shape.rank().checked_sub(1).map_or(1, |axis| shape[axis]).max(1);
    let plane = shape.count() / shape.first().copied().unwrap_or(1).max(1);
    let narrowed = |index: usize| {
        let mut bytes = vec![0; dtype.size()];
        let value = match zero {
            Value::Integer(_) if dtype == DType::U8 => Value::Integer((index % 256) as i128),
            Value::Integer(_) => Value::Integer(index as i128),
            Value::Real(_) => Value::Real(index as f64),
            _ => Value::Complex(index as f64, 0.0),
        };
        super::value::write(dtype, value, &mut bytes);
        bytes
    };
    let of_inputs = inputs[0].elements(&inputs[0].layout.expand(&shape).expect("a broadcast"));
    for (output, array) in after.iter().enumerate() {
        for (position, found) in array.element_bytes().into_iter().enumerate() {
            if output + 1 == after.len() {
                let wanted = of_inputs[position].integer() + position as i128;
                assert_eq!(read(DType::I64, found).integer(), wanted);
                continue;
            }
            let wanted = [position, position / plane.max(1), position % last][output];
            assert_eq!(found, narrowed(wanted), "output {output} at {position} of {shape}");
        }
    }
}

/// A run that is split into several launches continues the numbering.
fn far() {
    let graph = Graph::new();
    let expression = graph.expression(&[graph.position(), graph.index(0)]).expect("an expression");
    let layout = Layout::contiguous(&[5, 1 << 31]).expect("a layout");
    let explanation = expression.explain(&[], &[layout; 2], (8, 0)).expect("a plan");
    assert!(explanation.launches.len() > 4 && explanation.to_string().contains("index along axis 0"));
    for launch in &explanation.launches {
        // The first block, as if the memory began there.
        let mut memory = Memory::default();
        let addresses = [(); 2].map(|()| memory.add(vec![0; 8 * 512]));
        let mut parameters: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        parameters.extend(&launch.parameters);
        Kernel::read(&launch.ptx).run(1, launch.threads, &parameters, &mut memory);
        for element in [0, 1, 2, 511] {
            let at =
                |address| read(DType::I64, &memory.bytes(address)[8 * element..8 * element + 8]).integer();
            let position = launch.offsets[0] + element;
            assert_eq!((at(addresses[0]), at(addresses[1])), (position as i128, (position >> 31) as i128));
        }
    }
}

fn axes() {
    let run = |axis: isize, sizes: &[usize]| {
        let graph = Graph::new();
        let expression = graph.expression(&[graph.index(axis)]).expect("an expression");
        let layout = Layout::contiguous(sizes).expect("a layout");
        assert_eq!(
            expression.explain(&[], &[layout], (8, 0)).is_ok(),
            expression
                .run_host(&[], &[], &mut [HostOutput::new(&mut [0i64; 6], layout).expect("an output")])
                .is_ok()
        );
        expression.explain(&[], &[layout], (8, 0)).map(drop)
    };
    assert!(run(1, &[2, 3]).is_ok() && run(-2, &[2, 3]).is_ok());
    for (axis, sizes) in [(2, &[2, 3][..]), (-3, &[2, 3]), (0, &[])] {
        let message = run(axis, sizes).expect_err("an error").to_string();
        assert!(message.contains("index") && message.contains(&axis.to_string()), "{message}");
    }
}
