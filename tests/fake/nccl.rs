//! Collective operations on devices, on an NCCL whose ranks are threads of this process (`csrc/fake_nccl`): their values, their order with
//! other work of streams, the errors of every call, and ranks that are absent, differ or give up.

use std::ffi::{CString, c_char, c_int};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use selvedge::collective::{Communicator, DeviceCommunicator, ReduceOp};
use selvedge::driver::{Device, DeviceBuffer, Stream};
use selvedge::{Error, bf16};

use super::support::Fake;
use super::variant::{self, Variant};
use super::{children, common};
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

const RANKS: usize = 3;

fn check(holds: bool, text: impl Into<String>) -> Outcome {
    if holds { Ok(()) } else { Err(text.into().into()) }
}

/// The control functions of the fake NCCL.
struct Nccl(libloading::Library);

impl Nccl {
    fn open() -> Result<Nccl, Box<dyn std::error::Error + Send + Sync>> {
        // SAFETY: the library is this suite's own.
        Ok(Nccl(unsafe { libloading::Library::new(std::env::var("SELVEDGE_LIBNCCL")?)? }))
    }

    /// Lets the next call of a function answer a code.
    fn fail(&self, name: &str, code: i32) -> Outcome {
        let name = CString::new(name)?;
        // SAFETY: the type is that of nccl.c.
        unsafe {
            self.0.get::<unsafe extern "C" fn(*const c_char, c_int)>(b"fake_nccl_fail")?(name.as_ptr(), code)
        };
        Ok(())
    }

    /// Returns the number of communicators.
    fn alive(&self) -> Result<i32, Box<dyn std::error::Error + Send + Sync>> {
        // SAFETY: as above.
        Ok(unsafe { self.0.get::<unsafe extern "C" fn() -> c_int>(b"fake_nccl_alive")?() })
    }
}

fn devices(fake: &Fake, count: usize) -> selvedge::Result<Vec<Device>> {
    fake.set_devices(count as i32);
    (0..count).map(Device::new).collect()
}

/// Runs every rank in a thread of its own with a stream of its device.
fn with_ranks(
    ranks: Vec<DeviceCommunicator>,
    work: impl Fn(&DeviceCommunicator, &Stream) -> Outcome + Sync,
) -> Outcome {
    std::thread::scope(|scope| {
        let run = |rank: DeviceCommunicator| {
            let work = &work;
            scope.spawn(move || work(&rank, &rank.device().stream()?))
        };
        let threads: Vec<_> = ranks.into_iter().map(run).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a rank panicked")?)
    })
}

fn values(tag: usize, length: usize) -> Vec<i32> {
    (0..length).map(|at| (tag * 100 + at % 100) as i32).collect()
}

