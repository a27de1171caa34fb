//! Tests that run the crate do it in a process of their own: the driver is loaded once in a process, and a fault in
//! its first calls must not be one that an earlier test has already got past.

use std::process::{Command, ExitCode};

use libtest_mimic::Failed;

use super::support::Fake;
use super::variant::{self, Variant};
use super::{
    compute, concurrency, contexts, cublas, dlpack, drops, emulated, faults, foreign, forks, fuse, gemm,
    graph_edges, graphs, indexing, launcher, losses, overlaps, pool, random, resets, scenario, soak, staging,
    tensor, timeouts, trace, transfers, versions,
};

const CHILD: &str = "SELVEDGE_FAKE_CHILD";

/// A child's output and how it ended.
pub struct Ended {
    pub text: String,
    pub success: bool,
}

/// Runs a child function on a variant of the fake.
pub fn spawn(
    variant: &Variant,
    name: &str,
    arguments: &[String],
    settings: &[(&str, &str)],
) -> Result<Ended, Failed> {
    let library = variant::build(variant)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(CHILD, name).env("SELVEDGE_LIBCUDA", library);
    for variable in [
        "SELVEDGE_POOL",
        "SELVEDGE_MEMORY_LIMIT",
        "SELVEDGE_STAGING_BYTES",
        "SELVEDGE_ARCH",
        "SELVEDGE_IMAGE",
        "SELVEDGE_GEMM",
        "SELVEDGE_LIBCUBLAS",
        "SELVEDGE_LIBNCCL",
        "SELVEDGE_COLLECTIVE_CHECK",
        "SELVEDGE_TRACE",
    ] {
        command.env_remove(variable);
    }
    // A CUPTI that is installed knows nothing of the fake driver.
    command.env("SELVEDGE_LIBCUPTI", "none");
    command.envs(settings.iter().copied());
    let output = command.output()?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok(Ended { text, success: output.status.success() })
}

/// As [`spawn`], where any failure is the test's.
pub fn must_succeed(
    variant: &Variant,
    name: &str,
    arguments: &[String],
    settings: &[(&str, &str)],
) -> Result<String, Failed> {
    let ended = spawn(variant, name, arguments, settings)?;
    if ended.success { Ok(ended.text) } else { Err(ended.text.into()) }
}

/// Runs the child function that the parent asked for; `None` in the parent.
pub fn dispatch() -> Option<ExitCode> {
    let name = std::env::var(CHILD).ok()?;
    if crate::common::builds_only() && name != "emulated" {
        return Some(ExitCode::SUCCESS);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = std::env::var("SELVEDGE_LIBCUDA").map_err(Into::into).and_then(|path| {
        let fake = Fake::open(path.as_ref())?;
        match name.as_str() {
            #[cfg(feature = "capi")]
            "capi" => super::capi::child(&fake, &arguments),
            "calls" => scenario::print_calls(&fake),
            "fault" => faults::child(&fake, &arguments),
            "pool" => pool::child(&fake, &arguments),
            "random" => random::child(&fake, &arguments),
            "emulated" => emulated::child(&fake, &arguments),
            "dlpack" => dlpack::child(&fake, &arguments),
            "drops" => drops::child(&fake),
            "gemm" => gemm::child(&fake, &arguments),
            #[cfg(feature = "collective")]
            "nccl" => super::nccl::child(&fake, &arguments),
            "overlaps" => overlaps::child(&fake, &arguments),
            "graph_edges" => graph_edges::child(&fake, &arguments),
            "graphs" => graphs::child(&fake, &arguments),
            "concurrency" => concurrency::child(&fake, &arguments),
            "cublas" => cublas::child(&fake, &arguments),
            "contexts" => contexts::child(&fake),
            "indexing" => indexing::child(&fake, &arguments),
            "fuse" => fuse::child(&fake),
            "fuse_plans" => fuse::plans_child(&fake),
            "fuse_resets" => fuse::resets_child(&fake),
            "foreign" => foreign::child(&fake, &arguments),
            "forks" => forks::after_use(&fake),
            "forks_before_use" => forks::before_use(&fake),
            "forks_of_threads" => forks::of_threads(&fake),
            "forks_of_launchers" => forks::of_launchers(&fake),
            "compute" => compute::child(&fake, &arguments),
            "launcher" => launcher::child(&fake, &arguments),
            "lost" => losses::lost(&fake),
            "memory" => losses::out_of_memory(&fake),
            "resets" => resets::child(&fake, &arguments),
            "soak" => soak::child(&fake),
            #[cfg(feature = "srt")]
            "srt" => super::srt::child(&fake, &arguments),
            "staging_copies" => staging::copies(&fake),
            "staging_locked" => staging::locked(&fake),
            "staging_failures" => staging::failures(&fake),
            "staging_setting" => staging::setting(&fake),
            "tensor" => tensor::child(&fake, &arguments),
            #[cfg(feature = "nn")]
            "training" => super::training::child(&fake),
            #[cfg(feature = "nn")]
            "fine_tuning" => super::fine_tuning::child(&fake),
            #[cfg(feature = "nn")]
            "backend" => super::backend::child(&fake),
            "timeouts" => timeouts::child(&fake),
            "timeouts_dropped" => timeouts::dropped(&fake),
            "trace" => trace::child(&fake, &arguments),
            "transfers_boxes" => transfers::boxes(&fake),
            "transfers_lists" => transfers::lists(&fake, &arguments),
            "version" => versions::child(&fake, &arguments),
            other => Err(format!("no child '{other}'").into()),
        }
    });
    Some(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    })
}
