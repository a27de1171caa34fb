//! Bad input is a typed error that names the value found and the value wanted, and nothing is launched: the output stays
//! as it was, and the next good launch works.

use half::f16;
use selvedge::Error;
use selvedge::driver::{Argument, ByValue, Device, DeviceBuffer, Function, LaunchConfig};

use crate::support::{Lab, Need, Outcome, assert_all, assert_error, basic_ptx, device_tests};

device_tests! {
    a_wrong_entry_lists_the_entries, a_wrong_number_of_arguments, a_wrong_size_of_argument, a_wrong_kind_of_argument,
    a_wrong_list_of_arguments, a_block_over_the_limit, a_grid_over_the_limit, an_empty_shape, too_much_shared_memory,
    a_cluster_that_does_not_fit => needs(Need::Capability(9, 0)),
    files_that_are_no_images, images_that_end_too_early, an_image_for_a_newer_isa, an_image_for_a_newer_architecture,
    machine_code_for_another_architecture, a_file_of_another_kind_is_named,
}

const POISON: u32 = 0xABAB_ABAB;

/// An output that no launch may touch, and the kernel that would.
struct Untouched {
    lab: Lab,
    set: Function,
    out: DeviceBuffer<u32>,
}

impl Untouched {
    fn new() -> selvedge::Result<Untouched> {
        let lab = Lab::new()?;
        let set = lab.kernel("slow_set")?;
        let out = lab.stream.upload(&[POISON; 256])?;
        Ok(Untouched { lab, set, out })
    }

    /// Nothing was launched, and a good launch still works.
    fn check(mut self) -> Outcome {
        let stream = &self.lab.stream;
        assert_all(&stream.download(&self.out)?, POISON, "the output of launches that were refused");
        let config = LaunchConfig::new(1, 64);
        // SAFETY: slow_set(unsigned*, unsigned, unsigned, u64) writes 256 elements.
        unsafe { self.set.launch(stream, config, (&mut self.out, 256u32, 1u32, 0u64))? };
        assert_all(&stream.download(&self.out)?, 1, "a good launch after that");
        Ok(())
    }
}

/// A launch that must be refused with this error.
macro_rules! refused {
    ($it:ident, $config:expr, $arguments:expr, $pattern:pat $(if $guard:expr)?) => {{
        // SAFETY: it is refused; were it not, the kernel would write 256 elements or fewer.
        let launched = unsafe { $it.set.launch(&$it.lab.stream, $config, $arguments) };
        assert_error!(launched, $pattern $(if $guard)?);
    }};
}

fn a_wrong_entry_lists_the_entries() -> Outcome {
    let lab = Lab::new()?;
    for wrong in ["slow_sett", "", "slow\0set", "Add"] {
        match lab.kernel(wrong) {
            Err(Error::UnknownName { kind: "kernel", wanted, found }) => {
                assert_eq!(wanted, wrong);
                assert!(found.iter().any(|name| name == "slow_set") && found.len() > 10, "{found:?}");
            }
            other => return Err(format!("{wrong:?}: {other:?}").into()),
        }
    }
    Ok(())
}

fn a_wrong_number_of_arguments() -> Outcome {
    let mut it = Untouched::new()?;
    let config = LaunchConfig::new(1, 64);
    refused!(it, config, (&mut it.out, 256u32, 1u32), Error::ArgumentCount { kernel, wanted: 4, found: 3 } if kernel == "slow_set");
    refused!(it, config, (), Error::ArgumentCount { wanted: 4, found: 0, .. });
    refused!(
        it,
        config,
        (&mut it.out, 256u32, 1u32, 0u64, 0u64),
        Error::ArgumentCount { wanted: 4, found: 5, .. }
    );
    it.check()
}

fn a_wrong_size_of_argument() -> Outcome {
    let mut it = Untouched::new()?;
    let config = LaunchConfig::new(1, 64);
    refused!(it, config, (&mut it.out, 256u64, 1u32, 0u64),
        Error::ArgumentMismatch { kernel, index: 1, wanted, found }
            if kernel == "slow_set" && wanted.contains("4 bytes") && found.contains("8 bytes"));
    refused!(it, config, (&mut it.out, 256u32, 1u8, 0u64), Error::ArgumentMismatch { index: 2, .. });
    refused!(it, config, (7u32, 256u32, 1u32, 0u64), Error::ArgumentMismatch { index: 0, .. });
    refused!(
        it,
        config,
        (&mut it.out, 256u32, 1u32, ByValue([0u32; 3])),
        Error::ArgumentMismatch { index: 3, .. }
    );
    it.check()
}

