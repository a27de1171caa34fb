//! Images load from PTX and machine code, say what they hold, and stay loaded as long as anything of them is in use.

use selvedge::Error;
use selvedge::driver::image::ImageKind;
use selvedge::driver::{Device, LaunchConfig, ModuleOptions};

use crate::support::{Lab, Outcome, SLOW, assert_all, assert_error, assert_open, basic_ptx, device_tests};

device_tests! {
    kernels_are_listed, text_with_and_without_its_zero, an_old_isa_loads, options_reach_the_assembler, attributes_of_kernels_are_returned,
    a_function_keeps_its_module, a_module_dropped_while_it_runs_runs_on, loading_beside_a_running_kernel,
    a_refused_image_comes_with_the_log, many_modules, occupancy_is_returned, a_wrong_global_name_lists_what_there_is,
}

/// A vector addition by hand, in the ISA of CUDA 11.0.
const OLD_PTX: &str = ".version 7.0
.target sm_52
.address_size 64
.visible .entry add_old(.param .u64 left, .param .u64 right, .param .u64 out, .param .u32 length)
{
    .reg .pred %done;
    .reg .u32 %index, %block, %threads, %length;
    .reg .u64 %left, %right, %out, %offset;
    .reg .f32 %a, %b;
    mov.u32 %index, %tid.x;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mad.lo.u32 %index, %block, %threads, %index;
    ld.param.u32 %length, [length];
    setp.ge.u32 %done, %index, %length;
    @%done ret;
    ld.param.u64 %left, [left];
    ld.param.u64 %right, [right];
    ld.param.u64 %out, [out];
    cvta.to.global.u64 %left, %left;
    cvta.to.global.u64 %right, %right;
    cvta.to.global.u64 %out, %out;
    mul.wide.u32 %offset, %index, 4;
    add.u64 %left, %left, %offset;
    add.u64 %right, %right, %offset;
    add.u64 %out, %out, %offset;
    ld.global.f32 %a, [%left];
    ld.global.f32 %b, [%right];
    add.rn.f32 %a, %a, %b;
    st.global.f32 [%out], %a;
    ret;
}
";

fn kernels_are_listed() -> Outcome {
    let lab = Lab::new()?;
    let names = lab.module.function_names()?;
    for name in ["add", "slow_set", "meet", "every_kind"] {
        assert!(names.iter().any(|listed| listed == name), "{name} is not in {names:?}");
    }
    assert_eq!(lab.module.info().kind, ImageKind::Ptx);
    assert_eq!(lab.module.device(), lab.device);
    let add = lab.kernel("add")?;
    assert_eq!((add.name(), add.parameters().map(<[_]>::len)), ("add", Some(4)));
    Ok(())
}

fn text_with_and_without_its_zero() -> Outcome {
    let device = Device::new(0)?;
    let mut image = basic_ptx().to_vec();
    device.load(&image)?.function("add")?;
    image.push(0);
    device.load(&image)?.function("add")?;
    Ok(())
}

fn an_old_isa_loads() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let add = device.load(OLD_PTX.as_bytes())?.function("add_old")?;
    let (left, right) = (stream.upload(&[1.5f32; 777])?, stream.upload(&[2.0f32; 777])?);
    let mut out = stream.zeros::<f32>(777)?;
    // SAFETY: add_old takes three arrays of 777 floats and their length.
    unsafe { add.launch(&stream, LaunchConfig::for_elements(777), (&left, &right, &mut out, 777u32))? };
    assert_all(&stream.download(&out)?, 3.5, "the sum");
    Ok(())
}

fn options_reach_the_assembler() -> Outcome {
    let device = Device::new(0)?;
    let plain = device.load(basic_ptx())?.function("many")?.attributes()?;
    // 24 is the least that functions can be called with.
    let few = ModuleOptions { max_registers: Some(24), ..ModuleOptions::default() };
    let limited = device.load_with(basic_ptx(), &few)?.function("many")?.attributes()?;
    assert!(limited.registers <= 24 && limited.registers <= plain.registers, "{plain:?} {limited:?}");
    for options in [
        ModuleOptions { optimization_level: Some(0), ..ModuleOptions::default() },
        ModuleOptions { line_info: true, ..ModuleOptions::default() },
        ModuleOptions { debug: true, optimization_level: Some(0), ..ModuleOptions::default() },
    ] {
        let module = device.load_with(OLD_PTX.as_bytes(), &options)?;
        let _ = module.log();
        module.function("add_old")?;
    }
    Ok(())
}

