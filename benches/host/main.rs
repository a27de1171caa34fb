//! The library's cost on the host alone; needs no GPU. It needs a C compiler, as the tests do: small operations are
//! timed on a driver that does nothing (csrc/bench/idle_driver.c), which is compiled here. With the feature `capi`, calls of
//! the C ABI are measured, too.

#[cfg(feature = "capi")]
mod c_calls;
#[path = "../harness/c_source.rs"]
mod c_source;
mod idle_driver;
mod images;
mod operations;

use std::time::Duration;

use criterion::Criterion;

#[global_allocator]
static ALLOCATOR: operations::CountingAllocator = operations::CountingAllocator;

fn main() {
    // Before anything else is loaded or started.
    let driver = idle_driver::load();
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    images::read(&mut criterion);
    images::arguments(&mut criterion);
    let mut failed = false;
    let mut report = |name: &str, measured: Result<(), Box<dyn std::error::Error>>| {
        if let Err(error) = measured {
            eprintln!("{name} were not measured: {error}");
            failed = true;
        }
    };
    let measured = driver.map_err(Into::into).and_then(|driver| operations::measure(&driver, &mut criterion));
    report("small operations", measured);
    // The CPU part needs no driver.
    #[cfg(feature = "capi")]
    report("C calls", c_calls::measure(&mut criterion));
    if failed {
        std::process::exit(1);
    }
    criterion.final_summary();
}
