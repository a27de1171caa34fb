//! Elementwise runs take part in the order of streams as every launch does, and find their kernels again.

use selvedge::driver::Device;
use selvedge::fuse::{DeviceInput, DeviceOutput, Expression, Graph};
use selvedge::tensor::Tensor;
use selvedge::types::{DType, Layout};

use super::support::Fake;
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

/// Child: runs on two streams that need each other's results, in place too, and of one text for two expressions.
pub fn child(fake: &Fake) -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::new(0)?;
    let (first, second) = (device.stream()?, device.stream()?);
    let layout = Layout::contiguous(&[64])?;
    let a = first.upload(&[1.0f32; 64])?;
    let mut b = second.zeros::<f32>(64)?;
    let mut c = first.zeros::<f32>(64)?;
    for number in [2.0, 3.0] {
        let graph = Graph::new();
        let [x, y] = graph.inputs([DType::F32; 2]);
        let expression = graph.expression(&[x * number + y])?;
        for _ in 0..3 {
            // b from a, in place, on the one stream; c from b on the other.
            let output = DeviceOutput::new(&mut b, layout)?;
            let inputs = [DeviceInput::new(&a, layout)?, DeviceInput::output(0, &output)];
            expression.run(&second, &inputs, &[], &mut [output])?;
            let inputs = [DeviceInput::new(&b, layout)?, DeviceInput::new(&a, layout)?];
            expression.run(&first, &inputs, &[], &mut [DeviceOutput::new(&mut c, layout)?])?;
        }
    }
    let loads = fake.call_count("cuModuleLoadDataEx");
    if loads != 1 {
        return Err(format!("{loads} modules were loaded for one text").into());
    }
    // Nothing to compute, nothing launched.
    let launches = fake.call_count("cuLaunchKernel");
    if launches != 12 {
        return Err(format!("{launches} launches instead of 12").into());
    }
    let graph = Graph::new();
    let expression = graph.expression(&[graph.input(DType::F32).sqrt()])?;
    let empty = Layout::contiguous(&[0, 3])?;
    expression.run(&first, &[DeviceInput::new(&a, empty)?], &[], &mut [DeviceOutput::new(&mut c, empty)?])?;
    if fake.call_count("cuLaunchKernel") != launches {
        return Err("a launch of no elements".into());
    }
    drop((a, b, c, first, second));
    scenario::settle()?;
    // The module stays for the next expression of its text, and with it the streams that it ran on.
    let (live, violations) = (fake.live(), fake.violations());
    if (live.blocks, live.modules) != (0, 1) || !violations.is_empty() {
        return Err(format!("alive at the end:\n{}\n{}", fake.describe_live(), violations.join("\n")).into());
    }
    Ok(())
}

/// Child: an expression that has planned other runs does what a new one does. The fake's kernels compute nothing, but what
/// they write depends on every byte of their parameters.
pub fn plans_child(fake: &Fake) -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let a = stream.upload(&(0..64).map(|index| index as f32).collect::<Vec<_>>())?;
    let mut b = stream.zeros::<f32>(64)?;
    let expression = || {
        let graph = Graph::new();
        let (x, scale) = (graph.input(DType::F32), graph.scalar(DType::F32));
        graph.expression(&[x * 3.0 + scale])
    };
    let mut run = |expression: &Expression, start: usize, layout: Layout, scale: f32| {
        stream.fill(&mut b, 0.0)?;
        let part = a.slice(start..)?;
        let output = DeviceOutput::new(&mut b, Layout::from_shape(*layout.shape()))?;
        expression.run(&stream, &[DeviceInput::new(&part, layout)?], &[scale.into()], &mut [output])?;
        stream.download(&b)
    };
    let whole = Layout::contiguous(&[32])?;
    let square = Layout::contiguous(&[4, 8])?;
    let runs = [
        (0, whole, 1.0),
        (0, whole, 2.0),
        // In memory that starts where no vector does; before others that take the same kernel.
        (1, whole, 1.0),
        (0, Layout::contiguous(&[16])?, 1.0),
        (0, whole.flip(&[0])?, 1.0),
        (0, Layout::strided(&[32], &[1], 4)?, 1.0),
        (0, square.transpose(0, 1)?, 1.0),
        (0, Layout::strided(&[8, 4], &[1, 9], 0)?, 1.0),
    ];
    let reused = expression()?;
    let mut seen: Vec<Vec<f32>> = Vec::new();
    // Twice, and the second time from what was planned the first.
    for round in 0..2 {
        for (index, (start, layout, scale)) in runs.into_iter().enumerate() {
            let loads = fake.call_count("cuModuleLoadDataEx");
            let found = run(&reused, start, layout, scale)?;
            if round == 0 && start == 1 && fake.call_count("cuModuleLoadDataEx") == loads {
                return Err("memory that starts elsewhere is read by the kernel of vectors".into());
            }
            if !same(&found, &run(&expression()?, start, layout, scale)?) {
                return Err(format!("round {round}, run {index}: not what a new expression gives").into());
            }
            if round == 0 && seen.iter().any(|other| same(other, &found)) {
                return Err(format!("run {index} is as another, so it proves nothing").into());
            }
            seen.push(found);
        }
    }
    Ok(())
}

/// Child: an expression, a reduction and row programs with and without sums over groups load their kernels once a context, and
/// after a reset nothing of the old one is used.
pub fn resets_child(fake: &Fake) -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Device::new(0)?;
    for round in 0..3 {
        let work = || -> selvedge::Result<u64> {
            let before = fake.call_count("cuModuleLoadDataEx");
            let x = Tensor::zeros(&[64, 48], DType::F32, &device.into())?;
            let weight = Tensor::zeros(&[48], DType::F32, &device.into())?;
            x.exp()?.sum(&[0])?;
            x.softmax(1)?.layer_norm_backward(&x, &[48], Some(&weight), 1e-5, None, true)?;
            device.synchronize()?;
            Ok(fake.call_count("cuModuleLoadDataEx") - before)
        };
        let loads = [work()?, work()?];
        if loads[0] < 4 || loads[1] != 0 {
            return Err(format!("round {round}: {loads:?} loads by a first and a second run").into());
        }
        // SAFETY: nothing else uses CUDA in this process.
        device = unsafe { device.reset()? };
    }
    match fake.violations() {
        violations if violations.is_empty() => Ok(()),
        violations => Err(violations.join("\n").into()),
    }
}

fn same(left: &[f32], right: &[f32]) -> bool {
    left.iter().map(|x| x.to_bits()).eq(right.iter().map(|x| x.to_bits()))
}

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("fuse::runs_are_ordered_and_kernels_are_kept", || {
            children::must_succeed(&Variant::new(12040), "fuse", &[], &[]).map(drop)
        }),
        Test::new("fuse::plans_are_found_by_all_that_they_depend_on", || {
            children::must_succeed(&Variant::new(12040), "fuse_plans", &[], &[("SELVEDGE_POOL", "none")])
                .map(drop)
        }),
        Test::new("fuse::kernels_of_a_context_that_was_reset_are_assembled_again", || {
            children::must_succeed(&Variant::new(12040), "fuse_resets", &[], &[]).map(drop)
        }),
    ]
}
