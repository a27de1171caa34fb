//! Traces on the fake driver: every event once and in order, no cost without a trace, and a readable file however the process
//! ends.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use selvedge::Error;
use selvedge::driver::{Device, LaunchConfig};
use selvedge::gemm::{Product, gemm};
use selvedge::sort::{self, SortKey};
use selvedge::tensor::AttentionOptions;
use selvedge::{DType, Tensor, trace};
use serde_json::Value;

use super::graphs::Ground;
use super::kernels::PTX;
use super::support::{Fake, check};
use super::variant::{self, Variant};
use super::{children, forks};
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const LENGTH: usize = 64;

/// The events of a file up to its break, and whether it has an end.
fn read(path: &Path) -> Result<(Vec<Value>, bool), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    // A file without an end is an error of the decoder after all that it could read.
    let whole = GzDecoder::new(std::fs::File::open(path)?).read_to_end(&mut bytes).is_ok();
    let text = String::from_utf8(bytes)?;
    if whole {
        return Ok((serde_json::from_str(&text)?, true));
    }
    let lines = text.lines().skip(1).filter_map(|line| line.strip_suffix(','));
    Ok((lines.map(serde_json::from_str).collect::<Result<_, _>>()?, false))
}

fn number(event: &Value, key: &str) -> Result<f64, String> {
    event[key].as_f64().ok_or_else(|| format!("no {key} in {event}"))
}

/// An event's start, its end and itself.
type Timed<'a> = (f64, f64, &'a Value);

/// Required keys, nesting on each track, order on the tracks of devices, and both ends of each arrow.
fn check_events(events: &[Value]) -> Outcome {
    let mut tracks: BTreeMap<(u64, u64), Vec<Timed<'_>>> = BTreeMap::new();
    let mut arrows: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for event in events {
        let phase = event["ph"].as_str().ok_or("an event without ph")?;
        let track = (number(event, "pid")? as u64, number(event, "tid")? as u64);
        check(event["name"].is_string() && event["cat"].is_string(), &format!("no name or cat in {event}"))?;
        if phase == "M" {
            continue;
        }
        let start = number(event, "ts")?;
        match phase {
            "X" => {
                let end = start + number(event, "dur")?;
                tracks.entry(track).or_default().push((start, end, event));
            }
            "s" | "f" => arrows.entry(number(event, "id")? as u64).or_default().push(phase),
            "i" | "C" => {}
            other => return Err(format!("phase {other} in {event}").into()),
        }
    }
    if let Some((id, ends)) = arrows.iter().find(|(_, ends)| **ends != ["s", "f"]) {
        return Err(format!("arrow {id} has the ends {ends:?}").into());
    }
    // Decimals of microseconds are exact to a nanosecond.
    let tiny = 0.0005;
    for ((process, _), mut list) in tracks {
        if process >= 1 << 30 {
            let late = list.windows(2).find(|pair| pair[1].0 + tiny < pair[0].1);
            if let Some(pair) = late {
                return Err(format!("{} begins before the end of {}", pair[1].2, pair[0].2).into());
            }
        }
        list.sort_by(|left, right| left.0.total_cmp(&right.0).then(right.1.total_cmp(&left.1)));
        let mut open: Vec<f64> = Vec::new();
        for (start, end, event) in list {
            while open.last().is_some_and(|last| *last <= start + tiny) {
                open.pop();
            }
            if open.last().is_some_and(|last| end > last + tiny) {
                return Err(format!("{event} partly overlaps another event of its track").into());
            }
            open.push(end);
        }
    }
    Ok(())
}

fn count(events: &[Value], category: &str, name: &str) -> usize {
    let same = |event: &&Value| event["cat"] == category && event["name"] == name && event["ph"] != "C";
    events.iter().filter(same).count()
}

fn expect(events: &[Value], wanted: &[(&str, &str, usize)]) -> Outcome {
    for (category, name, times) in wanted {
        let found = count(events, category, name);
        check(found == *times, &format!("{found} events '{name}' of '{category}', not {times}"))?;
    }
    Ok(())
}

