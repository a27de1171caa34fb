//! The device suite: the crate's guarantees on a real GPU, one guarantee a module.
//!
//! `cargo test --features gpu --test gpu` runs it. Without a device it prints one line that says why and exits 1 before any
//! test. The executable needs no cargo, compiler or source file at run time, so it can be copied to a machine that has only
//! a driver and run there; all images are inside it.
//!
//! Tests of modules that compare bits and measure nothing (`BESIDE_OTHERS`) run at the same time. The others run alone: several
//! measure that work on the device overlaps or does not, or count its memory. `--test-threads 1` makes all run alone.
//! Tests that lose a context or set `SELVEDGE_*` run in a process of their own, which is this executable again with a
//! hidden argument.
//!
//! The driver assembles one kernel after another in a process, so on an empty cache of kernels the suite takes long in one
//! process. `scripts/device_suite.sh gpu` runs the modules of `BESIDE_OTHERS` in processes beside each other, then the rest.
//!
//! | run | command |
//! |---|---|
//! | all | `gpu` |
//! | driver alone | `SELVEDGE_LIBNVRTC=none SELVEDGE_LIBCUBLAS=none SELVEDGE_LIBNCCL=none SELVEDGE_LIBCUPTI=none gpu` |
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

mod accumulation;
mod arguments;
mod attention;
#[allow(dead_code, reason = "the definition is compared on the CPU")]
#[path = "../cases/attention.rs"]
mod attention_cases;
mod attributes;
mod bad_input;
mod boxes_and_lists;
mod burst;
mod catalogue;
mod classifier;
mod collective;
mod compute;
mod contexts;
mod copies;
mod custom;
#[path = "../cases/decode.rs"]
mod decode_cases;
mod devices;
mod drops;
mod faults;
#[path = "../cases/few_rows.rs"]
mod few_rows_cases;
mod foreign_images;
mod fuse;
mod gemm;
mod globals;
mod gradient_values;
mod gradients;
mod graph_memory;
mod graphs;
mod headers;
mod host_callback;
mod images;
mod launcher;
mod launches;
mod libraries;
mod linking;
mod losses;
mod matmul;
mod memory;
mod modules;
mod moving;
mod nn;
mod optimizers;
mod ordering;
mod peer;
mod pinned;
mod pool;
mod pool_modes;
mod random;
mod reduce;
mod resets;
mod rows;
mod sanitizer;
mod soak;
mod sorting;
mod srt;
mod steps;
mod streams_events;
mod tensor;
mod tensor_map;
mod threads;
mod timeouts;
mod values;

use std::num::NonZero;
use std::process::ExitCode;

use selvedge::driver::Device;

use support::DeviceTest;

fn device_tests() -> Vec<DeviceTest> {
    [
        devices::device_tests(),
        contexts::device_tests(),
        streams_events::device_tests(),
        memory::device_tests(),
        copies::device_tests(),
        boxes_and_lists::device_tests(),
        pinned::device_tests(),
        peer::device_tests(),
        modules::device_tests(),
        linking::device_tests(),
        launches::device_tests(),
        arguments::device_tests(),
        attributes::device_tests(),
        tensor_map::device_tests(),
        globals::device_tests(),
        host_callback::device_tests(),
        ordering::device_tests(),
        drops::device_tests(),
        graphs::device_tests(),
        graph_memory::device_tests(),
        pool::device_tests(),
        pool_modes::device_tests(),
        images::device_tests(),
        fuse::device_tests(),
        moving::device_tests(),
        tensor::device_tests(),
        values::device_tests(),
        custom::device_tests(),
        reduce::device_tests(),
        random::device_tests(),
        rows::device_tests(),
        accumulation::device_tests(),
        sorting::device_tests(),
        catalogue::device_tests(),
        losses::device_tests(),
        nn::device_tests(),
        gradients::device_tests(),
        attention::device_tests(),
        gradient_values::device_tests(),
        optimizers::device_tests(),
        steps::device_tests(),
        classifier::device_tests(),
        collective::device_tests(),
        foreign_images::device_tests(),
        gemm::device_tests(),
        matmul::device_tests(),
        launcher::device_tests(),
        compute::device_tests(),
        headers::device_tests(),
        bad_input::device_tests(),
        faults::device_tests(),
        timeouts::device_tests(),
        resets::device_tests(),
        libraries::device_tests(),
        burst::device_tests(),
        srt::device_tests(),
        threads::device_tests(),
        soak::device_tests(),
        sanitizer::device_tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Modules whose tests run at the same time, but for those that are `alone`. A module may also have a process of its own
/// beside those of the others.
const BESIDE_OTHERS: &[&str] = &[
    "fuse",
    "tensor",
    "values",
    "reduce",
    "random",
    "rows",
    "sorting",
    "accumulation",
    "catalogue",
    "nn",
    "gradient_values",
    "gradients",
    "attention",
    "classifier",
    "gemm",
    "srt",
];
/// The hidden argument by which `scripts/device_suite.sh` gets these names, one a line.
const LIST_BESIDE_OTHERS: &str = "--modules-beside-others";
/// Tests at a time: a device has one queue of launches for all of them.
const MAX_THREADS: usize = 16;

fn main() -> ExitCode {
    let mut device_tests = device_tests();
    for test in &mut device_tests {
        let module = test.name.split("::").next().unwrap_or_default();
        test.alone |= !BESIDE_OTHERS.contains(&module);
    }
    // Tests that run at the same time come first.
    device_tests.sort_by_key(|test| test.alone);
    if let Some(code) = support::child::run_if_asked(&device_tests) {
        return code;
    }
    if let Err(error) = Device::new(0) {
        let line: Vec<String> = error.to_string().lines().map(|line| line.trim().to_owned()).collect();
        eprintln!("no device to test on: {}", line.join(" | "));
        return ExitCode::FAILURE;
    }
    if std::env::args().nth(1).as_deref() == Some(LIST_BESIDE_OTHERS) {
        BESIDE_OTHERS.iter().for_each(|module| println!("{module}"));
        return ExitCode::SUCCESS;
    }
    let mut arguments = libtest_mimic::Arguments::from_args();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    arguments.test_threads.get_or_insert(threads);
    let tests = device_tests.into_iter().map(DeviceTest::into_test).collect();
    let conclusion = libtest_mimic::run(&arguments, tests);
    if !arguments.list {
        support::print_slowest();
    }
    conclusion.exit_code()
}
