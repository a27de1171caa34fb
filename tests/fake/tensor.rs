//! Tensors on the fake driver: where their work goes, what a small operation asks of the driver, copies between devices,
//! and capture. (The fake computes nothing, but what its kernels write depends on every byte that they are given.)

use selvedge::Error;
use selvedge::driver;
use selvedge::gemm::Activation;
use selvedge::tensor::kernel::{self, Output};
use selvedge::tensor::{Device, Fused, Matmul, StreamGuard, Tensor};
use selvedge::types::DType;

use super::support::{ChildOutcome, Fake, calls, check};
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

/// Child: what a small operation asks of the driver; or all else, with an allocation of the driver for each tensor,
/// because a kernel of the fake writes to the end of one.
pub fn child(fake: &Fake, arguments: &[String]) -> ChildOutcome {
    fake.set_strict(true);
    let device = Device::cuda(0)?;
    check(matches!(Device::choose(), (best, None) if best == device), "the best device is not the first")?;
    if arguments.iter().any(|argument| argument == "small") {
        small_operations(fake, &device)?;
    } else {
        streams(fake, &device)?;
        copies(fake, &device)?;
        writes(fake, &device)?;
        kernels(fake, &device)?;
        reductions(fake, &device)?;
        products(fake, &device)?;
        graphs(fake, &device)?;
        threads(&device)?;
        #[cfg(feature = "io")]
        files(fake, &device)?;
    }
    scenario::settle()?;
    let (live, violations) = (fake.live(), fake.violations());
    check(live.blocks == 0, &format!("alive at the end:\n{}", fake.describe_live()))?;
    check(violations.is_empty(), &violations.join("\n"))
}

/// Work goes to the device's own stream, or to that of the thread, and waits where it goes from one to the other.
fn streams(fake: &Fake, device: &Device) -> ChildOutcome {
    let a = Tensor::new([1.0f32; 64], device)?;
    check(device.stream()?.id() == device.stream()?.id(), "a device has one default stream")?;
    let own = driver::Device::new(0)?.stream()?;
    check(own.id() != device.stream()?.id(), "a stream of one's own is another one")?;
    let inside = Device::with_stream(&own, || -> selvedge::Result<_> {
        let other = driver::Device::new(0)?.stream()?;
        let nested = Device::with_stream(&other, || device.stream().map(|stream| stream.id()))?;
        Ok((device.stream()?.id(), nested == other.id()))
    })?;
    check(inside == (own.id(), true), "with_stream does not set the stream")?;
    let from_thread = std::thread::scope(|scope| {
        let work = || scope.spawn(|| device.stream().map(|stream| stream.id())).join();
        Device::with_stream(&own, work)
    });
    let default = device.stream()?.id();
    check(matches!(from_thread, Ok(Ok(id)) if id == default), "with_stream is seen by other threads")?;
    let panics = || Device::with_stream(&own, || std::panic::resume_unwind(Box::new(1)));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
    check(caught.is_err() && device.stream()?.id() == default, "a panic leaves the stream behind")?;
    // Guards that are dropped in another order than the reverse leave the stream of the one that stays.
    let other = driver::Device::new(0)?.stream()?;
    let (first, second) = (StreamGuard::new(&own), StreamGuard::new(&other));
    drop(first);
    check(device.stream()?.id() == other.id(), "the guard that stays does not set the stream")?;
    drop(second);
    check(device.stream()?.id() == default, "a guard leaves its stream behind")?;
    // The other stream waits once for a tensor made on the default stream.
    let (waits, b) = calls(fake, "cuStreamWaitEvent", || Device::with_stream(&own, || &a + &a))?;
    check(waits == 1, &format!("{waits} waits for the other stream's tensor"))?;
    let (waits, _) = calls(fake, "cuStreamWaitEvent", || Device::with_stream(&own, || &b + &b))?;
    check(waits == 0, &format!("{waits} waits on one stream"))
}