/// Two launches, a copy of each kind, a fill, a captured launch, three launches of its graph, and waits.
fn work(ground: &Ground) -> Outcome {
    let stream = &ground.stream;
    let mut a = stream.upload(&[1u8; LENGTH])?;
    let mut b = stream.zeros::<u8>(LENGTH)?;
    ground.make(stream, &mut a, 3)?;
    ground.mix(stream, &a, &mut b, 4)?;
    stream.copy(&a, &mut b)?;
    let (graph, ()) = stream.capture(|stream| ground.mix(stream, &a, &mut b, 5))?;
    let graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(stream)?;
    }
    stream.synchronize()?;
    stream.download(&b)?;
    Ok(())
}

/// Child: every event of a program is in the file once.
fn whole(path: &Path) -> Outcome {
    trace::start(path)?;
    let ground = Ground::new()?;
    {
        let _step = trace::range("step");
        work(&ground)?;
    }
    trace::stop()?;
    let (events, is_whole) = read(path)?;
    check(is_whole, "the file has no end")?;
    check_events(&events)?;
    expect(
        &events,
        &[
            ("range", "step", 1),
            ("launch", "make", 1),
            ("kernel", "make", 1),
            ("launch", "mix", 2),
            // The captured one runs in the graph.
            ("kernel", "mix", 1),
            ("copy", "copy host to device", 1),
            ("device copy", "copy host to device", 1),
            ("copy", "copy device to host", 1),
            ("device copy", "copy device to host", 1),
            ("device copy", "copy device to device", 1),
            ("device fill", "fill", 1),
            ("graph launch", "a graph with mix", 3),
            ("graph", "a graph with mix", 3),
            ("memory", "allocate", 2),
            ("memory", "free", 2),
            ("metadata", "selvedge_trace", 1),
            ("metadata", "selvedge_end", 1),
        ],
    )?;
    let arrows = events.iter().filter(|event| event["ph"] == "s").count();
    check(arrows == 9, &format!("{arrows} arrows for 9 timed operations"))?;
    check(count(&events, "metadata", "selvedge_calibration") > 0, "no calibration")?;
    let launch = events.iter().find(|event| event["cat"] == "launch" && event["name"] == "make");
    let launch = &launch.ok_or("no launch")?["args"];
    check(
        launch["grid"] == "1x1x1" && launch["block"] == "32x1x1" && launch["shared_bytes"] == 0,
        &format!("the launch's shape is {launch}"),
    )?;
    let captured = events.iter().filter(|event| event["args"]["captured"] == 1).count();
    check(captured == 1, &format!("{captured} captured launches"))?;
    let end = &events[events.len() - 1]["args"];
    check(end["dropped"] == 0 && end["untimed"] == 0, &format!("the end says {end}"))?;
    let live = events.iter().rfind(|event| event["ph"] == "C" && event["name"] == "memory");
    check(live.is_some_and(|event| event["args"]["live"] == 0), &format!("memory ends at {live:?}"))
}

/// Child: without a trace, and after one, the same driver calls are made.
fn off(fake: &Fake, path: &Path) -> Outcome {
    let ground = Ground::new()?;
    let calls = || -> Result<(Vec<String>, u64), Box<dyn std::error::Error>> {
        let before = fake.log().len();
        work(&ground)?;
        let log = fake.log();
        let new = log[before..].iter().map(|call| call.function.clone()).collect();
        Ok((new, fake.call_count("cuEventElapsedTime")))
    };
    calls()?;
    let before = calls()?;
    check(before.1 == 0, "an elapsed time was asked for without a trace")?;
    check(!path.exists() && !trace::is_on(), "a trace is on")?;
    trace::start(path)?;
    let during = calls()?.0.len();
    trace::stop()?;
    check(during > before.0.len(), "a trace times nothing")?;
    let (asked, after) = (fake.call_count("cuEventElapsedTime"), calls()?);
    check(after.0 == before.0, &format!("calls before: {:?}; after: {:?}", before.0, after.0))?;
    check(after.1 == asked, "an elapsed time was asked for after the trace")
}

