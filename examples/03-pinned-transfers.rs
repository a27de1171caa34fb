//! Copies that run beside other work: page-locked memory is given to the copy and comes back from it.
//!
//! A copy from an ordinary slice is done when the call returns, so nothing can be wrong with it, but the host waits. An
//! asynchronous one takes a `PinnedBuffer` by value: while the device reads it, the program cannot touch it.
//!
//! ```text
//! cargo run --release --example 03-pinned-transfers
//! ```

mod common;

use std::time::Instant;

use selvedge::driver::Device;

const ELEMENTS: usize = 1 << 26;

fn pinned_transfers() -> selvedge::Result<()> {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let gigabytes = (ELEMENTS * size_of::<f32>()) as f64 / 1e9;
    let mut buffer = stream.zeros::<f32>(ELEMENTS)?;

    let plain: Vec<f32> = (0..ELEMENTS).map(|index| index as f32).collect();
    let begin = Instant::now();
    stream.copy_from_host(&plain, &mut buffer)?;
    println!("from an ordinary slice: {:.1} GB/s", gigabytes / begin.elapsed().as_secs_f64());

    let mut pinned = device.pinned::<f32>(ELEMENTS)?;
    pinned.copy_from_slice(&plain);
    let begin = Instant::now();
    let transfer = stream.upload_async(pinned, &mut buffer)?;
    let mut counted = 0u64;
    while !transfer.is_complete()? {
        // The host is free meanwhile.
        counted += 1;
    }
    let pinned = transfer.wait()?;
    println!(
        "from pinned memory: {:.1} GB/s, and the host looked {counted} times whether it was done",
        gigabytes / begin.elapsed().as_secs_f64()
    );

    let pinned = stream.download_async(&buffer, pinned)?.wait()?;
    assert!(pinned.iter().eq(&plain));
    println!("the same {ELEMENTS} elements came back");

    // A vector of your own can be locked where it is, and given back.
    let registered = device.register(plain)?;
    let plain = stream.upload_async(registered, &mut buffer)?.wait()?.into_vec()?;
    println!("a locked vector was copied too and is ordinary again, {} elements", plain.len());
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(pinned_transfers)
}