fn a_wrong_kind_of_argument() -> Outcome {
    let mut it = Untouched::new()?;
    let config = LaunchConfig::new(1, 64);
    refused!(it, config, (&mut it.out, 256.0f32, 1u32, 0u64),
        Error::ArgumentMismatch { index: 1, wanted, found, .. } if wanted.contains("integer") && found.contains("float"));
    refused!(
        it,
        config,
        (&mut it.out, 256u32, ByValue(1u32), 0u64),
        Error::ArgumentMismatch { index: 2, .. }
    );
    refused!(it, config, (&mut it.out, 256u32, 1u32, 0.0f64), Error::ArgumentMismatch { index: 3, .. });
    refused!(it, config, (2.0f64, 256u32, 1u32, 0u64), Error::ArgumentMismatch { index: 0, .. });
    refused!(it, config, (&mut it.out, f16::ONE, 1u32, 0u64), Error::ArgumentMismatch { index: 1, .. });
    // An integer where a float belongs.
    let saxpy = it.lab.kernel("saxpy")?;
    let mut floats = it.lab.stream.zeros::<f32>(4)?;
    let x = it.lab.stream.zeros::<f32>(4)?;
    // SAFETY: as above.
    let launched = unsafe { saxpy.launch(&it.lab.stream, config, (2i32, &x, &mut floats, 4u32)) };
    assert_error!(launched, Error::ArgumentMismatch { index: 0, wanted, .. } if wanted.contains("float"));
    it.check()
}

fn a_wrong_list_of_arguments() -> Outcome {
    let mut it = Untouched::new()?;
    let config = LaunchConfig::new(1, 64);
    for wrong in [
        vec![],
        vec![Argument::raw_address(1)],
        vec![
            Argument::raw_address(1),
            Argument::float(1.0f32),
            Argument::integer(1u32),
            Argument::integer(0u64),
        ],
        vec![
            Argument::raw_address(1),
            Argument::integer(1u32),
            Argument::integer(1u64),
            Argument::integer(0u64),
        ],
        vec![
            Argument::write(&mut it.out),
            Argument::integer(1u32),
            Argument::integer(1u32),
            Argument::by_value([1u32; 2]),
        ],
    ] {
        // SAFETY: it is refused.
        let launched = unsafe { it.set.launch(&it.lab.stream, config, &wrong) };
        match launched {
            Err(Error::ArgumentCount { .. } | Error::ArgumentMismatch { .. }) => {}
            other => return Err(format!("{wrong:?}: {other:?}").into()),
        }
    }
    it.check()
}

fn a_block_over_the_limit() -> Outcome {
    let mut it = Untouched::new()?;
    refused!(it, LaunchConfig::new(1, 2048), (&mut it.out, 256u32, 1u32, 0u64),
        Error::LaunchLimit { what: "threads a block", found: 2048, limit, limit_of } if limit <= 1024 && limit_of.contains("slow_set"));
    refused!(it, LaunchConfig::new(1, (1, 1, 65)), (&mut it.out, 256u32, 1u32, 0u64),
        Error::LaunchLimit { what: "block z", found: 65, limit: 64, limit_of } if limit_of.contains("device"));
    refused!(
        it,
        LaunchConfig::new(1, u32::MAX),
        (&mut it.out, 256u32, 1u32, 0u64),
        Error::LaunchLimit { .. }
    );
    it.check()
}

fn a_grid_over_the_limit() -> Outcome {
    let mut it = Untouched::new()?;
    refused!(
        it,
        LaunchConfig::new((1, 65_536), 32),
        (&mut it.out, 256u32, 1u32, 0u64),
        Error::LaunchLimit { what: "grid y", found: 65_536, limit: 65_535, .. }
    );
    refused!(
        it,
        LaunchConfig::new((1, 1, 70_000), 32),
        (&mut it.out, 256u32, 1u32, 0u64),
        Error::LaunchLimit { what: "grid z", .. }
    );
    refused!(
        it,
        LaunchConfig::new(u32::MAX, 32),
        (&mut it.out, 256u32, 1u32, 0u64),
        Error::LaunchLimit { what: "grid x", .. }
    );
    it.check()
}

fn an_empty_shape() -> Outcome {
    let mut it = Untouched::new()?;
    refused!(it, LaunchConfig::new(0, 32), (&mut it.out, 256u32, 1u32, 0u64), Error::InvalidArgument { found, .. } if found.contains("grid"));
    refused!(it, LaunchConfig::new(1, (32, 0)), (&mut it.out, 256u32, 1u32, 0u64), Error::InvalidArgument { found, .. } if found.contains("block"));
    it.check()
}