/// Child: the values of each operation.
fn operations(fake: &Fake) -> Outcome {
    let devices = devices(fake, RANKS)?;
    for length in [1, 6, 300] {
        with_ranks(DeviceCommunicator::in_process(&devices)?, |rank, stream| {
            let own = rank.rank();
            let sum: Vec<i32> =
                (0..length).map(|at| (0..RANKS).map(|rank| values(rank, length)[at]).sum()).collect();
            let in_order: Vec<i32> = (0..RANKS).flat_map(|rank| values(rank, length)).collect();
            let upload = |tag: usize| stream.upload(&values(tag, length));
            let mut all = upload(own)?;
            rank.all_reduce(stream, &mut all, ReduceOp::Sum)?;
            check(stream.download(&all)? == sum, "all_reduce")?;
            let mut all = upload(own)?;
            rank.reduce(stream, &mut all, 1, ReduceOp::Sum)?;
            check(
                stream.download(&all)? == if own == 1 { sum.clone() } else { values(own, length) },
                "reduce",
            )?;
            let mut all = upload(own)?;
            rank.broadcast(stream, &mut all, 2)?;
            check(stream.download(&all)? == values(2, length), "broadcast")?;
            let mut gathered = stream.zeros::<i32>(RANKS * length)?;
            rank.all_gather(stream, &upload(own)?, &mut gathered)?;
            check(stream.download(&gathered)? == in_order, "all_gather")?;
            let mut part = stream.zeros::<i32>(length)?;
            rank.reduce_scatter(stream, &stream.upload(&in_order)?, &mut part, ReduceOp::Max)?;
            check(stream.download(&part)? == values(own, length), "reduce_scatter")?;
            // From rank f to rank t: the tag 10 f + t.
            let outgoing: Vec<i32> = (0..RANKS).flat_map(|to| values(10 * own + to, length)).collect();
            let mut received = stream.zeros::<i32>(RANKS * length)?;
            rank.all_to_all(stream, &stream.upload(&outgoing)?, &mut received)?;
            let wanted: Vec<i32> = (0..RANKS).flat_map(|from| values(10 * from + own, length)).collect();
            check(stream.download(&received)? == wanted, "all_to_all")?;
            let mut gathered = stream.zeros::<i32>(RANKS * length)?;
            let to = if own == 0 { Some(gathered.slice_mut(..)?) } else { None };
            rank.gather(stream, &upload(own)?, to, 0)?;
            check(
                stream.download(&gathered)?
                    == if own == 0 { in_order.clone() } else { vec![0; RANKS * length] },
                "gather",
            )?;
            let all = stream.upload(&in_order)?;
            let from = if own == 1 { Some(all.slice(..)?) } else { None };
            rank.scatter(stream, from, &mut part, 1)?;
            check(stream.download(&part)? == values(own, length), "scatter")?;
            rank.send_receive(stream, (&upload(own)?, (own + 1) % RANKS), (&mut part, (own + 2) % RANKS))?;
            check(stream.download(&part)? == values((own + 2) % RANKS, length), "send_receive")?;
            rank.barrier()?;
            rank.synchronize(stream)?;
            Ok(())
        })?;
    }
    check(Nccl::open()?.alive()? == 0, "a communicator is left")?;
    check(fake.violations().is_empty(), fake.violations().join("\n"))
}

/// Child: counts of an uneven exchange, messages, dtypes and a division.
fn parts(fake: &Fake) -> Outcome {
    let devices = devices(fake, RANKS)?;
    with_ranks(DeviceCommunicator::in_process(&devices)?, |rank, stream| {
        let own = rank.rank();
        let count = |from: usize, to: usize| from + 2 * to;
        let counts: Vec<usize> = (0..RANKS).map(|to| count(own, to)).collect();
        let received_counts: Vec<usize> = (0..RANKS).map(|from| count(from, own)).collect();
        let outgoing: Vec<u16> =
            (0..RANKS).flat_map(|to| vec![(10 * own + to) as u16; count(own, to)]).collect();
        let mut received = stream.zeros::<u16>(received_counts.iter().sum())?;
        rank.all_to_all_uneven(
            stream,
            (&stream.upload(&outgoing)?, &counts),
            (&mut received, &received_counts),
        )?;
        let wanted: Vec<u16> =
            (0..RANKS).flat_map(|from| vec![(10 * from + own) as u16; count(from, own)]).collect();
        check(stream.download(&received)? == wanted, "all_to_all_uneven")?;
        let mut two = stream.upload(&[own as u8, 7])?;
        match own {
            0 => rank.send(stream, &two, 2)?,
            2 => rank.receive(stream, &mut two, 0)?,
            _ => {}
        }
        check(stream.download(&two)? == if own == 2 { [0, 7] } else { [own as u8, 7] }, "send and receive")?;
        let mut half = stream.upload(&[bf16::from_f32(own as f32); 4])?;
        rank.all_reduce(stream, &mut half, ReduceOp::Mean)?;
        check(stream.download(&half)? == [bf16::ONE; 4], "the mean of bf16")?;
        let mut complex = stream.upload(&[selvedge::Complex::new(own as f64, 1.0)])?;
        rank.all_reduce(stream, &mut complex, ReduceOp::Sum)?;
        check(
            stream.download(&complex)? == [selvedge::Complex::new(3.0, 3.0)],
            "the sum of complex numbers",
        )?;
        let text =
            |result: selvedge::Result<()>| result.err().map(|error| error.to_string()).unwrap_or_default();
        let refused = text(rank.all_reduce(stream, &mut received, ReduceOp::Sum));
        check(refused.contains("u16, which NCCL does not reduce"), refused)?;
        let refused = text(rank.broadcast(stream, &mut two, RANKS));
        check(refused.contains("root 3"), refused)?;
        let refused = text(rank.all_gather(stream, &half, &mut stream.zeros::<bf16>(5)?));
        check(refused.contains("needs 12 elements"), refused)?;
        let other = Device::new((own + 1) % RANKS)?.stream()?;
        let refused = text(rank.all_reduce(&other, &mut half, ReduceOp::Sum));
        check(refused.contains("one device"), refused)?;
        // The refusals left the communicator as it was. Ranks 0 and 2 are a world in reverse order.
        let Some(group) = rank.split((own != 1).then_some(5), -(own as i64))? else {
            return check(own == 1, "split");
        };
        check((group.rank(), group.world_size()) == (usize::from(own == 0), 2), "the order of a division")?;
        let mut sum = stream.upload(&[own as i64])?;
        group.all_reduce(stream, &mut sum, ReduceOp::Sum)?;
        check(stream.download(&sum)? == [2], "a sum of a division")
    })?;
    let twice = DeviceCommunicator::in_process(&[devices[0], devices[0]]);
    check(twice.is_err_and(|error| error.to_string().contains("for two ranks")), "two ranks on a device")?;
    check(fake.violations().is_empty(), fake.violations().join("\n"))
}