fn attributes_of_kernels_are_returned() -> Outcome {
    let lab = Lab::new()?;
    let (major, minor) = lab.device.compute_capability();
    let attributes = lab.kernel("turn_around_beside_static")?.attributes()?;
    assert_eq!(attributes.shared_bytes, 4096);
    assert!(attributes.registers > 0 && attributes.max_threads_per_block >= 256, "{attributes:?}");
    assert_eq!(attributes.ptx_version, (6, 0), "the virtual architecture of the PTX");
    assert_eq!(attributes.binary_version, (major as u32, minor as u32));
    Ok(())
}

fn a_function_keeps_its_module() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let set = {
        let module = device.load(basic_ptx())?;
        module.function("slow_set")?
    };
    let again = set.clone();
    drop(set);
    let mut out = stream.zeros::<u32>(100)?;
    // SAFETY: slow_set(unsigned*, unsigned, unsigned, u64) writes 100 elements.
    unsafe { again.launch(&stream, LaunchConfig::new(1, 32), (&mut out, 100u32, 4u32, 0u64))? };
    assert_all(&stream.download(&out)?, 4, "the buffer");
    assert!(again.module().function("add").is_ok());
    Ok(())
}

fn a_module_dropped_while_it_runs_runs_on() -> Outcome {
    let lab = Lab::new()?;
    let mut out = lab.stream.zeros::<u32>(1000)?;
    let other = lab.device.load(basic_ptx())?;
    let set = other.function("slow_set")?;
    // SAFETY: as above.
    unsafe { set.launch(&lab.stream, LaunchConfig::new(1, 32), (&mut out, 1000u32, 0u32, 0u64))? };
    lab.stream.synchronize()?;
    // SAFETY: as above.
    unsafe { set.launch(&lab.stream, LaunchConfig::new(1, 32), (&mut out, 1000u32, 6u32, SLOW))? };
    drop((other, set));
    assert_open(!lab.stream.is_idle()?, "the drop");
    assert_all(&lab.stream.download(&out)?, 6, "the buffer");
    lab.device.trim()?;
    Ok(())
}

fn loading_beside_a_running_kernel() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(100)?;
    lab.set(&lab.stream, values.slice_mut(..)?, 5, SLOW)?;
    // It may wait for the kernel, but it comes to an end and both are right.
    let other = Lab::on(lab.device)?;
    other.increment(&other.stream, values.slice_mut(..)?, 0)?;
    assert_all(&lab.stream.download(&values)?, 6, "the buffer");
    Ok(())
}

fn a_refused_image_comes_with_the_log() -> Outcome {
    let device = Device::new(0)?;
    let broken = OLD_PTX.replace("add.rn.f32 %a, %a, %b;", "add.rn.f32 %a, %a, %undeclared;");
    match device.load(broken.as_bytes()) {
        Err(Error::ImageRejected { log, call, .. }) => {
            assert!(log.contains("undeclared"), "the log names the error: {log}");
            assert_eq!(call, "cuModuleLoadDataEx");
        }
        other => return Err(format!("{other:?}").into()),
    }
    Ok(())
}

fn many_modules() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let mut out = stream.zeros::<u32>(64)?;
    for round in 0..40u32 {
        let module = device.load(basic_ptx())?;
        let increment = module.function("slow_increment")?;
        // SAFETY: slow_increment(unsigned*, unsigned, u64) touches 64 elements.
        unsafe { increment.launch(&stream, LaunchConfig::new(1, 64), (&mut out, 64u32, 100_000u64))? };
        if round % 2 == 0 {
            drop((module, increment));
        }
    }
    assert_all(&stream.download(&out)?, 40, "the buffer");
    Ok(())
}

fn occupancy_is_returned() -> Outcome {
    let lab = Lab::new()?;
    let add = lab.kernel("add")?;
    let (small, large) = (add.occupancy(32, 0)?, add.occupancy(1024, 0)?);
    assert!(small >= large && large >= 1, "{small} {large}");
    let (grid, block) = add.suggested_block_size(0)?;
    assert!(grid > 0 && block > 0 && block % 32 == 0 && block <= 1024, "{grid} {block}");
    let shared = lab.kernel("turn_around")?;
    assert!(shared.occupancy(128, 40_000)? < shared.occupancy(128, 0)?);
    assert_error!(shared.occupancy(128, 1 << 20), Error::LaunchLimit { .. });
    Ok(())
}

fn a_wrong_global_name_lists_what_there_is() -> Outcome {
    let device = Device::new(0)?;
    let module = device.load(include_bytes!("../data/gpu/globals.ptx"))?;
    match module.global::<u32>("countr") {
        Err(Error::UnknownName { kind: "global", wanted, found }) => {
            assert_eq!(wanted, "countr");
            assert!(found.iter().any(|name| name == "counter"), "{found:?}");
        }
        other => return Err(format!("{other:?}").into()),
    }
    Ok(())
}