fn too_much_shared_memory() -> Outcome {
    let mut it = Untouched::new()?;
    for bytes in [1 << 20, u32::MAX] {
        refused!(it, LaunchConfig::new(1, 32).shared(bytes), (&mut it.out, 256u32, 1u32, 0u64),
            Error::LaunchLimit { what, found, limit, .. } if what.contains("shared") && found == u64::from(bytes) && limit < 1 << 20);
    }
    it.check()
}

fn a_cluster_that_does_not_fit() -> Outcome {
    let mut it = Untouched::new()?;
    for (grid, cluster) in [(6u32, 4u32), (64, 64)] {
        let config = LaunchConfig::new(grid, 32).cluster(cluster);
        // SAFETY: it is refused; were it not, the kernel would write 256 elements.
        let launched = unsafe { it.set.launch(&it.lab.stream, config, (&mut it.out, 256u32, 1u32, 0u64)) };
        assert!(launched.is_err(), "clusters of {cluster} in a grid of {grid}");
    }
    it.check()
}

fn files_that_are_no_images() -> Outcome {
    let device = Device::new(0)?;
    let source = include_bytes!("../data/gpu/basic.cu");
    for (bytes, found) in [
        (&b""[..], "0 bytes"),
        (&[0u8; 100][..], "zero"),
        (&b"\x93NUMPY\x01\x00"[..], "93"),
        (&source[..], "CUDA C++"),
        (&b"PK\x03\x04 an archive"[..], "zip"),
        (&b"hello, world"[..], "hello"),
    ] {
        assert_error!(device.load(bytes), Error::NotAnImage { found: named } if named.contains(found));
    }
    Ok(())
}

const CUBIN: &[u8] = include_bytes!("../data/images/two_cuda12.0_sm80.cubin");
const FATBIN: &[u8] = include_bytes!("../data/images/one_plain.fatbin");
const BLACKWELL: &[u8] = include_bytes!("../data/images/one_cuda12.9_sm120a.cubin");

fn images_that_end_too_early() -> Outcome {
    let device = Device::new(0)?;
    for image in [CUBIN, FATBIN] {
        for length in [image.len() - 1, image.len() / 2, 100, 20] {
            match device.load(&image[..length]) {
                Err(Error::DamagedImage { .. } | Error::NotAnImage { .. }) => {}
                other => return Err(format!("{length} bytes of {}: {other:?}", image.len()).into()),
            }
        }
    }
    // PTX that ends inside a kernel.
    let half = &basic_ptx()[..basic_ptx().len() / 2];
    match device.load(half) {
        Err(Error::DamagedImage { .. } | Error::ImageRejected { .. }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    Ok(())
}

fn edited(from: &str, to: &str) -> String {
    let text = String::from_utf8_lossy(basic_ptx()).replace(from, to);
    assert!(text.contains(to), "{from} is there to be replaced");
    text
}

fn an_image_for_a_newer_isa() -> Outcome {
    let device = Device::new(0)?;
    let image = edited(".version 8.0", ".version 99.0");
    match device.load(image.as_bytes()) {
        Err(Error::UnsupportedImage { found, wanted }) => {
            let (major, minor) = selvedge::driver::driver_isa()?;
            assert!(found.contains("99.0"), "{found}");
            assert!(wanted.contains(&format!("{major}.{minor}")), "{wanted}");
        }
        other => return Err(format!("{other:?}").into()),
    }
    Ok(())
}

fn an_image_for_a_newer_architecture() -> Outcome {
    let device = Device::new(0)?;
    let (major, minor) = device.compute_capability();
    let image = edited(".target sm_60", ".target sm_990");
    match device.load(image.as_bytes()) {
        Err(Error::UnsupportedImage { found, wanted }) => {
            assert!(found.contains("sm_990"), "{found}");
            assert!(wanted.contains(&format!("sm_{major}{minor}")), "{wanted}");
        }
        other => return Err(format!("{other:?}").into()),
    }
    Ok(())
}

fn machine_code_for_another_architecture() -> Outcome {
    let device = Device::new(0)?;
    let (image, target) =
        if device.compute_capability().0 == 8 { (BLACKWELL, "sm_120a") } else { (CUBIN, "sm_80") };
    match device.load(image) {
        Err(Error::UnsupportedImage { found, wanted }) => {
            assert!(found.contains(target), "{found}");
            assert!(wanted.contains("the device is sm_"), "{wanted}");
        }
        other => return Err(format!("{other:?}").into()),
    }
    Ok(())
}

fn a_file_of_another_kind_is_named() -> Outcome {
    let device = Device::new(0)?;
    let program = std::fs::read(std::env::current_exe()?)?;
    assert_error!(device.load(&program), Error::NotAnImage { found } if found.contains("ELF") || found.contains("program"));
    Ok(())
}