/// A reduction is one launch and one that merges where rows are long; a scan one. Both wait for another stream's work, and
/// their scratch memory outlives them.
fn reductions(fake: &Fake, device: &Device) -> ChildOutcome {
    let own = driver::Device::new(0)?.stream()?;
    for (length, folds, zeros) in [(1000, 1, 0), (40_000, 2, 1)] {
        let x = Tensor::zeros(&[length], DType::F32, device)?;
        for round in 0..3 {
            let (launches, _) = calls(fake, "cuLaunchKernel", || x.sum(..))?;
            check(launches == folds, &format!("round {round}: {launches} launches for a sum of {length}"))?;
            let (launches, _) = calls(fake, "cuLaunchKernel", || x.cumsum(0))?;
            check(launches == 1, &format!("round {round}: {launches} launches for a scan of {length}"))?;
            let (fills, _) = calls(fake, "cuMemsetD8Async", || x.cumsum(0))?;
            check(fills == zeros, &format!("round {round}: {fills} fills for a scan of {length}"))?;
        }
        let (waits, sum) = calls(fake, "cuStreamWaitEvent", || Device::with_stream(&own, || x.sum(..)))?;
        check(waits > 0, "a sum does not wait for the other stream's tensor")?;
        // One kernel; for a single long row two reductions and an expression, on values of groups that are dropped
        // before the kernels end.
        let wanted = if folds == 1 { 1 } else { 2 * folds + 1 };
        let (launches, softmax) = calls(fake, "cuLaunchKernel", || x.softmax(0))?;
        check(launches == wanted, &format!("{launches} launches for a softmax of {length}"))?;
        let (waits, other) =
            calls(fake, "cuStreamWaitEvent", || Device::with_stream(&own, || softmax.softmax(0)))?;
        check(waits > 0, "a softmax does not wait for the other stream's tensor")?;
        drop((x, sum, softmax, other));
    }
    Ok(())
}

/// Returns how often the work launches a kernel, with attributes or without, and its result.
fn launches<R>(fake: &Fake, work: impl FnOnce() -> selvedge::Result<R>) -> selvedge::Result<(u64, R)> {
    let before = fake.launches();
    let result = work()?;
    Ok((fake.launches() - before, result))
}

/// A product with all that is fused into it is one launch, and one more for what does not lie as it is read; it waits for
/// another stream's work, which waits for it.
fn products(fake: &Fake, device: &Device) -> ChildOutcome {
    let own = driver::Device::new(0)?.stream()?;
    let ones = |sizes: &[usize]| Tensor::ones(sizes, DType::F32, device);
    let (x, weights, wide) = (ones(&[3, 16, 24])?, ones(&[24, 40])?, ones(&[40, 2])?);
    let (bias, residual, row) = (ones(&[40])?, ones(&[3, 16, 40])?, ones(&[40])?);
    let column = wide.select(1, 0)?;
    let layer = Matmul::new().bias(&bias).activation(Activation::GeluTanh).residual(&residual);
    for (matmul, wanted, what) in [
        (layer, 1, "all as it is read"),
        (layer.bias(&column), 2, "a bias with steps"),
        (layer.residual(&row), 2, "a residual that is broadcast"),
    ] {
        matmul.of(&x, &weights)?;
        let (launched, _) = launches(fake, || matmul.of_with_aux(&x, &weights))?;
        check(launched == wanted, &format!("{what}: {launched} launches"))?;
    }
    // A number for each row keeps the matrices of a batch apart, in one launch all the same.
    let rows = ones(&[16, 1])?;
    let (launched, _) = launches(fake, || layer.bias(&rows).of(&x, &weights))?;
    check(launched == 1, &format!("a bias of rows: {launched} launches"))?;
    device.stream()?.synchronize()?;
    let late = Device::with_stream(&own, || ones(&[3, 16, 40]))?;
    let (waits, (product, aux)) =
        calls(fake, "cuStreamWaitEvent", || layer.residual(&late).of_with_aux(&x, &weights))?;
    check(waits == 1, &format!("{waits} waits for the residual's writer"))?;
    let (waits, _) = calls(fake, "cuStreamWaitEvent", || Device::with_stream(&own, || &aux + &aux))?;
    check(waits == 1, &format!("{waits} waits for aux"))?;
    drop((product, aux));
    let (launched, failed) = launches(fake, || Ok(layer.bias(&residual).of(&x, &weights).err()))?;
    let text = failed.as_ref().map(Error::to_string).unwrap_or_default();
    check(launched == 0 && text.contains("a bias of shape [3, 16, 40]"), &text)
}

