//! The driver around the work: failures, handles, contexts, versions, and how the fake is built.

use super::*;
use crate::common;

fn failures() -> Outcome {
    let bench = Bench::new()?;
    check!(bench.fake.fail("cuMemAlloc", 2, 999));
    check!(!bench.fake.fail("cuNoSuchFunction", 1, 999));
    let block = bench.block(8)?;
    let mut other = 0;
    answers!(999, bench, allocate(&raw mut other, 8));
    call!(bench, allocate(&raw mut other, 8));
    // A release happens all the same.
    bench.fake.fail("cuMemFree_v2", 1, 719);
    answers!(719, bench, free(block));
    answers!(INVALID_VALUE, bench, free(block));
    check_equal!(bench.fake.live().blocks, 1);
    bench.fake.fail_call(bench.fake.calls() + 2, 46);
    let stream = bench.stream()?;
    answers!(46, bench, stream_synchronize(stream));
    bench.fake.fail("*", 0, 4);
    answers!(4, bench, stream_synchronize(stream));
    answers!(4, bench, stream_destroy(stream));
    bench.fake.clear_failures();
    check_equal!(bench.fake.live().streams, 0);
    check_equal!(bench.fake.failures_fired(), 5);
    let log = bench.fake.log();
    let last = log.last().ok_or("no log")?;
    check_equal!((last.function.as_str(), last.result), ("cuStreamDestroy_v2", 4));
    check_equal!(bench.fake.call_count("cuMemAlloc"), 3);
    check!(log.iter().enumerate().all(|(index, call)| call.number == index as u64 + 1));
    Ok(())
}

fn stale_handles() -> Outcome {
    let bench = Bench::new()?;
    let (stream, event) = (bench.stream()?, bench.event()?);
    call!(bench, stream_destroy(stream));
    call!(bench, event_destroy(event));
    answers!(INVALID_HANDLE, bench, stream_destroy(stream));
    answers!(INVALID_HANDLE, bench, event_destroy(event));
    let (other_stream, other_event) = (bench.stream()?, bench.event()?);
    check!(stream != other_stream && event != other_event);
    answers!(INVALID_HANDLE, bench, stream_synchronize(stream));
    answers!(INVALID_HANDLE, bench, event_record(event, other_stream));
    check_equal!(bench.fake.violations().len(), 4);
    let described = bench.fake.describe_live();
    check!(described.contains("stream") && described.contains("event"));
    check_equal!(bench.fake.live(), Counts { streams: 1, events: 1, retained: 1, ..Counts::default() });
    check_equal!(bench.fake.reset(), 2);
    Ok(())
}

fn contexts() -> Outcome {
    let bench = Bench::new()?;
    let (module, stream, block) = (bench.module(PTX.as_bytes())?, bench.stream()?, bench.block(8)?);
    let produce = bench.function(module, "produce")?;
    let other_context = bench.bind(1)?;
    let other_event = bench.event()?;
    // On another device's context.
    answers!(INVALID_HANDLE, bench, event_record(other_event, stream));
    bench.no_violation()?;
    check_equal!(bench.launch(produce, stream, &[&word(block)]), INVALID_CONTEXT);
    call!(bench, fill(block, 1, 8, stream));
    check_equal!(bench.fake.violations().len(), 2);
    bench.fake.reset();
    // On a foreign one, and on none.
    let mut unused = 0;
    bench.fake.foreign_set(bench.fake.foreign_context(0));
    check!(bench.fake.foreign_is_current());
    call!(bench, allocate(&raw mut unused, 8));
    bench.one_violation(&["foreign context"])?;
    call!(bench, set_current(other_context));
    check!(!bench.fake.foreign_is_current());
    bench.fake.foreign_set(0);
    answers!(INVALID_CONTEXT, bench, allocate(&raw mut unused, 8));
    answers!(INVALID_CONTEXT, bench, stream_synchronize(stream));
    Ok(())
}

fn elapsed_time() -> Outcome {
    let bench = Bench::new()?;
    let (block, stream) = (bench.block(8)?, bench.stream()?);
    let (mut start, mut end, mut milliseconds) = (0, 0, -1.0);
    call!(bench, event_create(&raw mut start, 0));
    call!(bench, event_create(&raw mut end, 0));
    let result = &raw mut milliseconds;
    answers!(INVALID_HANDLE, bench, event_elapsed(result, start, end));
    call!(bench, event_record(start, stream));
    call!(bench, fill(block, 1, 8, stream));
    call!(bench, event_record(end, stream));
    answers!(NOT_READY, bench, event_elapsed(result, start, end));
    call!(bench, event_synchronize(end));
    call!(bench, event_elapsed(result, start, end));
    check!(milliseconds > 0.0);
    let untimed = bench.event()?;
    call!(bench, event_record(untimed, stream));
    answers!(INVALID_HANDLE, bench, event_elapsed(result, start, untimed));
    Ok(())
}

