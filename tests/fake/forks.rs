//! Processes forked from one that had used CUDA: every entry says so there, drops leave the driver alone, and the parent
//! never notices.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use selvedge::Error;
use selvedge::driver::{self, Attribute, Device, LaunchConfig, PoolStatistics};
use selvedge::launcher::Launcher;
use selvedge::nvrtc::Cache;

use super::kernels::PTX;
use super::support::Fake;
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
    fn alarm(seconds: u32) -> u32;
}

/// Runs the closure in a forked child. Its result comes back as an exit status, its messages go to the output.
pub fn in_fork(work: impl FnOnce() -> Outcome) -> Outcome {
    // SAFETY: the child uses nothing that a lock of another thread could guard, but for the allocator, which libc
    // unlocks in the child, and ends without running the parent's exit handlers.
    let process = unsafe { fork() };
    if process == 0 {
        // SAFETY: no handler is set: a child that hangs is ended, and the parent sees the signal.
        unsafe { alarm(30) };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let code = match outcome {
            Ok(Ok(())) => 0,
            Ok(Err(error)) => {
                println!("in the child: {error}");
                1
            }
            Err(_) => 2,
        };
        // SAFETY: ends this process.
        unsafe { _exit(code) }
    }
    let mut status = 0;
    // SAFETY: the pointer is to a local.
    if process < 0 || unsafe { waitpid(process, &mut status, 0) } != process {
        return Err("fork or waitpid failed".into());
    }
    if status == 0 { Ok(()) } else { Err(format!("the child ended with status {status:#x}").into()) }
}

/// Child: everything that is alive at the fork, used and dropped on the other side of it.
pub fn after_use(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let other = Device::new(1)?;
    let (stream, second) = (device.stream()?, device.stream()?);
    let module = device.load(PTX.as_bytes())?;
    let make = module.function("make")?;
    let global = module.global::<u8>("state")?;
    let mut buffer = stream.zeros::<u8>(64)?;
    // Cached blocks of both kinds, which could be given out without a driver call.
    drop((stream.zeros::<u8>(64)?, device.pinned::<u8>(64)?));
    let mut event = device.event()?;
    event.record(&stream)?;
    let registered = device.register(vec![1u8; 64])?;
    let idle = device.register(vec![2u8; 64])?;
    let transfer = stream.upload_async(registered, &mut buffer)?;
    let unwaited = second.download_async(&buffer, device.pinned(64)?)?;
    let config = LaunchConfig::new(1, 32);
    // SAFETY: the fake driver's kernel touches the bytes that its arguments name.
    unsafe { make.launch(&stream, config, (&mut buffer, 64u64, 1u32))? };

    in_fork(|| {
        let calls = fake.calls();
        let pinned: Result<_, Error> = device.pinned::<u8>(64);
        for (name, result) in [
            ("driver_version", driver::driver_version().map(drop)),
            ("count", Device::count().map(drop)),
            ("new", Device::new(1).map(drop)),
            ("from_uuid", Device::from_uuid("GPU-0").map(drop)),
            ("attribute", device.attribute(Attribute::WARP_SIZE).map(drop)),
            ("can_access_peer", device.can_access_peer(&other).map(drop)),
            ("memory_info", device.memory_info().map(drop)),
            ("trim", device.trim()),
            ("device synchronize", device.synchronize()),
            ("stream", other.stream().map(drop)),
            ("event", device.event().map(drop)),
            ("pinned", pinned.map(drop)),
            ("register", device.register(vec![1u8]).map(drop).map_err(Error::from)),
            ("load", device.load(PTX.as_bytes()).map(drop)),
            ("function", module.function("mix").map(drop)),
            ("attributes", make.attributes().map(drop)),
            ("global", global.read(&stream).map(drop)),
            ("uninitialized", stream.uninitialized::<u8>(64).map(drop)),
            ("zeros", stream.zeros::<u8>(64).map(drop)),
            ("fill", stream.fill(&mut buffer, 1)),
            ("download", stream.download(&buffer).map(drop)),
            // SAFETY: it is refused.
            ("launch", unsafe { make.launch(&stream, config, (&mut buffer, 64u64, 1u32)) }),
            ("record", event.record(&stream)),
            ("wait", stream.wait(&event)),
            ("is_idle", stream.is_idle().map(drop)),
            ("synchronize", stream.synchronize()),
            ("on_complete", stream.on_complete(|| ())),
            ("transfer", transfer.wait().map(drop)),
        ] {
            if !matches!(result, Err(Error::ForkedProcess)) {
                return Err(format!("{name}: {result:?}").into());
            }
        }
        let text = Error::ForkedProcess.to_string();
        if !text.contains("exec") || !device.is_lost() {
            return Err(format!("not said: {text}").into());
        }
        drop((buffer, make, module, global, event, unwaited, idle, second, stream));
        match fake.calls() - calls {
            0 => Ok(()),
            more => Err(format!("{more} driver calls in the child").into()),
        }
    })?;

    // The closure, and all that it had taken, lives on in this process, where it is used up by now.
    let stream = device.stream()?;
    if stream.download(&stream.upload(&[1u8, 2, 3])?)? != [1, 2, 3] || device.is_lost() {
        return Err("the parent was disturbed".into());
    }
    drop(stream);
    scenario::settle()?;
    Ok(())
}

