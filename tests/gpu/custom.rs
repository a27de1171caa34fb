//! Operations of one's own on tensors, and errors that their kernels report.

use selvedge::Error;
use selvedge::driver::{self, KernelError, LaunchConfig};
use selvedge::launcher::Launcher;
use selvedge::tensor::kernel::{self, Output};
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use crate::support::{Lab, Need, Outcome, assert_error, device_tests};

device_tests! {
    custom_operations_run_with_tensors, wrong_indices_come_from_every_call_that_waits => in_child(&[]),
    buffers_become_tensors,
    a_fault_of_a_custom_operation_leaves_the_cpu => in_child(&[]),
    kernels_report_errors_of_their_own => in_child(&[]) => needs(Need::Nvrtc),
}

/// The elements, copied by a kernel that waits first.
fn slow_copy(lab: &Lab, x: &Tensor) -> selvedge::Result<Tensor> {
    let mut y = Output::new(&x.device(), x.dtype(), x.shape())?;
    kernel::run(
        "slow_copy",
        [x],
        [&mut y],
        |[x], [mut y]| y.write(x.as_slice::<u32>()?.iter().copied()),
        |stream, [x], [mut y]| lab.copy(stream, x.as_slice()?, y.as_slice_mut()?, 1_000_000),
    )?;
    Ok(y.into_tensor())
}

fn custom_operations_run_with_tensors() -> Outcome {
    let lab = Lab::new()?;
    let device = Device::cuda(0)?;
    let x = Tensor::from_vec((0..1000u32).collect(), &[10, 100], &device)?;
    for device in [Device::cpu(), device] {
        let y = slow_copy(&lab, &(&x.to(&device)? + 1u32)?)?;
        assert_eq!((&y * 2u32)?.to_vec::<u32>()?, (0..1000).map(|x| 2 * (x + 1)).collect::<Vec<u32>>());
        let view = slow_copy(&lab, &x.to(&device)?.narrow(0, 3, 1)?)?;
        assert_eq!(view.to_vec::<u32>()?, (300..400).collect::<Vec<u32>>());
    }
    let transposed = slow_copy(&lab, &x.t()?);
    assert_error!(transposed, Error::InvalidArgument { .. });
    let stream = device.stream()?;
    let (graph, y) = stream.capture(|_| slow_copy(&lab, &(&x + 5u32)?))?;
    let graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(&stream)?;
        assert_eq!(y.to_vec::<u32>()?, (5..1005).collect::<Vec<u32>>());
    }
    // On the thread's stream, and in order with the device's own.
    let other = driver::Device::new(0)?.stream()?;
    let mut there = Device::with_stream(&other, || slow_copy(&lab, &x))?;
    there.in_place().add(7u32)?;
    assert_eq!(there.to_vec::<u32>()?, (7..1007).collect::<Vec<u32>>());
    Ok(())
}

fn wrong_indices_come_from_every_call_that_waits() -> Outcome {
    let device = Device::cuda(0)?;
    let cuda = driver::Device::new(0)?;
    let stream = device.stream()?;
    let x = Tensor::new([1.0f32, 2.0], &device)?;
    let index = Tensor::new([5i64], &device)?;
    let buffer = stream.upload(&[1u32, 2, 3])?;
    let recorded = || {
        let mut event = cuda.event()?;
        event.record(&stream)?;
        Ok::<_, Error>(event)
    };
    let long = std::time::Duration::from_secs(10);
    let waits: [(&str, &dyn Fn() -> selvedge::Result<()>); 9] = [
        ("Stream::synchronize", &|| stream.synchronize()),
        ("Device::synchronize", &|| cuda.synchronize()),
        ("Stream::synchronize_timeout", &|| stream.synchronize_timeout(long)),
        ("Device::synchronize_timeout", &|| cuda.synchronize_timeout(long)),
        ("Event::synchronize", &|| recorded()?.synchronize()),
        ("Event::synchronize_timeout", &|| recorded()?.synchronize_timeout(long)),
        ("copy_to_host", &|| stream.copy_to_host(&buffer, &mut [0u32; 3])),
        ("download", &|| stream.download(&buffer).map(drop)),
        ("Transfer::wait", &|| {
            let transfer = stream.download_async(&buffer, cuda.pinned(3)?).map_err(Error::from)?;
            transfer.wait().map(drop)
        }),
    ];
    for (name, wait) in waits {
        wait().map_err(|error| format!("{name} before: {error}"))?;
        drop(x.take(&index)?);
        let reported = wait();
        let found = matches!(
            reported,
            Err(Error::IndexOutOfRange { operation: "take", index: 5, axis: None, size: 2 })
        );
        if !found {
            return Err(format!("{name}: {reported:?}").into());
        }
        // Once, and the stream goes on.
        wait().map_err(|error| format!("{name} after: {error}"))?;
    }
    Ok(())
}