fn versions() -> Outcome {
    let _alone = support::exclusive();
    let old = Fake::build(&Variant::new(11040).label("self check")).map_err(|e| e.to_string())?;
    type ProcessAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64) -> c_int;
    type Address = unsafe extern "C" fn();
    let found = |fake: &Fake, name: &str| {
        // SAFETY: only looked up, not called.
        unsafe { fake.driver::<Address>(name) }.is_ok()
    };
    for (name, there) in [
        ("cuGetProcAddress_v2", false),
        ("cuLaunchKernelEx", false),
        ("cuTensorMapEncodeTiled", false),
        ("cuGetProcAddress", true),
        ("cuMemAlloc_v2", true),
        ("cuMemAlloc", false),
        ("cuStreamUpdateCaptureDependencies", true),
        ("cuStreamUpdateCaptureDependencies_v2", false),
        ("cuStreamBeginCaptureToGraph", false),
        ("cuGraphNodeSetEnabled", false),
        ("cuGraphExecUpdate_v2", false),
        ("cuGraphAddNode_v2", false),
        ("cuMemcpyBatchAsync", false),
        ("cuMemcpy3DPeerAsync", true),
        ("cuDevicePrimaryCtxReset_v2", true),
    ] {
        check_equal!((name, found(&old, name)), (name, there));
    }
    // SAFETY: the function's type.
    let address: ProcessAddress = unsafe { old.driver("cuGetProcAddress")? };
    let mut pointer = null_mut();
    for (name, version, code) in [
        (c"cuMemAlloc", 3020, SUCCESS),
        (c"cuMemAlloc", 2000, 500),
        (c"cuLaunchKernelEx", 11040, 500),
        (c"cuLaunchKernelEx", 11060, INVALID_VALUE),
    ] {
        // SAFETY: a terminated name, and a pointer to a local.
        check_equal!(unsafe { address(name.as_ptr(), &raw mut pointer, version, 1) }, code);
        check_equal!(pointer.is_null(), code != SUCCESS);
        pointer = null_mut();
    }
    let new = Variant::new(13000).omit(&["cuFuncGetName"]).label("self check");
    let new = Fake::build(&new).map_err(|e| e.to_string())?;
    check!(found(&new, "cuGetProcAddress_v2") && !found(&new, "cuFuncGetName"));
    let driver_version = |fake: &Fake| -> Result<i32, Failed> {
        // SAFETY: the function's type.
        let get: unsafe extern "C" fn(*mut c_int) -> c_int = unsafe { fake.driver("cuDriverGetVersion")? };
        let mut version = 0;
        // SAFETY: a pointer to a local.
        unsafe { get(&raw mut version) };
        Ok(version)
    };
    check_equal!((driver_version(&old)?, driver_version(&new)?), (11040, 13000));
    Ok(())
}

fn process_address() -> Outcome {
    let bench = Bench::new()?;
    let mut pointer = null_mut();
    for (name, version, code, expected) in [
        (c"cuMemAlloc", 12040, SUCCESS, 0),
        (c"cuMemAlloc", 2000, SUCCESS, 2),
        (c"cuMemAlloc", 12050, INVALID_VALUE, -1),
        (c"cuNothing", 12040, SUCCESS, 1),
        (c"cuGetProcAddress", 12000, SUCCESS, 0),
    ] {
        let mut status = -1;
        answers!(code, bench, process_address(name.as_ptr(), &raw mut pointer, version, 1, &raw mut status));
        check_equal!((name, status), (name, expected));
    }
    check_equal!(pointer, bench.driver.process_address as *mut c_void);
    Ok(())
}

fn stub() -> Outcome {
    let _alone = support::exclusive();
    let stub = Fake::build(&Variant::stub().label("self check")).map_err(|e| e.to_string())?;
    // SAFETY: the function's type.
    let init: unsafe extern "C" fn(c_uint) -> c_int = unsafe { stub.driver("cuInit")? };
    // SAFETY: no pointers.
    check_equal!(unsafe { init(0) }, 34);
    Ok(())
}

fn initialisation() -> Outcome {
    let bench = Bench::new()?;
    bench.fake.reset_all();
    let mut unused = 0;
    answers!(NOT_INITIALIZED, bench, retain(&raw mut unused, 0));
    bench.fake.set_devices(0);
    answers!(100, bench, init(0));
    bench.fake.set_init(802);
    answers!(802, bench, init(0));
    bench.fake.set_init(0);
    bench.fake.set_devices(2);
    call!(bench, init(0));
    Ok(())
}