/// Child: a fault loses the device's times and nothing else.
fn fault(path: &Path) -> Outcome {
    trace::start(path)?;
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let module = device.load(PTX.as_bytes())?;
    let fault = module.function("fault_now")?;
    let mut a = stream.zeros::<u8>(LENGTH)?;
    // SAFETY: the fake driver's kernel touches nothing.
    unsafe { fault.launch(&stream, LaunchConfig::new(1, 32), (&mut a,))? };
    match stream.synchronize() {
        Err(Error::KernelFault { .. } | Error::ContextLost { .. }) => {}
        other => return Err(format!("the fault is {other:?}").into()),
    }
    trace::stop()?;
    let (events, is_whole) = read(path)?;
    check(is_whole, "the file has no end")?;
    check_events(&events)?;
    expect(&events, &[("launch", "fault_now", 1)])?;
    let end = &events[events.len() - 1]["args"];
    check(end["untimed"].as_u64() > Some(0), &format!("the end says {end}"))
}

/// Child: calls of engines without tensors, operations with their bytes, and waits with a limit.
fn calls(path: &Path) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    trace::start(path)?;
    let a = stream.upload(&[1.0f32; 6])?;
    let mut c = stream.zeros::<f32>(4)?;
    let product = Product::new(2, 2, 3);
    gemm(&stream, &product, 1.0, &a, &a, 0.0, &mut c)?;
    let bytes = stream.upload(&[3u8, 1, 2])?;
    let mut positions = stream.zeros::<i64>(3)?;
    sort::argsort(&stream, SortKey::new("argsort", DType::U8, false)?, &bytes, 1, &mut positions)?;
    let cpu = selvedge::Device::cpu();
    let matrix = Tensor::zeros(&[2, 3], DType::F32, &cpu)?;
    (&matrix + &Tensor::zeros(&[3], DType::F32, &cpu)?)?;
    let heads = Tensor::zeros(&[1, 1, 2, 3], DType::F32, &cpu)?;
    let mask = Some(Tensor::zeros(&[2, 2], DType::F32, &cpu)?);
    let options = AttentionOptions { mask, ..AttentionOptions::default() };
    heads.scaled_dot_product_attention(&heads, &heads, &options)?;
    let limit = std::time::Duration::from_millis(7500);
    stream.synchronize_timeout(limit)?;
    device.synchronize_timeout(limit)?;
    let mut event = device.event()?;
    event.record(&stream)?;
    event.synchronize_timeout(limit)?;
    stream.download_async(&c, device.pinned(4)?)?.wait_timeout(limit).map_err(|failed| failed.error)?;
    trace::stop()?;
    let (events, _) = read(path)?;
    check_events(&events)?;
    let arguments = |category: &str, name: &str| {
        let found = events.iter().find(|event| event["cat"] == category && event["name"] == name);
        found.map(|event| event["args"].clone()).ok_or_else(|| format!("no '{name}' of '{category}'"))
    };
    let call = arguments("engine", "gemm")?;
    // Six elements of each operand and four of the result.
    check(
        call["product"] == "2x2x3 (nn)"
            && call["engine"] == "simt"
            && call["dtype"] == "f32"
            && call["tile"].as_str().is_some_and(|tile| tile.contains('x'))
            && (&call["operations"], &call["bytes"]) == (&24.into(), &64.into())
            && call["reasons"].as_str().is_some_and(|reasons| reasons.contains("not wgmma: ")),
        &format!("the product is {call}"),
    )?;
    let kernel = call["kernel"].as_str().ok_or("a product without a kernel")?;
    expect(
        &events,
        &[("engine", "gemm", 1), ("launch", kernel, 1), ("kernel", kernel, 1), ("engine", "argsort", 1)],
    )?;
    let sorted = arguments("engine", "argsort")?;
    check(sorted["rows"] == "1 x 3" && sorted["dtype"] == "u8", &format!("the sort is {sorted}"))?;
    let sum = events.iter().find(|event| event["args"]["shapes"] == "[2, 3], [3]");
    let sum = &sum.ok_or("no sum")?["args"];
    check(sum["bytes"] == 60 && sum["result"] == "f32 [2, 3]", &format!("the sum is {sum}"))?;
    let reason = arguments("engine", "scaled_dot_product_attention")?;
    check(reason["reasons"] == "a mask", &format!("the attention says {reason}"))?;
    let limited: Vec<&Value> = events.iter().filter(|event| event["args"]["limit_us"] == 7_500_000).collect();
    check(limited.iter().all(|event| event["cat"] == "wait"), &format!("{limited:?}"))?;
    check(limited.len() == 4, &format!("{} waits with a limit, not 4", limited.len()))
}