/// Child: one that is forked before CUDA is used may use it, and so may its parent.
pub fn before_use(fake: &Fake) -> Outcome {
    let works = || -> Outcome {
        scenario::run(fake, &mut || {})?;
        scenario::settle()?;
        scenario::check_end(fake)
    };
    in_fork(works)?;
    works()
}

/// Child: forks while other threads are in the middle of everything. A lock that one of them holds stays locked in the
/// child for ever, so a drop that took one would hang there.
pub fn of_threads(_: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let spawn = |_| {
            scope.spawn(|| -> Result<(), Error> {
                let streams = [device.stream()?, device.stream()?];
                while !stop.load(Ordering::Relaxed) {
                    let mut buffer = streams[0].uninitialized::<u8>(64)?;
                    streams[1].fill(&mut buffer, 1)?;
                    let transfer = streams[0].download_async(&buffer, device.pinned(64)?)?;
                    drop((buffer, streams[1].clone(), transfer));
                    drop(device.register(vec![1u8; 64])?);
                    drop((
                        device.pool_statistics(),
                        device.memory_snapshot()?,
                        device.memory_scope("a part"),
                    ));
                }
                Ok(())
            })
        };
        let threads = [0, 1, 2].map(spawn);
        let forks = || -> Outcome {
            for _ in 0..100 {
                let (stream, second) = (device.stream()?, device.stream()?);
                let mut buffer = stream.zeros::<u8>(64)?;
                second.fill(&mut buffer, 2)?;
                let transfer = second.download_async(&buffer, device.pinned(64)?)?;
                let module = device.load(PTX.as_bytes())?;
                let (event, registered) = (device.event()?, device.register(vec![1u8; 64])?);
                in_fork(move || {
                    drop((stream, module, buffer, transfer, second, event, registered));
                    let refused = |result| matches!(result, Err(Error::ForkedProcess));
                    // SAFETY: it is refused.
                    let reset = unsafe { device.reset() };
                    let asked = [
                        refused(reset.map(drop)),
                        refused(device.memory_snapshot().map(drop)),
                        refused(device.start_memory_trace()),
                        refused(device.finish_memory_trace().map(drop)),
                        refused(device.trim()),
                        device.memory_scope("child").finish().peak_bytes == 0,
                        device.pool_statistics() == PoolStatistics::default(),
                    ];
                    if asked.contains(&false) {
                        return Err(format!("the memory's entries: {asked:?}").into());
                    }
                    match device.synchronize() {
                        Err(Error::ForkedProcess) => Ok(()),
                        other => Err(format!("{other:?}").into()),
                    }
                })?;
            }
            Ok(())
        };
        let outcome = forks();
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        outcome
    })
}

/// Child: forks while other threads load images by name, so that a launcher's locks stay locked in the child.
pub fn of_launchers(_: &Fake) -> Outcome {
    let launcher = Launcher::with_cache(&Device::new(0)?, Cache::none())?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let enter = || -> Result<(), Error> {
            while !stop.load(Ordering::Relaxed) {
                // The one before is dropped, so that it is loaded each time.
                launcher.load("make", PTX)?;
                launcher.load("make", PTX.replace("64 .b8", "128 .b8"))?;
            }
            Ok(())
        };
        let threads = [0, 1].map(|_| scope.spawn(enter));
        let asks = || -> Outcome {
            let asked = [launcher.load("make", PTX), launcher.kernel("make")].map(|found| match found {
                Err(Error::ForkedProcess) => "refused".to_owned(),
                other => format!("{other:?}"),
            });
            if asked == ["refused", "refused"] { Ok(()) } else { Err(format!("{asked:?}").into()) }
        };
        let outcome = (0..200).try_for_each(|_| in_fork(asks));
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        outcome
    })
}

pub fn tests() -> Vec<Test> {
    let test = |name: &'static str, child: &'static str| {
        Test::new(name, move || children::must_succeed(&Variant::new(12040), child, &[], &[]).map(drop))
    };
    vec![
        test("forks::a_child_gets_an_error_and_leaves_the_driver_alone", "forks"),
        test("forks::a_child_forked_before_use_may_use_it", "forks_before_use"),
        test("forks::drops_take_no_locks_in_a_child", "forks_of_threads"),
        test("forks::a_launchers_locks_are_not_waited_for_in_a_child", "forks_of_launchers"),
    ]
}