/// Child: threads share a communicator, and a dropped one is named.
fn shared(fake: &Fake) -> Outcome {
    let devices = devices(fake, 2)?;
    let gone = std::sync::Barrier::new(2);
    with_ranks(DeviceCommunicator::in_process(&devices)?, |rank, _| {
        std::thread::scope(|scope| {
            let call = || -> Outcome {
                let stream = rank.device().stream()?;
                let mut memory = stream.upload(&[1.0f32; 8])?;
                for _ in 0..20 {
                    rank.all_reduce(&stream, &mut memory, ReduceOp::Mean)?;
                }
                check(stream.download(&memory)? == [1.0; 8], "the mean of equal values")
            };
            let threads = [scope.spawn(call), scope.spawn(call)];
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
        })
    })?;
    let mut ranks = DeviceCommunicator::in_process(&devices)?;
    let late = ranks.pop().ok_or("a rank")?;
    std::thread::scope(|scope| {
        let gone = &gone;
        scope.spawn(move || {
            drop(ranks);
            gone.wait();
        });
        gone.wait();
        let stream = late.device().stream()?;
        let start = Instant::now();
        loop {
            // The notice may come a moment later.
            let mut memory = stream.upload(&[1.0f32; 8])?;
            let (culprit, text) = fault(late.all_reduce(&stream, &mut memory, ReduceOp::Sum))?;
            check(start.elapsed() < Duration::from_secs(5), "a finished rank is not named")?;
            if culprit == Some(0) {
                return check(text.contains("has finished"), text);
            }
        }
    })
}

/// Child: a call waits for the writer of its memory on another stream, and the next user waits for it.
fn order(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    let devices = devices(fake, 1)?;
    with_ranks(DeviceCommunicator::in_process(&devices)?, |rank, stream| {
        let other = rank.device().stream()?;
        let mut memory: DeviceBuffer<f32> = other.zeros(64)?;
        rank.all_reduce(stream, &mut memory, ReduceOp::Sum)?;
        other.fill(&mut memory, 2.0)?;
        rank.all_reduce(stream, &mut memory, ReduceOp::Sum)?;
        check(other.download(&memory)? == [2.0; 64], "the order of streams")
    })?;
    check(fake.violations().is_empty(), fake.violations().join("\n"))
}

/// Returns the rank at fault and the text of a collective error.
fn fault(
    result: selvedge::Result<()>,
) -> Result<(Option<usize>, String), Box<dyn std::error::Error + Send + Sync>> {
    match result {
        Err(error @ Error::Collective { culprit, .. }) => Ok((culprit, error.to_string())),
        Err(other) => Err(other.to_string().into()),
        Ok(()) => Err("the call succeeded".into()),
    }
}