/// Child: failing driver calls of the recorder's own fail nothing of the program.
fn refused(fake: &Fake, path: &Path) -> Outcome {
    let ground = Ground::new()?;
    for function in ["cuEventElapsedTime", "cuThreadExchangeStreamCaptureMode", "cuEventQuery"] {
        trace::start(path)?;
        check(fake.fail(function, 0, 999), "the fake driver has no such function")?;
        let mut a = ground.stream.zeros::<u8>(LENGTH)?;
        let made = ground.make(&ground.stream, &mut a, 3);
        trace::stop()?;
        fake.clear_failures();
        made?;
        ground.stream.synchronize()?;
        let (events, is_whole) = read(path)?;
        check(is_whole, "the file has no end")?;
        check_events(&events)?;
        expect(&events, &[("launch", "make", 1), ("kernel", "make", 0)])?;
        let end = &events[events.len() - 1]["args"];
        check(end["untimed"] == 2, &format!("{function}: the end says {end}"))?;
    }
    Ok(())
}

/// Child: the trace of the environment, killed before its end.
fn killed() -> Outcome {
    unsafe extern "C" {
        fn raise(signal: std::ffi::c_int) -> std::ffi::c_int;
    }
    let ground = Ground::new()?;
    check(trace::is_on(), "SELVEDGE_TRACE is not read")?;
    work(&ground)?;
    std::thread::sleep(std::time::Duration::from_millis(600));
    drop(trace::range("never flushed"));
    // SAFETY: SIGKILL ends this process.
    unsafe { raise(9) };
    Err("still alive".into())
}

/// Child: the trace of the environment, which the end of the process completes.
fn environment() -> Outcome {
    let ground = Ground::new()?;
    work(&ground)
}

/// Child: CUPTI's records become the device's work, and the driver times nothing.
fn cupti(fake: &Fake, path: &Path) -> Outcome {
    for round in 0..2 {
        trace::start(path)?;
        let ground = Ground::new()?;
        work(&ground)?;
        drop(ground);
        trace::stop()?;
        check(fake.call_count("cuEventElapsedTime") == 0, "the driver was asked for times")?;
        let (events, is_whole) = read(path)?;
        check(is_whole, "the file has no end")?;
        check_events(&events)?;
        // Two uploads, two launches, a copy and three launches of the graph have a kernel and a node each; the first kernel of a
        // launch has the launch's name.
        expect(
            &events,
            &[
                ("kernel", "make", 1),
                ("kernel", "mix", 1),
                ("launch", "mix", 2),
                ("kernel", "node_kernel", 9),
                ("kernel", "first_kernel", 7),
                ("graph launch", "a graph with mix", 3),
                ("graph", "a graph with mix", 0),
            ],
        )?;
        let arrows = events.iter().filter(|event| event["ph"] == "s").count();
        check(arrows == 9, &format!("{arrows} arrows for 9 operations in round {round}"))?;
        check(count(&events, "metadata", "selvedge_calibration") > 0, "no calibration")?;
        let make = events.iter().find(|event| event["cat"] == "kernel" && event["name"] == "make");
        let make = make.ok_or("no kernel")?;
        check(
            make["args"]["symbol"] == "first_kernel" && make["args"]["grid"] == "1x1x1" && make["dur"] == 2.0,
            &format!("the kernel is {make}"),
        )?;
        let node = events.iter().find(|event| event["name"] == "node_kernel").ok_or("no node")?;
        check(
            node["args"]["graph_node"] == 9 && node["args"]["grid"] == "3x1x1" && node["tid"] != make["tid"],
            &format!("the node is {node}"),
        )?;
        let other =
            events.iter().filter(|event| event["tid"].as_u64() >= Some(1 << 40) && event["ph"] == "X");
        check(other.count() > 0, "the kernels of nobody are not in the file")?;
        let end = &events[events.len() - 1]["args"];
        check(
            end["untimed"] == 0
                && end["device_clock"] == "CUPTI API 28"
                && end["device_clock_reason"].is_null(),
            &format!("the end says {end}"),
        )?;
    }
    Ok(())
}