fn a_fault_of_a_custom_operation_leaves_the_cpu() -> Outcome {
    let lab = Lab::new()?;
    let faulty = lab.kernel("write_to_nowhere")?;
    let device = Device::cuda(0)?;
    let x = Tensor::from_vec((0..1000u32).collect(), &[1000], &device)?;
    let mut y = Output::new(&device, x.dtype(), x.shape())?;
    kernel::run(
        "write_to_nowhere",
        [&x],
        [&mut y],
        |_, _| unreachable!("the tensor is on a device"),
        |stream, _, _| {
            // SAFETY: not safe: it writes to an address that nothing maps, which ends the context. That is the test.
            unsafe { faulty.launch(stream, LaunchConfig::new(1, 1), (1u32,)) }
        },
    )?;
    let y = y.into_tensor();
    match y.to_vec::<u32>() {
        Err(Error::KernelFault { kernel, code: 700, .. }) if kernel == "write_to_nowhere" => {}
        other => return Err(format!("the fault was seen as {other:?}").into()),
    }
    // Every later use is an error, and the CPU goes on.
    assert_error!(x.to_vec::<u32>(), Error::ContextLost { .. });
    assert_error!(&x + 1u32, Error::ContextLost { .. });
    assert_error!(slow_copy(&lab, &x), Error::ContextLost { .. });
    drop((x, y));
    let here = Tensor::new([1u32, 2], &Device::cpu())?;
    assert_eq!((&here + 1u32)?.to_vec::<u32>()?, [2, 3]);
    Ok(())
}

fn buffers_become_tensors() -> Outcome {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let x = Tensor::from_buffer(stream.upload(&[1.0f64, 2.0, 3.0, 4.0])?, &[2, 2])?;
    let sum = (&x + &x.t()?)?;
    assert_eq!(stream.download(&sum.into_buffer::<f64>()?)?, [2.0, 5.0, 5.0, 8.0]);
    // A part of a tensor, or one that runs otherwise, is copied.
    assert_eq!(stream.download(&x.t()?.into_buffer::<f64>()?)?, [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(stream.download(&x.narrow(0, 1, 1)?.into_buffer::<f64>()?)?, [3.0, 4.0]);
    assert_eq!(x.to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0]);
    let empty = Tensor::zeros(&[0, 3], DType::F64, &device)?.into_buffer::<f64>()?;
    assert!(empty.is_empty());
    Ok(())
}

fn kernels_report_errors_of_their_own() -> Outcome {
    static NEGATIVE: KernelError = KernelError::new("roots", |report| Error::InvalidArgument {
        operation: report.operation,
        found: format!("{} at position {}", report.index, report.size),
        wanted: "numbers that are not negative".to_owned(),
    });
    const SOURCE: &str = "#include <selvedge/report.cuh>
        extern \"C\" __global__ void roots(int *x, unsigned n, selvedge::kernel_report *report, unsigned code) {
            unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            if (x[i] < 0) selvedge::report(report, code, x[i], selvedge::no_axis, i);
            else x[i] = (int)sqrtf((float)x[i]);
        }";
    let cuda = driver::Device::new(0)?;
    let launcher = Launcher::new(&cuda)?;
    launcher.compile("roots", SOURCE)?;
    let mut x = Tensor::new([4i32, 9, -7, 16], &Device::cuda(0)?)?;
    let mut roots = || -> selvedge::Result<()> {
        kernel::run(
            "roots",
            [],
            [&mut x],
            |_, _| unreachable!("the tensor is on a device"),
            |stream, _, [mut x]| {
                let report = (cuda.report_address()?, NEGATIVE.code());
                let arguments = (x.as_slice_mut::<i32>()?, 4u32, report.0, report.1);
                // SAFETY: the kernel touches 4 elements.
                unsafe {
                    launcher.run_on(stream, "roots", LaunchConfig::for_elements(4), arguments).map(drop)
                }
            },
        )
    };
    roots()?;
    roots()?;
    let reported = cuda.synchronize();
    assert_error!(reported, Error::InvalidArgument { operation: "roots", .. });
    assert_eq!(
        reported.unwrap_err().to_string(),
        "roots: found -7 at position 2; wanted numbers that are not negative"
    );
    cuda.synchronize()?;
    assert_eq!(x.to_vec::<i32>()?, [1, 1, -7, 2]);
    Ok(())
}
