//! The device suite: what the crate promises on a real GPU, one promise a module.
//!
//! `cargo test --features gpu --test gpu` runs it. Without a device it prints one line that says why and exits 1 before any
//! test. The executable needs no cargo, compiler or source file at run time, so it can be copied to a machine that has only
//! a driver and run there; all images are inside it.
//!
//! Tests of modules that compare bits and measure nothing (`BESIDE_OTHERS`) run at the same time. The others run alone: several
//! measure that work on the device overlaps or does not, or count its memory. `--test-threads 1` makes all run alone. Those
//! that lose a context or set `SELVEDGE_*` run in a process of their own, which is this executable again
//! with a hidden argument.
//!
//! | run | command |
//! |---|---|
//! | all | `gpu` |
//! | driver alone | `SELVEDGE_LIBNVRTC=none SELVEDGE_LIBCUBLAS=none SELVEDGE_LIBNCCL=none gpu` |
//! | images of other tools | `SELVEDGE_TEST_FOREIGN=folder gpu foreign_images`; see `foreign_images.rs` for the folder |
//! | to find a test that hangs | `SELVEDGE_TEST_TRACE=1 gpu` prints each test that begins |
//! | for ten minutes | `SELVEDGE_SOAK_SECONDS=600 gpu soak` |
//! | memcheck | `SELVEDGE_POOL=none compute-sanitizer --report-api-errors no gpu --skip faults` |
//! | initcheck | `SELVEDGE_POOL=none compute-sanitizer --tool initcheck --report-api-errors no gpu --skip faults` |
//! | the checker can fail | `SELVEDGE_POOL=none compute-sanitizer gpu --ignored seeded_out_of_bounds` must report an error |
//!
//! `--skip faults`: those kernels do what a checker reports. API errors are not reported because tests of bad input
//! provoke them. No other test reads device memory that nothing has written.

mod support;

mod arguments;
mod attributes;
mod bad_input;
mod boxes_and_lists;
mod burst;
mod contexts;
mod copies;
mod custom;
mod devices;
mod drops;
mod faults;
mod foreign_images;
mod fuse;
mod gemm;
mod globals;
mod graph_memory;
mod graphs;
mod headers;
mod host_callback;
mod images;
mod launcher;
mod launches;
mod libraries;
mod linking;
mod matmul;
mod memory;
mod modules;
mod moving;
mod ordering;
mod peer;
mod pinned;
mod pool;
mod pool_modes;
mod random;
mod reduce;
mod resets;
mod sanitizer;
mod soak;
mod streams_events;
mod tensor;
mod tensor_map;
mod threads;
mod timeouts;

use std::num::NonZero;
use std::process::ExitCode;

use selvedge::driver::Device;

use support::Promise;

fn promises() -> Vec<Promise> {
    [
        devices::promises(),
        contexts::promises(),
        streams_events::promises(),
        memory::promises(),
        copies::promises(),
        boxes_and_lists::promises(),
        pinned::promises(),
        peer::promises(),
        modules::promises(),
        linking::promises(),
        launches::promises(),
        arguments::promises(),
        attributes::promises(),
        tensor_map::promises(),
        globals::promises(),
        host_callback::promises(),
        ordering::promises(),
        drops::promises(),
        graphs::promises(),
        graph_memory::promises(),
        pool::promises(),
        pool_modes::promises(),
        images::promises(),
        fuse::promises(),
        moving::promises(),
        tensor::promises(),
        custom::promises(),
        reduce::promises(),
        random::promises(),
        foreign_images::promises(),
        gemm::promises(),
        matmul::promises(),
        launcher::promises(),
        headers::promises(),
        bad_input::promises(),
        faults::promises(),
        timeouts::promises(),
        resets::promises(),
        libraries::promises(),
        burst::promises(),
        threads::promises(),
        soak::promises(),
        sanitizer::promises(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Modules whose tests run at the same time, but for those that are `alone`.
const BESIDE_OTHERS: &[&str] = &["fuse", "tensor", "reduce", "random"];
/// Tests at a time: a device has one queue of launches for all of them.
const MOST_THREADS: usize = 8;

fn main() -> ExitCode {
    let mut promises = promises();
    for promise in &mut promises {
        let module = promise.name.split("::").next().unwrap_or_default();
        promise.alone |= !BESIDE_OTHERS.contains(&module);
    }
    // Those that run at the same time come first.
    promises.sort_by_key(|promise| promise.alone);
    if let Some(code) = support::child::run_if_asked(&promises) {
        return code;
    }
    if let Err(error) = Device::new(0) {
        let line: Vec<String> = error.to_string().lines().map(|line| line.trim().to_owned()).collect();
        eprintln!("no device to test on: {}", line.join(" | "));
        return ExitCode::FAILURE;
    }
    let mut arguments = libtest_mimic::Arguments::from_args();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    arguments.test_threads.get_or_insert(threads);
    let trials = promises.into_iter().map(Promise::into_trial).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        support::print_slowest();
    }
    conclusion.exit_code()
}