/// Child: a CUPTI that does not serve is named, and events time.
fn without_cupti(path: &Path) -> Outcome {
    trace::start(path)?;
    let ground = Ground::new()?;
    work(&ground)?;
    trace::stop()?;
    let (events, _) = read(path)?;
    check_events(&events)?;
    expect(&events, &[("kernel", "make", 1), ("graph", "a graph with mix", 3)])?;
    let end = &events[events.len() - 1]["args"];
    println!("{} | {}", end["device_clock"], end["device_clock_reason"]);
    Ok(())
}

/// Child: a forked child leaves the trace alone.
fn fork(path: &Path) -> Outcome {
    trace::start(path)?;
    drop(trace::range("parent"));
    forks::in_fork(|| {
        check(!trace::is_on(), "the trace is on in a forked child")?;
        drop(trace::range("child"));
        trace::stop()?;
        let started = trace::start("/dev/null");
        check(matches!(started, Err(Error::InvalidArgument { .. })), &format!("a start answers {started:?}"))
    })?;
    drop(trace::range("parent again"));
    trace::stop()?;
    let (events, is_whole) = read(path)?;
    check(is_whole, "the file has no end")?;
    expect(&events, &[("range", "parent", 1), ("range", "parent again", 1), ("range", "child", 0)])
}

pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    let [name, path] = arguments else { return Err("trace NAME PATH".into()) };
    let path = Path::new(path);
    match &**name {
        "whole" => whole(path),
        "off" => off(fake, path),
        "fault" => fault(path),
        "refused" => refused(fake, path),
        "calls" => calls(path),
        "cupti" => cupti(fake, path),
        "without_cupti" => without_cupti(path),
        "killed" => killed(),
        "environment" => environment(),
        "fork" => fork(path),
        other => Err(format!("no test '{other}'").into()),
    }
}

/// Checks a file as a reader of another language does: scripts/check_trace.py by `SELVEDGE_TEST_PYTHON`, or `python3`.
fn check_by_python(path: &Path) -> Outcome {
    let python = std::env::var_os("SELVEDGE_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let script = crate::common::repository().join("scripts/check_trace.py");
    let output = match Command::new(python).arg(script).arg(path).output() {
        Ok(output) => output,
        Err(error) => {
            println!("{} is not checked by Python: {error}", path.display());
            return Ok(());
        }
    };
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    check(output.status.success() && text.contains(" arrows"), &text)
}

/// Runs a child with a path in a new folder, as its argument and in `SELVEDGE_TRACE` if `by_variable`.
fn run(
    name: &str,
    by_variable: bool,
    look: impl FnOnce(&Path, children::Ended) -> Outcome,
) -> Result<(), libtest_mimic::Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace.json.gz");
    let text = path.to_string_lossy().into_owned();
    let settings = [("SELVEDGE_TRACE", text.as_str())];
    let settings = if by_variable { &settings[..] } else { &[] };
    let arguments = [name.to_owned(), text.clone()];
    let ended = children::spawn(&Variant::new(12040), "trace", &arguments, settings)?;
    look(&path, ended)?;
    Ok(check_by_python(&path)?)
}

