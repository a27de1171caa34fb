//! A function of the host runs when the stream gets there, once, and one that panics harms nothing.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::support::{Lab, Outcome, SLOW, assert_all, assert_open, device_tests};

device_tests! {
    it_runs_when_its_turn_comes, they_run_in_order, later_work_waits_for_it, a_panic_is_caught => in_child(&[]), the_closure_is_dropped_once,
}

const PATIENCE: Duration = Duration::from_secs(30);

fn it_runs_when_its_turn_comes() -> Outcome {
    let lab = Lab::new()?;
    let (sender, receiver) = mpsc::channel();
    lab.delay(&lab.stream, SLOW)?;
    lab.stream.on_complete(move || {
        let _ = sender.send(std::thread::current().id());
    })?;
    assert_open(receiver.try_recv().is_err(), "the callback");
    let thread = receiver.recv_timeout(PATIENCE)?;
    assert_ne!(thread, std::thread::current().id());
    lab.stream.synchronize()?;
    Ok(())
}

fn they_run_in_order() -> Outcome {
    let lab = Lab::new()?;
    let (sender, receiver) = mpsc::channel();
    for number in 0..100 {
        let sender = sender.clone();
        lab.stream.on_complete(move || {
            let _ = sender.send(number);
        })?;
    }
    drop(sender);
    lab.stream.synchronize()?;
    assert!(receiver.iter().eq(0..100));
    Ok(())
}

fn later_work_waits_for_it() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(100)?;
    let (release, gate) = mpsc::channel::<()>();
    lab.stream.on_complete(move || {
        let _ = gate.recv_timeout(PATIENCE);
    })?;
    lab.set(&lab.stream, values.slice_mut(..)?, 1, 0)?;
    std::thread::sleep(Duration::from_millis(20));
    assert!(!lab.stream.is_idle()?, "the kernel waits for the callback");
    release.send(())?;
    assert_all(&lab.stream.download(&values)?, 1, "the buffer");
    Ok(())
}

fn a_panic_is_caught() -> Outcome {
    let reports = Arc::new(AtomicU32::new(0));
    let seen = reports.clone();
    selvedge::error::set_deferred_error_hook(Some(Box::new(move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
    })));
    std::panic::set_hook(Box::new(|_| ()));
    let lab = Lab::new()?;
    lab.stream.on_complete(|| panic!("on purpose"))?;
    lab.stream.synchronize()?;
    assert_eq!(reports.load(Ordering::SeqCst), 1);
    let mut values = lab.stream.zeros::<u32>(10)?;
    lab.set(&lab.stream, values.slice_mut(..)?, 1, 0)?;
    assert_all(&lab.stream.download(&values)?, 1, "the stream goes on");
    Ok(())
}

fn the_closure_is_dropped_once() -> Outcome {
    struct Counted(Arc<AtomicU32>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let lab = Lab::new()?;
    let drops = Arc::new(AtomicU32::new(0));
    for _ in 0..10 {
        let counted = Counted(drops.clone());
        lab.stream.on_complete(move || {
            let _whole = &counted;
        })?;
    }
    lab.stream.synchronize()?;
    // The stream is done when the driver's thread has returned, which is after the drop.
    assert_eq!(drops.load(Ordering::SeqCst), 10);
    Ok(())
}
