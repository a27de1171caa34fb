//! Variables of a module are read and written in order with its kernels.

use selvedge::Error;
use selvedge::driver::{Device, LaunchConfig, Module};

use crate::support::{Outcome, SLOW, assert_error, device_tests};

device_tests! {
    variables_begin_as_declared, kernels_see_what_was_written, reads_wait_for_kernels, writes_wait_for_kernels,
    each_load_has_its_own, wrong_types_and_lengths_are_errors, a_global_keeps_its_module,
}

fn module() -> selvedge::Result<Module> {
    Device::new(0)?.load(include_bytes!("../data/gpu/globals.ptx"))
}

fn variables_begin_as_declared() -> Outcome {
    let module = module()?;
    let stream = module.device().stream()?;
    assert_eq!(module.global::<u32>("counter")?.read(&stream)?, [5]);
    assert_eq!(module.global::<f32>("table")?.read(&stream)?, [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(module.global::<f64>("factor")?.read(&stream)?, [2.0]);
    let table = module.global::<f32>("table")?;
    assert!(table.len() == 4 && !table.is_empty() && table.address() != 0);
    Ok(())
}

fn kernels_see_what_was_written() -> Outcome {
    let module = module()?;
    let stream = module.device().stream()?;
    let kernel = module.function("scale_table")?;
    module.global::<f32>("table")?.write(&stream, &[10.0, 20.0, 30.0, 40.0])?;
    module.global::<f64>("factor")?.write(&stream, &[0.5])?;
    let mut out = stream.zeros::<f64>(4)?;
    // SAFETY: scale_table(double*) writes four elements.
    unsafe { kernel.launch(&stream, LaunchConfig::new(1, 32), (&mut out,))? };
    assert_eq!(stream.download(&out)?, [5.0, 10.0, 15.0, 20.0]);
    Ok(())
}

fn reads_wait_for_kernels() -> Outcome {
    let module = module()?;
    let (first, second) = (module.device().stream()?, module.device().stream()?);
    let (count, counter) = (module.function("slow_count")?, module.global::<u32>("counter")?);
    for round in 0..3 {
        // SAFETY: slow_count(u64) touches the module's counter alone.
        unsafe { count.launch(&first, LaunchConfig::new(1, 1), (SLOW,))? };
        assert_eq!(counter.read(&second)?, [6 + round]);
    }
    Ok(())
}

fn writes_wait_for_kernels() -> Outcome {
    let module = module()?;
    let (first, second) = (module.device().stream()?, module.device().stream()?);
    let (count, counter) = (module.function("slow_count")?, module.global::<u32>("counter")?);
    // SAFETY: as above.
    unsafe { count.launch(&first, LaunchConfig::new(1, 1), (SLOW,))? };
    counter.write(&second, &[100])?;
    assert_eq!(counter.read(&first)?, [100], "the kernel came first");
    // SAFETY: as above.
    unsafe { count.launch(&first, LaunchConfig::new(1, 1), (0u64,))? };
    assert_eq!(counter.read(&second)?, [101]);
    Ok(())
}

fn each_load_has_its_own() -> Outcome {
    let (first, second) = (module()?, module()?);
    let stream = first.device().stream()?;
    first.global::<u32>("counter")?.write(&stream, &[77])?;
    assert_eq!(second.global::<u32>("counter")?.read(&stream)?, [5]);
    Ok(())
}

fn wrong_types_and_lengths_are_errors() -> Outcome {
    let module = module()?;
    let stream = module.device().stream()?;
    assert_error!(module.global::<f64>("counter"), Error::InvalidArgument { found, .. } if found.contains("4 bytes"));
    let table = module.global::<f32>("table")?;
    assert_error!(table.write(&stream, &[1.0]), Error::LengthMismatch { wanted: 4, found: 1, .. });
    assert_eq!(table.read(&stream)?, [1.0, 2.0, 3.0, 4.0]);
    Ok(())
}

fn a_global_keeps_its_module() -> Outcome {
    let counter = module()?.global::<u32>("counter")?;
    let stream = Device::new(0)?.stream()?;
    counter.write(&stream, &[3])?;
    assert_eq!(counter.read(&stream)?, [3]);
    Ok(())
}
