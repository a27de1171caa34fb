//! Signals that end a run after its step, and a generation after its id.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Interrupt,
    Terminate,
}

impl Signal {
    /// Returns the code that a shell gives to a program that the signal ended. SIGUSR1, which schedulers send before they end
    /// a job, counts as SIGTERM.
    pub fn exit_code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }

    /// Returns the name of the signal for a message.
    pub fn name(self) -> &'static str {
        if self == Signal::Interrupt { "Ctrl-C" } else { "a signal" }
    }
}

/// The flag that signals set.
#[derive(Debug)]
pub struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Catches SIGINT, SIGTERM and, where there is one, SIGUSR1. A second signal of a kind ends the process at once.
    pub fn catch() -> Result<Signals, Failure> {
        let flag = Arc::new(AtomicUsize::new(0));
        let mut signals = vec![(SIGINT, 1), (SIGTERM, 2)];
        #[cfg(unix)]
        signals.push((signal_hook::consts::SIGUSR1, 2));
        for (signal, value) in signals {
            let catch = || -> std::io::Result<()> {
                // In this order: the first signal only sets the flag, which the second finds set.
                let second = Arc::new(std::sync::atomic::AtomicBool::new(false));
                let code = if value == 1 { 130 } else { 143 };
                signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&second))?;
                signal_hook::flag::register(signal, second)?;
                signal_hook::flag::register_usize(signal, Arc::clone(&flag), value)?;
                Ok(())
            };
            catch().map_err(|error| Failure::failed(format!("signal {signal} cannot be caught: {error}")))?;
        }
        Ok(Signals(flag))
    }

    /// Catches SIGINT and SIGTERM, however often they come.
    pub fn catch_all() -> Result<Signals, Failure> {
        let flag = Arc::new(AtomicUsize::new(0));
        for (signal, value) in [(SIGINT, 1), (SIGTERM, 2)] {
            signal_hook::flag::register_usize(signal, Arc::clone(&flag), value)
                .map_err(|error| Failure::failed(format!("signal {signal} cannot be caught: {error}")))?;
        }
        Ok(Signals(flag))
    }

    /// Returns the signal that came last, if any.
    pub fn received(&self) -> Option<Signal> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Signal::Interrupt),
            _ => Some(Signal::Terminate),
        }
    }
}
