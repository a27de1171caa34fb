//! The log lines of choices that change no result: accumulators, backends, and the move of a run.

use std::cell::RefCell;
use std::sync::{Arc, Once};

use log::Level;
use selvedge::burst::{Auto, Backend, Cpu, GeneratedNetwork, Neurons, Simulation};

use super::cases::network;
use super::recovery::losable;

thread_local! {
    static LINES: RefCell<Vec<(Level, String)>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the lines of each thread apart, as tests run beside each other.
struct Lines;

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        LINES.with_borrow_mut(|lines| lines.push((record.level(), record.args().to_string())));
    }

    fn flush(&self) {}
}

/// Returns the lines of some work on this thread.
fn lines(work: impl FnOnce()) -> Vec<(Level, String)> {
    static LOGGER: Once = Once::new();
    LOGGER.call_once(|| {
        log::set_logger(&Lines).unwrap();
        log::set_max_level(log::LevelFilter::Info);
    });
    LINES.take();
    work();
    LINES.take()
}

#[track_caller]
fn has(lines: &[(Level, String)], level: Level, parts: &[&str]) {
    let fits = |line: &(Level, String)| line.0 == level && parts.iter().all(|part| line.1.contains(part));
    assert!(lines.iter().any(fits), "no line of {level} with {parts:?} in {lines:?}");
}

#[test]
fn the_width_of_accumulators_is_logged_with_its_reason() {
    // The largest synapse is 65,025,000 thousandths, of which 33 fit 31 bits.
    for (synapses, parts) in [
        (33, ["32-bit accumulators", "is 2145825000 thousandths", "leaves 1658647"]),
        (34, ["64-bit accumulators", "is 2210850000 thousandths", "can overflow 32 bits"]),
    ] {
        let rows = vec![(0, 1, 255, 255, 0); synapses];
        let network = Arc::new(network(Neurons::new(2), &rows));
        let lines = lines(|| Cpu::with_threads(1).load(&network, 0).unwrap());
        has(&lines, Level::Info, &parts);
    }
}

#[test]
fn the_choice_of_a_backend_is_logged_with_both_times() {
    let generated = GeneratedNetwork::g(300, 10);
    let network = Arc::new(generated.network().unwrap());
    let mut auto = Auto::new(Box::new(Cpu::with_threads(2)), Box::new(Cpu::with_threads(1)));
    auto.load(&network, 7).unwrap();
    let lines = lines(|| {
        for burst in 1..=12 {
            auto.inject(&generated.injections(burst)).unwrap();
            auto.run_burst().unwrap();
        }
    });
    let chosen = auto.chosen().unwrap();
    has(&lines, Level::Info, &[&format!("{chosen} goes on: "), "ms a burst, and ", " ms on CPU"]);
}

#[test]
fn a_run_that_moves_from_a_lost_device_says_so_as_a_warning() {
    let (backend, _) = losable(3);
    let network = Arc::new(GeneratedNetwork::g(100, 5).network().unwrap());
    let mut simulation = Simulation::new(network, backend, 7).unwrap();
    simulation.run(2).unwrap();
    assert!(simulation.run(5).is_err());
    let lines = lines(|| simulation.recover(Box::new(Cpu::with_threads(1))).unwrap());
    has(&lines, Level::Warn, &["losable failed; CPU", "goes on, and repeated the 2 bursts"]);
}
