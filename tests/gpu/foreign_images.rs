//! Images that this project did not make run as they are, with their own calling habits: nvcc's mangled names, variables
//! and structs with pointers inside, Triton's hidden scratch parameters and required blocks, Numba's flattened arrays.
//!
//! Each image comes with a description of one launch and its result; `scripts/make_foreign_images.py` says what stands in
//! it and makes both. The committed ones are inside the executable; `SELVEDGE_TEST_FOREIGN` names a folder of more.

mod description;

use std::borrow::Cow;

use selvedge::Error;
use selvedge::driver::{Device, LaunchConfig, driver_isa, driver_version};

use crate::support::{Need, Outcome, assert_error, device_tests};
use description::Description;

device_tests! {
    images_of_nvcc, images_of_triton, images_of_numba, images_of_cupy,
    images_in_a_folder => needs(Need::Variable("SELVEDGE_TEST_FOREIGN")),
    kernels_of_a_compressed_fatbin_are_listed, hidden_parameters_are_counted, a_required_block_is_required,
}

macro_rules! files {
    ($($name:literal)*) => {
        &[$(($name, include_bytes!(concat!("../data/gpu/foreign/", $name)))),*]
    };
}

const COMMITTED: &[(&str, &[u8])] = files! {
    "nvcc_add_arrays.txt" "nvcc_halve.txt" "nvcc_weigh_f32.txt" "nvcc_weigh_f64.txt" "nvcc.ptx" "nvcc_sm80.cubin"
    "nvcc_sm90.cubin" "nvcc_plain.fatbin" "nvcc_compressed.fatbin" "nvcc_fast.fatbin"
    "triton_add.txt" "triton_add.ptx" "triton_add.cubin" "triton_row_sums.txt" "triton_row_sums.ptx"
    "triton_row_sums.cubin" "triton_product.txt" "triton_product.ptx" "triton_product.cubin"
    "numba_axpy.txt" "numba_axpy.ptx" "cupy_multiply.txt" "cupy_multiply.ptx"
};

fn committed(name: &str) -> Result<Cow<'static, [u8]>, String> {
    let file = COMMITTED.iter().find(|(known, _)| *known == name);
    file.map(|(_, bytes)| Cow::from(*bytes)).ok_or_else(|| format!("{name} is not committed"))
}

fn committed_of(tool: &str) -> Outcome {
    let device = Device::new(0)?;
    for (name, text) in COMMITTED.iter().filter(|(name, _)| name.starts_with(tool) && name.ends_with(".txt"))
    {
        let description =
            Description::parse(std::str::from_utf8(text)?).map_err(|error| format!("{name}: {error}"))?;
        description.run(device, committed).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn images_of_nvcc() -> Outcome {
    committed_of("nvcc")
}

fn images_of_triton() -> Outcome {
    committed_of("triton")
}

fn images_of_numba() -> Outcome {
    committed_of("numba")
}

fn images_of_cupy() -> Outcome {
    committed_of("cupy")
}

fn images_in_a_folder() -> Outcome {
    let device = Device::new(0)?;
    let folder = std::path::PathBuf::from(std::env::var("SELVEDGE_TEST_FOREIGN")?);
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map(Cow::from).map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut names: Vec<String> = std::fs::read_dir(&folder)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".txt"))
        .collect();
    names.sort();
    let mut ran = 0;
    for name in &names {
        let text = String::from_utf8(read(name)?.into_owned())?;
        let description = Description::parse(&text).map_err(|error| format!("{name}: {error}"))?;
        ran += description.run(device, read).map_err(|error| format!("{name}: {error}"))?;
    }
    if ran == 0 {
        return Err(format!("{} holds nothing that runs here: {names:?}", folder.display()).into());
    }
    Ok(())
}

fn kernels_of_a_compressed_fatbin_are_listed() -> Outcome {
    // Only the driver can look inside, from CUDA 12.4 on.
    if driver_version()? < (12, 4) || driver_isa()? < (9, 0) {
        return Ok(());
    }
    let module = Device::new(0)?.load(&committed("nvcc_compressed.fatbin")?)?;
    let mut names = module.function_names()?;
    names.sort();
    let wanted = [
        "_Z10add_arrays5ArrayIKiES1_S_IiE",
        "_ZN6shapes5weighIdEEvPKT_PS1_i",
        "_ZN6shapes5weighIfEEvPKT_PS1_i",
        "halve",
    ];
    assert_eq!(names, wanted);
    assert_error!(module.function("weigh"), Error::UnknownName { found, .. } if found.len() == 4);
    assert_eq!(module.function("halve")?.parameters().map(<[_]>::len), Some(5), "the driver tells");
    Ok(())
}

fn hidden_parameters_are_counted() -> Outcome {
    let device = Device::new(0)?;
    if device.compute_capability() != (9, 0) {
        return Ok(());
    }
    let stream = device.stream()?;
    for image in ["triton_add.ptx", "triton_add.cubin"] {
        let add = device.load(&committed(image)?)?.function("add_kernel")?;
        let values = stream.upload(&[1.0f32; 128])?;
        let mut out = stream.zeros::<f32>(128)?;
        // SAFETY: it is refused.
        let launched =
            unsafe { add.launch(&stream, LaunchConfig::new(1, 128), (&values, &values, &mut out, 128i32)) };
        assert_error!(launched, Error::ArgumentCount { wanted: 6, found: 4, .. });
    }
    Ok(())
}

fn a_required_block_is_required() -> Outcome {
    let device = Device::new(0)?;
    if device.compute_capability() != (9, 0) {
        return Ok(());
    }
    let stream = device.stream()?;
    let add = device.load(&committed("triton_add.cubin")?)?.function("add_kernel")?;
    let values = stream.upload(&[1.0f32; 256])?;
    let mut out = stream.zeros::<f32>(256)?;
    let scratch = selvedge::driver::RawAddress(0);
    for (threads, fits) in [(64u32, false), (128, true)] {
        let arguments = (&values, &values, &mut out, 256i32, scratch, scratch);
        // SAFETY: add_kernel touches 256 elements of each and no scratch memory; the wrong block is refused.
        let launched = unsafe { add.launch(&stream, LaunchConfig::new(1, threads), arguments) };
        assert_eq!(launched.is_ok(), fits, "{threads} threads: {launched:?}");
        let wanted = if fits { 2.0 } else { 0.0 };
        crate::support::assert_all(&stream.download(&out)?, wanted, "the sum");
    }
    Ok(())
}