/// A small operation is one launch, and nothing else that takes time.
fn small_operations(fake: &Fake, device: &Device) -> ChildOutcome {
    let (a, b) = (Tensor::new([1.0f32; 64], device)?, Tensor::new([2.0f32; 64], device)?);
    let fused = Fused::new(|[a, b, scale]| (a * b + scale).relu());
    let mut loads = 0;
    for round in 0..5 {
        let before = (fake.call_count("cuModuleLoadDataEx"), fake.calls());
        let sum = (&a - &b)?;
        let scaled = (&sum * f64::from(round))?;
        drop((sum, fused.run((&scaled, &b, round))?));
        let (loaded, called) = (fake.call_count("cuModuleLoadDataEx") - before.0, fake.calls() - before.1);
        loads += loaded;
        // Each launch asks which context is current.
        check(
            round == 0 || called <= 6,
            &format!("round {round}: {called} driver calls for three launches"),
        )?;
        check(round == 0 || loaded == 0, &format!("round {round}: {loaded} modules for another number"))?;
    }
    check(loads == 3, &format!("{loads} modules for three kernels"))
}

fn copies(fake: &Fake, device: &Device) -> ChildOutcome {
    let x = Tensor::new([[1i32, 2, 3], [4, 5, 6]], &Device::cpu())?;
    let there = x.to(device)?;
    check(
        there.device() == *device && there.to_vec::<i32>()? == [1, 2, 3, 4, 5, 6],
        "to the device and back",
    )?;
    check(there.narrow(0, 1, 1)?.to(&Device::cpu())?.to_vec::<i32>()? == [4, 5, 6], "a part of it")?;
    check(there.to(device)?.device() == *device, "to where it is")?;
    for failed in [(&x + &there).err(), there.choose(&x, 1).err(), there.clone().in_place().add(&x).err()] {
        let text = failed.as_ref().map(Error::to_string).unwrap_or_default();
        let good = matches!(failed, Some(Error::DeviceMismatch { operation, .. }) if !operation.is_empty())
            && text.contains("cpu")
            && text.contains("cuda:0");
        check(good, &format!("tensors on two devices: {text}"))?;
    }
    let second = Device::cuda(1)?;
    let (copied, far) = calls(fake, "cuMemcpyPeerAsync", || there.to(&second))?;
    check(copied == 1 && far.device() == second, "a copy between devices")?;
    check(far.to_vec::<i32>()? == [1, 2, 3, 4, 5, 6], "what came over")?;
    check(matches!(&far + &there, Err(Error::DeviceMismatch { .. })), "tensors on two CUDA devices")?;
    check(format!("{there:?}").contains("device=cuda:0"), "the text has no device")
}

/// In place where a tensor is alone, elsewhere where it is not; a failed launch changes nothing.
fn writes(fake: &Fake, device: &Device) -> ChildOutcome {
    let mut x = Tensor::new([1.0f32; 64], device)?;
    let address = |x: &Tensor| x.device_slice::<f32>().map(|slice| slice.address());
    let place = address(&x)?;
    x.in_place().mul(2.0)?;
    x.slice_mut(0, 3..9)?.fill(0.5)?;
    check(address(&x)? == place, "written elsewhere although it is alone")?;
    let clone = x.clone();
    let before = clone.to_vec::<f32>()?;
    x.in_place().add(1.0)?;
    check(address(&x)? != place && address(&clone)? == place, "a clone sees a write")?;
    check(clone.to_vec::<f32>()? == before, "a clone's elements changed")?;
    // cudaErrorLaunchOutOfResources, of which nothing dies.
    fake.fail("cuLaunchKernel", 1, 701);
    let mut y = clone.clone();
    check(
        y.in_place().add(1.0).is_err() && y.in_place().sub(0.0).is_ok(),
        "a failed launch is an error, once",
    )?;
    fake.clear_failures();
    check(clone.to_vec::<f32>()? == before, "a failed launch changed a clone")
}

