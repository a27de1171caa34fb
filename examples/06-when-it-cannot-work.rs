//! Mistakes are errors that name what was found and what was wanted, and nothing is launched.
//!
//! ```text
//! cargo run --example 06-when-it-cannot-work
//! ```

mod common;

use selvedge::driver::{Device, LaunchConfig};

fn mistakes() -> selvedge::Result<()> {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let module = device.load(include_bytes!("saxpy/saxpy.ptx"))?;
    let saxpy = module.function("saxpy")?;
    let x = stream.upload(&[1.0f32; 100])?;
    let mut out = stream.zeros::<f32>(100)?;
    let fits = LaunchConfig::for_elements(100);

    show("a name that is not there", module.function("saxpi"));
    show("a file that is no image", device.load(b"\x7fELF but not of a GPU"));
    show("PTX of the future", device.load(b".version 99.0\n.target sm_60\n.address_size 64\n"));
    // SAFETY: none of these is launched.
    unsafe {
        show("too few arguments", saxpy.launch(&stream, fits, (&x, &x, &mut out)));
        show(
            "f64 where the kernel takes f32",
            saxpy.launch(&stream, fits, (&x, &x, &mut out, 2.0f64, 100u32)),
        );
        show("an integer for a float", saxpy.launch(&stream, fits, (&x, &x, &mut out, 2i32, 100u32)));
        let block_too_large = LaunchConfig::new(1, 2048);
        show("too many threads", saxpy.launch(&stream, block_too_large, (&x, &x, &mut out, 2.0f32, 100u32)));
        let shared = fits.shared(1 << 30);
        show("too much shared memory", saxpy.launch(&stream, shared, (&x, &x, &mut out, 2.0f32, 100u32)));
    }
    show("a part past the end", x.slice(50..101));
    show("lengths that differ", stream.copy_from_host(&[0.0; 99], &mut out));
    show("no such device", Device::new(1000));
    Ok(())
}

fn show<T>(what: &str, result: selvedge::Result<T>) {
    match result {
        Ok(_) => println!("{what}: this worked, and should not have"),
        Err(error) => println!("{what}:\n    {error}"),
    }
}

fn main() -> std::process::ExitCode {
    common::run(mistakes)
}