/// Child: each function of NCCL fails once on one rank, which ends the communicator on all.
fn errors(fake: &Fake) -> Outcome {
    let devices = devices(fake, 2)?;
    let nccl = Nccl::open()?;
    for name in ["ncclGroupStart", "ncclAllReduce", "ncclGroupEnd", "ncclCommGetAsyncError"] {
        let failing = std::sync::Barrier::new(2);
        with_ranks(DeviceCommunicator::in_process(&devices)?, |rank, stream| {
            let mut memory = stream.upload(&[1.0f32; 8])?;
            if rank.rank() == 1 {
                nccl.fail(name, 3)?;
            }
            failing.wait();
            // The other rank calls after the fault, so that it is not the one that has it.
            if rank.rank() == 0 {
                std::thread::sleep(Duration::from_millis(50));
            }
            let (_, text) = fault(rank.all_reduce(stream, &mut memory, ReduceOp::Sum))?;
            check(text.contains(name) && text.contains("ncclInternalError"), format!("{name}: {text}"))?;
            // Wrong elements are not read in silence: each wait has the error, until the communicator is dropped.
            for _ in 0..2 {
                let (_, text) = fault(stream.synchronize())?;
                check(text.contains(name), text)?;
            }
            let (_, text) = fault(rank.all_reduce(stream, &mut memory, ReduceOp::Sum))?;
            check(text.contains(name), text)
        })?;
    }
    for name in ["ncclGetUniqueId", "ncclCommInitRankConfig"] {
        nccl.fail(name, 2)?;
        let error =
            DeviceCommunicator::in_process(&devices).err().map(|error| error.to_string()).unwrap_or_default();
        // The first rank's error.
        check(error.contains(name) || error.contains("rank"), format!("{name}: {error}"))?;
    }
    check(nccl.alive()? == 0, "a communicator is left")
}

/// Child: ranks that are absent, differ, abort and end.
fn absent(fake: &Fake) -> Outcome {
    let devices = devices(fake, 2)?;
    let with_timeout = || -> Result<Vec<DeviceCommunicator>, Error> {
        let mut ranks = DeviceCommunicator::in_process(&devices)?;
        ranks.iter_mut().for_each(|rank| rank.set_timeout(Duration::from_millis(300)));
        Ok(ranks)
    };
    let start = Instant::now();
    let done = std::sync::Barrier::new(2);
    with_ranks(with_timeout()?, |rank, stream| {
        let mut memory = stream.upload(&[1.0f32; 8])?;
        if rank.rank() == 1 {
            done.wait();
            let (_, text) = fault(rank.all_reduce(stream, &mut memory, ReduceOp::Sum))?;
            return check(text.contains("ranks that have not come"), text);
        }
        let (_, text) = fault(rank.all_reduce(stream, &mut memory, ReduceOp::Sum))?;
        done.wait();
        check(text.contains("300 ms"), text)
    })?;
    let done = std::sync::Barrier::new(2);
    with_ranks(with_timeout()?, |rank, stream| {
        let mut memory = stream.upload(&[1.0f32; 8])?;
        if rank.rank() == 1 {
            rank.abort();
        }
        let (culprit, text) = fault(rank.all_reduce(stream, &mut memory, ReduceOp::Sum))?;
        done.wait();
        check(culprit == Some(1) && text.contains("aborted"), text)
    })?;
    check(start.elapsed() < Duration::from_secs(10), "a rank waited for long")?;
    check(Nccl::open()?.alive()? == 0, "a communicator is left")
}

/// Child: with SELVEDGE_COLLECTIVE_CHECK, ranks that differ or are absent are named before anything is queued.
fn compared(fake: &Fake) -> Outcome {
    let devices = devices(fake, 2)?;
    with_ranks(DeviceCommunicator::in_process(&devices)?, |rank, stream| {
        let mut memory = stream.upload(&vec![1.0f32; 8 + rank.rank()])?;
        let mut same = stream.upload(&[1.0f32; 2])?;
        rank.all_reduce(stream, &mut same, ReduceOp::Sum)?;
        check(stream.download(&same)? == [2.0; 2], "a call that all make")?;
        // Two ranks alone make a message.
        match rank.rank() {
            0 => rank.send(stream, &same, 1)?,
            _ => rank.receive(stream, &mut same, 0)?,
        }
        let (_, text) = fault(rank.all_reduce(stream, &mut memory, ReduceOp::Sum))?;
        check(text.contains("all_reduce of 8 f32") && text.contains("all_reduce of 9 f32"), text)
    })?;
    let done = std::sync::Barrier::new(2);
    let mut ranks = DeviceCommunicator::in_process(&devices)?;
    ranks.iter_mut().for_each(|rank| rank.set_timeout(Duration::from_millis(300)));
    with_ranks(ranks, |rank, stream| {
        let mut memory = stream.upload(&[1.0f32; 8])?;
        if rank.rank() == 0 {
            let (culprit, text) = fault(rank.all_reduce(stream, &mut memory, ReduceOp::Sum))?;
            check(culprit == Some(1) && text.contains("time-out"), text)?;
        }
        done.wait();
        Ok(())
    })
}