/// Operations of one's own run on the thread's stream, in order with tensors, and are captured.
fn kernels(fake: &Fake, device: &Device) -> ChildOutcome {
    const PTX: &str = ".version 7.0\n.target sm_50\n.address_size 64\n\
        .visible .entry mine(.param .u64 x, .param .u64 y, .param .u32 n) { ret; }\n";
    let function = driver::Device::new(0)?.load(PTX.as_bytes())?.function("mine")?;
    let mine = |x: &Tensor| -> selvedge::Result<Tensor> {
        let mut y = Output::new(&x.device(), DType::F32, x.shape())?;
        kernel::run(
            "mine",
            [x],
            [&mut y],
            |_, _| unreachable!("the tensors are on a device"),
            |stream, [x], [mut y]| {
                let arguments = (x.as_slice::<f32>()?, y.as_slice_mut::<f32>()?, 64u32);
                // SAFETY: the fake driver's kernel writes as many bytes as the buffer has.
                unsafe { function.launch(stream, driver::LaunchConfig::new(1, 64), arguments) }
            },
        )?;
        Ok(y.into_tensor())
    };
    let x = Tensor::new([1.0f32; 64], device)?;
    let (launches, _) = calls(fake, "cuLaunchKernel", || mine(&x))?;
    check(launches == 1, "an operation of one's own is one launch")?;
    // Whoever writes the input afterwards on another stream waits for the kernel that reads it.
    let other = driver::Device::new(0)?.stream()?;
    let mut own = x.copy()?;
    let _y = mine(&own)?;
    let (waits, ()) = calls(fake, "cuStreamWaitEvent", || {
        Device::with_stream(&other, || own.in_place().fill(2.0).map(drop))
    })?;
    check(waits == 1, "a writer does not wait for a reader of one's own")?;
    let host = Tensor::new([1.0f32; 64], &Device::cpu())?;
    let mut on_device = Output::new(device, DType::F32, &[64])?;
    let mixed =
        kernel::run("mine", [&host], [&mut on_device], |_, _| unreachable!(), |_, _, _| unreachable!());
    check(matches!(mixed, Err(Error::DeviceMismatch { operation: "mine", .. })), "two devices are no error")?;
    let stream = device.stream()?;
    let (graph, y) = stream.capture(|_| mine(&x))?;
    let graph = graph.instantiate()?;
    graph.launch(&stream)?;
    drop(y.to_vec::<f32>()?);

    // A buffer becomes a tensor and comes back, where it is.
    let buffer = stream.upload(&[1.5f32; 64])?;
    let place = buffer.address();
    let tensor = Tensor::from_buffer(buffer, &[8, 8])?;
    let found = (tensor.shape().to_vec(), tensor.device_slice::<f32>()?.address());
    check(found == (vec![8, 8], place), "a buffer's tensor is elsewhere")?;
    let clone = tensor.clone();
    let copy = tensor.into_buffer::<f32>()?;
    check(copy.len() == 64 && copy.address() != place, "shared elements are taken away")?;
    check(clone.into_buffer::<f32>()?.address() == place, "elements of one's own are copied")?;
    let wrong = Tensor::from_buffer(stream.zeros::<i32>(6)?, &[7]).map(drop);
    check(
        matches!(wrong, Err(Error::LengthMismatch { wanted: 7, found: 6, .. })),
        "a wrong shape is no error",
    )
}

