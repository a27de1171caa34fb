//! Tests on the fake driver: a `libcuda.so.1` in C that records every call and handle (`csrc/fake_driver/fake.h`).
//!
//! It is compiled here, with the host's C compiler, so these tests need Linux and no GPU. Each module gives its tests.

#[cfg(all(target_os = "linux", feature = "capi"))]
mod allocations;
#[cfg(feature = "nn")]
mod backend;
#[cfg(all(target_os = "linux", feature = "capi"))]
mod capi;
#[cfg(target_os = "linux")]
mod children;
#[path = "../common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
mod compute;
mod concurrency;
#[cfg(target_os = "linux")]
mod contexts;
#[cfg(target_os = "linux")]
mod cublas;
#[cfg(target_os = "linux")]
#[path = "../cases/decode.rs"]
mod decode_cases;
#[cfg(target_os = "linux")]
mod dlpack;
#[cfg(target_os = "linux")]
mod drops;
#[cfg(target_os = "linux")]
mod emulated;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
#[path = "../cases/few_rows.rs"]
mod few_rows_cases;
#[cfg(feature = "nn")]
mod fine_tuning;
#[cfg(target_os = "linux")]
mod foreign;
#[cfg(target_os = "linux")]
mod forks;
#[cfg(target_os = "linux")]
mod fuse;
#[cfg(target_os = "linux")]
mod gemm;
#[cfg(target_os = "linux")]
mod graph_edges;
#[cfg(target_os = "linux")]
mod graph_updates;
#[cfg(target_os = "linux")]
mod graphs;
#[cfg(target_os = "linux")]
mod indexing;
#[cfg(target_os = "linux")]
mod kernels;
#[cfg(target_os = "linux")]
mod launcher;
#[cfg(target_os = "linux")]
mod losses;
#[cfg(target_os = "linux")]
mod model;
#[cfg(all(target_os = "linux", feature = "collective"))]
mod nccl;
#[cfg(target_os = "linux")]
mod overlaps;
#[cfg(target_os = "linux")]
mod pool;
#[cfg(target_os = "linux")]
mod products;
#[cfg(target_os = "linux")]
mod random;
#[cfg(target_os = "linux")]
mod random_graphs;
#[cfg(target_os = "linux")]
mod resets;
#[cfg(target_os = "linux")]
mod scenario;
#[cfg(target_os = "linux")]
mod self_check;
#[cfg(target_os = "linux")]
mod soak;
#[cfg(all(target_os = "linux", feature = "srt"))]
mod srt;
#[cfg(target_os = "linux")]
mod staging;
#[cfg(target_os = "linux")]
mod support;
#[cfg(target_os = "linux")]
mod tensor;
#[cfg(target_os = "linux")]
mod timeouts;
#[cfg(target_os = "linux")]
mod trace;
#[cfg(feature = "nn")]
mod training;
#[cfg(target_os = "linux")]
mod transfers;
#[cfg(target_os = "linux")]
mod variant;
#[cfg(target_os = "linux")]
mod versions;

use std::process::ExitCode;

use common::sampling::Share;
use common::suite::Suite;

/// The share of the injected faults that runs unless the whole set is asked for.
const FAULTS: Share = Share { one_in: 4, least: 3 };

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(code) = children::dispatch() {
        return code;
    }
    let mut suite = Suite::new("fake");
    #[cfg(target_os = "linux")]
    for module in [
        concurrency::tests,
        contexts::tests,
        cublas::tests,
        dlpack::tests,
        drops::tests,
        emulated::tests,
        faults::tests,
        foreign::tests,
        forks::tests,
        fuse::tests,
        gemm::tests,
        graph_edges::tests,
        graphs::tests,
        indexing::tests,
        compute::tests,
        launcher::tests,
        losses::tests,
        overlaps::tests,
        pool::tests,
        random::tests,
        random_graphs::tests,
        resets::tests,
        scenario::tests,
        self_check::tests,
        soak::tests,
        staging::tests,
        tensor::tests,
        timeouts::tests,
        trace::tests,
        transfers::tests,
        versions::tests,
    ] {
        suite.add(module());
    }
    #[cfg(feature = "nn")]
    suite.add(backend::tests());
    #[cfg(feature = "nn")]
    suite.add(training::tests());
    #[cfg(feature = "nn")]
    suite.add(fine_tuning::tests());
    #[cfg(all(target_os = "linux", feature = "capi"))]
    suite.add(capi::tests());
    #[cfg(all(target_os = "linux", feature = "collective"))]
    suite.add(nccl::tests());
    #[cfg(all(target_os = "linux", feature = "srt"))]
    suite.add(srt::tests());
    #[cfg(target_os = "linux")]
    suite.sample("emulated", FAULTS, emulated::faults());
    suite.run()
}