/// Every exported function is in the list, and every name of the list is exported.
fn exports() -> Outcome {
    let fake = Fake::build(&Variant::new(13000).label("exports")).map_err(|e| e.to_string())?;
    for function in variant::functions() {
        // SAFETY: only looked up, not called.
        let found = unsafe { fake.driver::<unsafe extern "C" fn()>(function.spelling) };
        check!(found.is_ok() || Err(format!("{function:?}"))?);
    }
    check!(variant::functions().len() >= 128);
    Ok(())
}

/// Every function but those that release something returns its armed failure before it reads its arguments.
fn every_failure() -> Outcome {
    let bench = Bench::new()?;
    type Any = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> c_int;
    let releases = |name: &str| {
        ["Destroy", "Free", "Unregister", "Unload", "Unmap", "Release", "AddressFree"]
            .iter()
            .any(|word| name.contains(word))
    };
    let (before, mut fired) = (bench.fake.live(), 0);
    for function in variant::functions() {
        if releases(function.base) || function.base == "cuGetProcAddress" {
            continue;
        }
        check!(bench.fake.fail(function.spelling, 1, 999));
        // SAFETY: all arguments fit, and none is looked at.
        let code =
            unsafe { bench.fake.driver::<Any>(function.spelling)?(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) };
        check_equal!((function.spelling, code), (function.spelling, 999));
        fired += 1;
    }
    check!(fired > 100);
    check_equal!(bench.fake.failures_fired(), fired);
    check_equal!(bench.fake.live(), before);
    bench.no_violation()
}

fn no_warnings() -> Outcome {
    if common::is_left_out("self_check::no warnings", "a C compiler") {
        return Ok(());
    }
    let mut command = variant::compiler();
    command
        .args(["-std=gnu11", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-Wstrict-prototypes"])
        .args(variant::sources()?)
        .arg("-o")
        .arg(variant::scratch("fake-warnings")?.join("library.so"));
    Ok(variant::compile(&mut command)?)
}

/// The C program, with every access and every arithmetic operation checked; without the checks where the compiler has none.
fn sanitized() -> Outcome {
    if common::is_left_out("self_check::sanitized", "a C compiler") {
        return Ok(());
    }
    let program = variant::scratch("fake-sanitized")?.join("self_test");
    let build = |flags: &[&str]| {
        let mut command = variant::compiler();
        command.args(["-std=gnu11", "-O1", "-g", "-pthread"]).args(flags);
        variant::compile(command.args(variant::sources()?).arg(variant::self_test()).arg("-o").arg(&program))
    };
    if build(&["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]).is_err() {
        build(&[])?;
    }
    let output = std::process::Command::new(&program).env("ASAN_OPTIONS", "detect_leaks=0").output()?;
    if output.status.success() {
        return Ok(());
    }
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{}\n{out}{err}", output.status).into())
}

/// A random program of 40 calls is to cost well under a millisecond; the bound is loose, for slow machines.
fn speed() -> Outcome {
    let bench = Bench::new()?;
    bench.fake.set_strict(false);
    let start = Instant::now();
    for seed in 0..1000 {
        bench.fake.set_seed(seed);
        let (one, other, event) = (bench.stream()?, bench.stream()?, bench.event()?);
        let (a, b) = (bench.block(256)?, bench.block(256)?);
        for _ in 0..6 {
            call!(bench, fill(a, 1, 256, one));
            call!(bench, event_record(event, one));
            call!(bench, stream_wait(other, event, 0));
            call!(bench, copy(b, a, 256, other));
            call!(bench, event_record(event, other));
            call!(bench, stream_wait(one, event, 0));
        }
        call!(bench, stream_synchronize(one));
        call!(bench, free(a));
        call!(bench, free(b));
        call!(bench, event_destroy(event));
        call!(bench, stream_destroy(one));
        call!(bench, stream_destroy(other));
        bench.no_violation()?;
        check_equal!(bench.fake.reset(), 0);
    }
    let each = start.elapsed() / 1000;
    check!(each.as_micros() < 1000 || Err(format!("{each:?} a program"))?);
    Ok(())
}

pub fn tests() -> Vec<Test> {
    vec![
        test("failures", failures),
        test("every function fails when armed", every_failure),
        test("stale handles", stale_handles),
        test("contexts", contexts),
        test("elapsed time", elapsed_time),
        test("versions", versions),
        test("cuGetProcAddress", process_address),
        test("the stub", stub),
        test("initialisation", initialisation),
        test("exports", exports),
        test("no warnings", no_warnings),
        test("sanitized", sanitized),
        test("speed", speed),
    ]
}