/// A program of tensors is captured where its thread's work goes, and runs at each launch.
fn graphs(fake: &Fake, device: &Device) -> ChildOutcome {
    let a = Tensor::new([3.0f32; 64], device)?;
    let mut total = Tensor::zeros(&[64], DType::F32, device)?;
    let program = |total: &mut Tensor| -> selvedge::Result<Tensor> {
        let scaled = (&a * 2.0)?;
        total.in_place().add(&scaled)?;
        fuse_once(&scaled, total)
    };
    for own in [None, Some(driver::Device::new(0)?.stream()?)] {
        let mut total = total.copy()?;
        let stream = own.clone().map_or_else(|| device.stream(), Ok)?;
        let launches = fake.call_count("cuGraphLaunch");
        let (graph, result) = stream.capture(|stream| match own {
            None => program(&mut total),
            Some(_) => Device::with_stream(stream, || program(&mut total)),
        })?;
        check(
            graph.nodes()?.iter().filter(|node| node.kernel().is_some()).count() == 3,
            "not three kernels",
        )?;
        let graph = graph.instantiate()?;
        let mut seen = vec![bits(&total)?];
        for launch in 0..3 {
            graph.launch(&stream)?;
            check(bits(&result)?.len() == 64, "a captured program's result has other elements")?;
            let now = bits(&total)?;
            check(!seen.contains(&now), &format!("launch {launch} wrote nothing"))?;
            seen.push(now);
        }
        check(fake.call_count("cuGraphLaunch") == launches + 3, "not three launches of a graph")?;
    }
    total.in_place().fill(0)?;
    // Reading cannot be captured; the capture goes on.
    let stream = device.stream()?;
    let (_, refused) =
        stream.capture(|_| Ok(matches!(a.to_vec::<f32>(), Err(Error::NotCapturable { .. }))))?;
    check(refused, "a read while its stream is captured")
}

fn bits(x: &Tensor) -> selvedge::Result<Vec<u32>> {
    Ok(x.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())
}

fn fuse_once(x: &Tensor, y: &Tensor) -> selvedge::Result<Tensor> {
    selvedge::tensor::fuse([x, y], |[x, y]| (x - y).abs())
}

