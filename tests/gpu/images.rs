//! The embedded images load on this device. The kernels' results are checked by the modules of their operations (gemm,
//! tensor).

use selvedge::driver::Device;
use selvedge::driver::image::ImageKind;
use selvedge::images;

use crate::support::{Need, Outcome, assert_all, device_tests};

device_tests! {
    every_family_loads => needs(Need::Isa(8, 0)),
    a_family_is_loaded_once => needs(Need::Isa(8, 0)),
    older_images_load => in_child(&[("SELVEDGE_ARCH", "sm_60")]) => needs(Need::Isa(8, 0)),
    ptx_loads => in_child(&[("SELVEDGE_IMAGE", "ptx")]) => needs(Need::Isa(8, 0)),
}

fn every_family_loads() -> Outcome {
    let device = Device::new(0)?;
    for family in images::families() {
        // A family may have no image for this card: the older one that SELVEDGE_ARCH asks for, or any but a 9.0 where the
        // image is for 9.0 alone. Kernels of 9.0 alone have no PTX.
        let is_old = std::env::var_os("SELVEDGE_ARCH").is_some();
        let is_text = std::env::var_os("SELVEDGE_IMAGE").is_some();
        let own = || images::all().iter().filter(|image| image.family() == family);
        let targets = || own().map(|image| image.target());
        let everywhere = targets().any(|target| target.is_ok_and(|target| target.to_string() == "sm_60"));
        let alone = targets().all(|target| target.is_ok_and(|target| target.to_string().ends_with('a')));
        if !everywhere && (is_old || alone && device.compute_capability() != (9, 0)) {
            continue;
        }
        if is_text && own().all(|image| image.kind() != ImageKind::Ptx) {
            assert!(images::load(&device, family).is_err(), "{family} has no PTX");
            continue;
        }
        let module = images::load(&device, family)?;
        let names = module.function_names()?;
        assert!(!names.is_empty(), "{family}");
        for name in names {
            let function = module.function(&name)?;
            assert!(function.parameters().is_some_and(|parameters| !parameters.is_empty()), "{name}");
            assert!(function.attributes()?.max_threads_per_block >= 64, "{name}");
        }
    }
    Ok(())
}

fn a_family_is_loaded_once() -> Outcome {
    let device = Device::new(0)?;
    let addresses: Vec<u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(|| images::load(&device, "gather_32"))).collect();
        let modules = workers.into_iter().map(|worker| worker.join().expect("no thread panics"));
        modules.map(|module| Ok(std::ptr::from_ref(module?.info()) as u64)).collect::<selvedge::Result<_>>()
    })?;
    assert_all(&addresses, addresses[0], "one module");
    assert!(images::load(&device, "no such family").is_err());
    Ok(())
}

fn older_images_load() -> Outcome {
    every_family_loads()
}

fn ptx_loads() -> Outcome {
    every_family_loads()
}
