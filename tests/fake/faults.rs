//! Every driver call that the crate makes fails in turn.
//!
//! The list is the record of the whole scenario. For each call of it a process runs the scenario with just that call
//! failing: the result is an error that names the call, or the call was a release and the error went to the hook; nothing
//! panics, nothing is freed twice, and nothing is alive when all is dropped and trimmed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use libtest_mimic::Failed;

use super::support::Fake;
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

/// A code that ends no context.
const NOT_PERMITTED: i32 = 800;
const OUT_OF_MEMORY: i32 = 2;

/// Child: runs the scenario with call `number` failing with `code`.
pub fn child(fake: &Fake, arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let [number, function, code] = arguments else { return Err("usage: NUMBER FUNCTION CODE".into()) };
    let (number, code): (u64, i32) = (number.parse()?, code.parse()?);
    let deferred = Arc::new(Mutex::new(Vec::new()));
    let hook = deferred.clone();
    selvedge::error::set_deferred_error_hook(Some(Box::new(move |error| {
        if let Ok(mut errors) = hook.lock() {
            errors.push(error.to_string());
        }
    })));
    fake.fail_call(number, code);
    let result = scenario::run(fake, &mut || {}).and_then(|()| scenario::settle());
    fake.clear_failures();
    if fake.failures_fired() != 1 {
        return Err(format!("{} failures fired", fake.failures_fired()).into());
    }
    let base = function.trim_end_matches("_v2").trim_end_matches("_v3");
    let deferred = deferred.lock().map_err(|error| error.to_string())?.join("\n");
    // Out of memory is retried after a trim, and succeeds then.
    const ALLOCATING: &[&str] =
        &["cuMemAlloc", "cuMemHostAlloc", "cuMemCreate", "cuMemAddressReserve", "cuMemAllocFromPoolAsync"];
    let retried = code == OUT_OF_MEMORY && ALLOCATING.contains(&base);
    match &result {
        Err(error) if !error.to_string().contains(base) => {
            return Err(format!("the error does not name {base}: {error}").into());
        }
        Ok(()) if !deferred.contains(base) && !retried => {
            return Err(format!("{base} failed and nobody got an error; deferred: {deferred}").into());
        }
        _ => {}
    }
    if result.is_err() {
        // The process goes on: the same program works now.
        scenario::run(fake, &mut || {})?;
    }
    scenario::settle()?;
    scenario::check_end(fake)
}

/// Runs a fault process for each call on two threads, and gathers what went wrong.
fn all(variant: &Variant, code: i32, settings: &[(&str, &str)]) -> Result<(), Failed> {
    let calls = scenario::calls(variant, settings)?;
    let calls: Vec<_> = calls.into_iter().filter(|(number, _)| *number > 0).collect();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((number, name)) = calls.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let arguments = [number.to_string(), name.clone(), code.to_string()];
                    if let Err(failed) = children::must_succeed(variant, "fault", &arguments, settings)
                        && let Ok(mut wrong) = wrong.lock()
                    {
                        wrong.insert(
                            *number,
                            format!("call {number}, {name}: {}", failed.message().unwrap_or("")),
                        );
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().map_err(|error| error.to_string())?;
    if calls.len() < 100 {
        return Err(format!("the record has only {} calls", calls.len()).into());
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let text: Vec<_> = wrong.into_values().collect();
    Err(format!("{} of {} calls:\n{}", text.len(), calls.len(), text.join("\n")).into())
}

/// The scenario's large buffers count as large for copies of plain memory, its small ones do not.
const STAGED: &[(&str, &str)] = &[("SELVEDGE_STAGING_BYTES", "256")];

const PLAIN: &[(&str, &str)] = &[("SELVEDGE_POOL", "plain")];
const DRIVER: &[(&str, &str)] = &[("SELVEDGE_POOL", "driver")];

pub fn tests() -> Vec<Test> {
    let test = |name: &'static str, version: i32, code: i32, settings: &'static [(&str, &str)]| {
        Test::new(name, move || all(&Variant::new(version), code, settings))
    };
    vec![
        test("faults::every_call_refused", 13000, NOT_PERMITTED, &[]),
        test("faults::every_call_out_of_memory", 12040, OUT_OF_MEMORY, &[]),
        test("faults::every_call_refused_by_an_old_driver", 11040, NOT_PERMITTED, &[]),
        test("faults::every_call_refused_with_plain_memory", 12040, NOT_PERMITTED, PLAIN),
        test("faults::every_call_out_of_memory_with_plain_memory", 12040, OUT_OF_MEMORY, PLAIN),
        test("faults::every_call_refused_with_the_drivers_pool", 12040, NOT_PERMITTED, DRIVER),
        test("faults::every_call_out_of_memory_with_the_drivers_pool", 12040, OUT_OF_MEMORY, DRIVER),
        test("faults::every_call_refused_in_staged_copies", 13000, NOT_PERMITTED, STAGED),
        test("faults::every_call_out_of_memory_in_staged_copies", 12040, OUT_OF_MEMORY, STAGED),
    ]
}