/// Threads use one tensor, on the default stream and on their own.
fn threads(device: &Device) -> ChildOutcome {
    let x = Tensor::new([5.0f32; 64], device)?;
    let wanted = ((&x * 3.0)? - 1.0)?.to_vec::<f32>()?;
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (x, wanted) = (&x, &wanted);
                scope.spawn(move || -> selvedge::Result<bool> {
                    let stream = driver::Device::new(0)?.stream()?;
                    let work = || -> selvedge::Result<bool> {
                        for _ in 0..20 {
                            if ((x * 3.0)? - 1.0)?.to_vec::<f32>()? != *wanted {
                                return Ok(false);
                            }
                        }
                        Ok(true)
                    };
                    if thread % 2 == 0 { work() } else { Device::with_stream(&stream, work) }
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    check(results.iter().all(|result| matches!(result, Ok(Ok(true)))), &format!("{results:?}"))
}

/// Files go to the device and back in chunks; where a copy fails there is an error, and nothing is left.
#[cfg(feature = "io")]
fn files(fake: &Fake, device: &Device) -> ChildOutcome {
    use selvedge::io::npy::NpyFile;
    let path = std::env::temp_dir().join(format!("selvedge-fake-{}.npy", std::process::id()));
    let count = 9 << 20;
    let cpu = Tensor::arange(0, count, 1, DType::I32, &Device::cpu())?;
    cpu.reshape(&[3, 3, 1 << 20])?.write_npy(&path)?;
    let elements = cpu.to_vec::<i32>()?;
    let mut file = NpyFile::open(&path)?;
    let mut reports = Vec::new();
    let mut read = |file: &mut NpyFile| {
        Tensor::read_npy_file(file, device, &mut |done, total| reports.push((done, total)))
    };
    let (copied, there) = calls(fake, "cuMemcpyHtoDAsync", || read(&mut file))?;
    check(copied == 2 && **there.shape() == [3, 3, 1 << 20], &format!("{copied} copies of 36 MiB"))?;
    check(there.device() == *device && there.to_vec::<i32>()? == elements, "a file's elements")?;
    fake.fail("cuMemcpyHtoDAsync", 2, 701);
    check(read(&mut file).is_err(), "a failed copy of a file's chunk is no error")?;
    fake.clear_failures();
    check(read(&mut file)?.to_vec::<i32>()? == elements, "a file's elements, after an error")?;
    check(reports.last() == Some(&(36 << 20, 36 << 20)), "the last report is not the whole")?;
    // SAFETY: nobody else knows the file.
    let mapped = unsafe { Tensor::map_npy_file(&file, device, &mut |_, _| {})? };
    check(mapped.to_vec::<i32>()? == elements, "a mapped file's elements")?;
    there.narrow(1, 1, 2)?.select(1, 1)?.narrow(0, 0, 1)?.write_npy(&path)?;
    let part = Tensor::read_npy(&path, &Device::cpu())?;
    check(part.to_vec::<i32>()? == elements[2 << 20..3 << 20], "a part of the device's elements in a file")?;
    std::fs::remove_file(&path)?;
    safetensors(fake, device, &there)
}

/// Tensors of a safetensors file go straight to the device, in chunks.
#[cfg(feature = "io")]
fn safetensors(fake: &Fake, device: &Device, there: &Tensor) -> ChildOutcome {
    use selvedge::io::safetensors::SafetensorsFile;
    let path = std::env::temp_dir().join(format!("selvedge-fake-{}.safetensors", std::process::id()));
    let small = Tensor::new([7i64, 8], device)?;
    let elements = there.to_vec::<i32>()?;
    Tensor::write_safetensors(&path, &[("large", there), ("small", &small)], &[])?;
    let (mut reports, total) = (Vec::new(), (36 << 20) + 16);
    let mut read =
        || Tensor::read_safetensors_with(&path, device, &mut |done, all| reports.push((done, all)));
    let (copied, found) = calls(fake, "cuMemcpyHtoDAsync", &mut read)?;
    let of = |name: &str| found.iter().find(|(found, _)| found == name).map(|(_, tensor)| tensor);
    let (large, few) = (of("large").ok_or("no large")?, of("small").ok_or("no small")?);
    check(copied == 3 && large.device() == *device, &format!("{copied} copies of 36 MiB and 16 bytes"))?;
    check(large.shape() == there.shape() && large.to_vec::<i32>()? == elements, "a large tensor of a file")?;
    check(few.to_vec::<i64>()? == [7, 8], "a small tensor of a file")?;
    fake.fail("cuMemcpyHtoDAsync", 2, 701);
    check(read().is_err(), "a failed copy of a tensor's chunk is no error")?;
    fake.clear_failures();
    check(read()?.len() == 2, "the tensors after an error")?;
    check(reports.last() == Some(&(total, total)), "the last report is not the whole")?;
    let mut file = SafetensorsFile::open(&path)?;
    // SAFETY: nobody else knows the file.
    let mapped = unsafe { Tensor::map_safetensors_tensor(&mut file, "large", device)? };
    check(mapped.to_vec::<i32>()? == elements, "a mapped tensor's elements")?;
    std::fs::remove_file(&path)?;
    Ok(())
}

pub fn tests() -> Vec<Test> {
    let variant = || Variant::new(12040);
    vec![
        Test::new("tensor::work_goes_where_it_should", move || {
            children::must_succeed(&variant(), "tensor", &[], &[("SELVEDGE_POOL", "none")]).map(drop)
        }),
        Test::new("tensor::small_operations_are_a_launch", move || {
            children::must_succeed(&variant(), "tensor", &["small".to_owned()], &[]).map(drop)
        }),
    ]
}