/// The library in place of CUPTI.
fn fake_cupti() -> std::io::Result<PathBuf> {
    const SOURCES: &str = "csrc/fake_cupti";
    let folder = variant::scratch(&format!("cupti-{:016x}", variant::fingerprint(SOURCES, ())?))?;
    let library = folder.join("libcupti.so");
    variant::make(&library, |unfinished| {
        let mut command = variant::compiler();
        command.args(["-std=gnu11", "-O2", "-fPIC", "-pthread", "-Wall", "-Wextra", "-shared"]);
        command.arg(crate::common::repository().join(SOURCES).join("cupti.c")).arg("-o").arg(unfinished);
        variant::compile(&mut command)
    })?;
    Ok(library)
}

/// Runs a child with the library in place of CUPTI, and returns what it prints.
fn with_cupti(child: &str, more: &[(&str, &str)]) -> Result<String, libtest_mimic::Failed> {
    let library = fake_cupti()?.display().to_string();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace.json.gz");
    let arguments = [child.to_owned(), path.display().to_string()];
    let mut settings = vec![("SELVEDGE_LIBCUPTI", library.as_str())];
    settings.extend(more);
    let text = children::must_succeed(&Variant::new(12040), "trace", &arguments, &settings)?;
    check_by_python(&path)?;
    Ok(text)
}

fn test(name: &'static str, child: &'static str) -> Test {
    Test::new(name, move || {
        run(child, false, |_, ended| if ended.success { Ok(()) } else { Err(ended.text.into()) })
    })
}

pub fn tests() -> Vec<Test> {
    vec![
        test("trace::every_event_is_in_the_file_once", "whole"),
        test("trace::no_trace_makes_no_driver_calls", "off"),
        test("trace::a_fault_ends_the_file_whole", "fault"),
        test("trace::refused_calls_of_the_recorder_fail_nothing", "refused"),
        test("trace::engines_operations_and_waits_say_what_they_do", "calls"),
        test("trace::a_forked_child_leaves_the_trace_alone", "fork"),
        Test::new("trace::cupti_times_each_kernel_if_it_is_there", || {
            with_cupti("cupti", &[("FAKE_CUPTI_OTHER", "1")]).map(drop)
        }),
        Test::new("trace::a_cupti_that_does_not_serve_is_named", || {
            let cases = [
                ("FAKE_CUPTI_REFUSE", "39", "another profiler"),
                ("FAKE_CUPTI_REFUSE", "35", "INSUFFICIENT_PRIVILEGES"),
                ("FAKE_CUPTI_VERSION", "17", "one of CUDA 12.1 to 13.5"),
                ("FAKE_CUPTI_VERSION", "140000", "version 14.0.0 of its interface"),
                ("SELVEDGE_LIBCUPTI", "none", "CUPTI could not be loaded"),
            ];
            for (variable, value, reason) in cases {
                let text = with_cupti("without_cupti", &[(variable, value)])?;
                check(
                    text.starts_with("\"event pairs\" | ") && text.contains(reason),
                    &format!("{value}: {text}"),
                )?;
            }
            Ok(())
        }),
        Test::new("trace::a_killed_process_leaves_its_last_flush", || {
            run("killed", true, |path, ended| {
                check(!ended.success && ended.text.is_empty(), &ended.text)?;
                let (events, is_whole) = read(path)?;
                check(!is_whole, "a killed process completed its file")?;
                check_events(&events)?;
                expect(
                    &events,
                    &[("launch", "make", 1), ("kernel", "make", 1), ("graph", "a graph with mix", 3)],
                )
            })
        }),
        Test::new("trace::the_end_of_the_process_completes_its_trace", || {
            run("environment", true, |path, ended| {
                check(ended.success, &ended.text)?;
                let (events, is_whole) = read(path)?;
                check(is_whole, "the file has no end")?;
                check_events(&events)?;
                expect(
                    &events,
                    &[("launch", "make", 1), ("kernel", "make", 1), ("metadata", "selvedge_end", 1)],
                )
            })
        }),
        Test::new("trace::a_variable_that_cannot_be_written_stops_nothing", || {
            let arguments = ["environment".to_owned(), String::new()];
            let settings = [("SELVEDGE_TRACE", "/no/such/folder/trace.json.gz")];
            children::must_succeed(&Variant::new(12040), "trace", &arguments, &settings).map(drop)
        }),
    ]
}
