//! Copies between devices, and a kernel of one that reads the memory of another.
//!
//! ```text
//! cargo run --release --example 04-two-devices
//! ```

mod common;

use selvedge::driver::{Device, LaunchConfig};

const ELEMENTS: usize = 1 << 20;

fn two_devices() -> selvedge::Result<()> {
    let devices = Device::list()?;
    for device in &devices {
        let (major, minor) = device.compute_capability();
        let gigabytes = device.total_memory() as f64 / 1e9;
        println!("{device}: compute capability {major}.{minor}, {gigabytes:.0} GB, {}", device.uuid());
    }
    let [here, there, ..] = devices.as_slice() else {
        println!("A second device is needed for the rest.");
        return Ok(());
    };
    let (at_home, abroad) = (here.stream()?, there.stream()?);

    // A copy may run on a stream of either device, after whatever wrote its source.
    let ones = at_home.upload(&vec![1.0f32; ELEMENTS])?;
    let mut copy = abroad.zeros::<f32>(ELEMENTS)?;
    at_home.copy(&ones, &mut copy)?;
    println!("copied to {there}: {}", abroad.download(&copy)?[ELEMENTS - 1]);

    if !here.can_access_peer(there)? {
        println!("{here} cannot read the memory of {there}; copies still work.");
        return Ok(());
    }
    here.enable_peer_access(there)?;
    let saxpy = here.load(include_bytes!("saxpy/saxpy.ptx"))?.function("saxpy")?;
    let mut out = at_home.zeros::<f32>(ELEMENTS)?;
    let config = LaunchConfig::for_elements(ELEMENTS);
    // SAFETY: saxpy(const float *x, const float *y, float *out, float a, unsigned n) stays below n in each buffer.
    unsafe { saxpy.launch(&at_home, config, (&copy, &ones, &mut out, 2.0f32, ELEMENTS as u32))? };
    println!("2 x 1 (read from {there}) + 1 = {}", at_home.download(&out)?[0]);
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(two_devices)
}