/// Child: no NCCL, or one that is too old.
fn unusable(fake: &Fake) -> Outcome {
    let devices = devices(fake, 2)?;
    let ranks = Communicator::in_process(2)?;
    std::thread::scope(|scope| {
        let create = |(rank, device)| scope.spawn(move || DeviceCommunicator::new(rank, device).map(drop));
        let threads: Vec<_> = ranks.iter().zip(&devices).map(create).collect();
        threads.into_iter().try_for_each(|thread| {
            let error =
                thread.join().map_err(|_| "a rank panicked")?.err().ok_or("a communicator was created")?;
            println!("{error}");
            Ok(())
        })
    })
}

/// A test in a process of its own.
pub fn child(fake: &Fake, arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let work = match arguments[0].as_str() {
        "operations" => operations,
        "parts" => parts,
        "order" => order,
        "shared" => shared,
        "errors" => errors,
        "absent" => absent,
        "compared" => compared,
        "unusable" => unusable,
        other => return Err(format!("no child '{other}'").into()),
    };
    work(fake).map_err(|error| error.to_string().into())
}

/// Compiles the fake library, unless that was done, and returns its path.
fn library() -> std::io::Result<PathBuf> {
    static BUILT: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = BUILT.lock();
    const SOURCES: &str = "csrc/fake_nccl";
    let source = common::repository().join(SOURCES).join("nccl.c");
    let folder = variant::scratch(&format!("fake-nccl-{:016x}", variant::fingerprint(SOURCES, ())?))?;
    variant::make(&folder.join("libnccl.so.2"), |unfinished| {
        variant::compile(
            variant::compiler()
                .args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra"])
                .arg(source)
                .args(["-ldl", "-lm", "-lpthread", "-o"])
                .arg(unfinished),
        )
    })?;
    Ok(folder.join("libnccl.so.2"))
}

fn run(name: &str, library: &str, settings: &[(&str, &str)]) -> Result<String, Failed> {
    let mut all = vec![("SELVEDGE_LIBNCCL", library)];
    all.extend(settings);
    children::must_succeed(&Variant::new(12040), "nccl", &[name.to_owned()], &all)
}

pub fn tests() -> Vec<Test> {
    let with_library =
        |name: &str, settings: &[(&str, &str)]| run(name, &library()?.display().to_string(), settings);
    let says = |text: String, parts: &[&str]| match parts.iter().find(|part| !text.contains(**part)) {
        Some(part) => Err(format!("'{part}' is not in: {text}").into()),
        None => Ok(()),
    };
    vec![
        Test::new("nccl::operations", move || with_library("operations", &[]).map(drop)),
        Test::new("nccl::parts", move || with_library("parts", &[]).map(drop)),
        Test::new("nccl::order", move || with_library("order", &[]).map(drop)),
        Test::new("nccl::shared", move || with_library("shared", &[]).map(drop)),
        Test::new("nccl::blocking", move || {
            let text = with_library("unusable", &[("NCCL_COMM_BLOCKING", "1")])?;
            says(text, &["found NCCL_COMM_BLOCKING=1"])
        }),
        Test::new("nccl::errors", move || with_library("errors", &[]).map(drop)),
        Test::new("nccl::absent", move || with_library("absent", &[]).map(drop)),
        Test::new("nccl::compared", move || {
            with_library("compared", &[("SELVEDGE_COLLECTIVE_CHECK", "1")]).map(drop)
        }),
        Test::new("nccl::old", move || {
            let text = with_library("unusable", &[("FAKE_NCCL_VERSION", "21203")])?;
            says(text, &["found NCCL 2.12.3", "wanted NCCL 2.18 or newer"])
        }),
        Test::new("nccl::missing", move || {
            let text = run("unusable", "none", &[])?;
            says(text, &["NCCL could not be loaded", "SELVEDGE_LIBNCCL"])
        }),
    ]
}
