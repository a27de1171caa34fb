//! Elementwise runs take part in the order of streams as every launch does, and find their kernels again.

use libtest_mimic::Trial;
use selvedge::driver::Device;
use selvedge::fuse::{DeviceInput, DeviceOutput, Graph};
use selvedge::types::{DType, Layout};

use super::support::Fake;
use super::variant::Variant;
use super::{children, scenario};

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

pub fn trials() -> Vec<Trial> {
    vec![Trial::test("fuse::runs_are_ordered_and_kernels_are_kept", || {
        children::must_succeed(&Variant::new(12040), "fuse", &[], &[]).map(drop)
    })]
}
