//! The connections to the other ranks, and the watchers that find a rank that has ended or given up.
//!
//! A pair of ranks has two connections: one for data, in the order of calls, and one for notices, which a thread of each side reads.
//! A rank that gives up tells the others the rank at fault before it closes its data connections, so that all name the same one.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::wire::is_timeout;
use crate::error::Error;

/// How often a wait looks at the time and at failures.
const TICK: Duration = Duration::from_millis(50);
/// The time in which a notice may follow the end of a data connection.
const NOTICE_TIME: Duration = Duration::from_secs(2);
/// The time in which a notice is written: a peer that reads none has failed itself.
const WRITE_TIME: Duration = Duration::from_secs(1);
/// The longest reason in a notice.
const MAX_REASON: usize = 512;

/// Notices: the rank has finished, or has given up because of a rank.
const FINISHED: u8 = 1;
const GIVEN_UP: u8 = 2;

/// The reason why a communicator works no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) culprit: Option<usize>,
    pub(super) reason: String,
}

impl Failure {
    pub(super) fn of(culprit: usize, reason: impl Into<String>) -> Failure {
        Failure { culprit: Some(culprit), reason: reason.into() }
    }

    /// The failure of a call because a rank has made all of its calls.
    fn finished(culprit: usize) -> Failure {
        Failure::of(culprit, "it has finished, and takes part in no further calls")
    }

    /// Returns the error of a rank's call.
    pub(super) fn into_error(self, rank: usize, world_size: usize, call: impl Into<String>) -> Error {
        Error::Collective { rank, world_size, call: call.into(), culprit: self.culprit, reason: self.reason }
    }
}

/// Is called once with the first failure of a communicator, from any thread, before anybody sees the failure. It must not wait.
pub(super) type FailureHook = Box<dyn FnOnce(&Failure) + Send>;

/// The two connections to a rank.
pub(super) struct Connections {
    pub(super) data: TcpStream,
    pub(super) notices: TcpStream,
}

/// The connections of a rank, shared with its watchers.
pub(super) struct Peers {
    shared: Arc<Shared>,
    watchers: Vec<JoinHandle<()>>,
}

struct Shared {
    rank: usize,
    /// By rank; `None` for this one.
    connections: Vec<Option<Connections>>,
    state: Mutex<State>,
    changed: Condvar,
    /// Set when this side closes its connections.
    is_ending: AtomicBool,
}

struct State {
    failure: Option<Failure>,
    on_failure: Option<FailureHook>,
    /// By rank, whether it has finished.
    finished: Vec<bool>,
}

impl Peers {
    /// Starts the watchers of connections.
    pub(super) fn new(rank: usize, connections: Vec<Option<Connections>>) -> std::io::Result<Peers> {
        for Connections { data, notices } in connections.iter().flatten() {
            data.set_nodelay(true)?;
            data.set_read_timeout(Some(TICK))?;
            data.set_write_timeout(Some(TICK))?;
            notices.set_nodelay(true)?;
            notices.set_read_timeout(None)?;
            notices.set_write_timeout(Some(WRITE_TIME))?;
        }
        let state = State { failure: None, on_failure: None, finished: vec![false; connections.len()] };
        let shared = Arc::new(Shared {
            rank,
            connections,
            state: Mutex::new(state),
            changed: Condvar::new(),
            is_ending: AtomicBool::new(false),
        });
        let mut peers = Peers { shared, watchers: Vec::new() };
        for peer in peers.others() {
            let shared = Arc::clone(&peers.shared);
            let name = format!("rank {rank} watches {peer}");
            peers.watchers.push(std::thread::Builder::new().name(name).spawn(move || shared.watch(peer))?);
        }
        Ok(peers)
    }

    /// Returns the number of ranks.
    pub(super) fn world_size(&self) -> usize {
        self.shared.connections.len()
    }

    pub(super) fn rank(&self) -> usize {
        self.shared.rank
    }

    /// Returns the other ranks, from the next one on.
    pub(super) fn others(&self) -> Vec<usize> {
        let (rank, size) = (self.rank(), self.world_size());
        (1..size).map(|distance| (rank + distance) % size).collect()
    }

    /// Returns the reason why the communicator works no more.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.shared.state().failure.clone()
    }

    /// Sets the function that the first failure calls. It is called at once if there is one already.
    pub(super) fn on_failure(&self, hook: FailureHook) {
        let mut state = self.shared.state();
        match &state.failure {
            Some(failure) => hook(failure),
            None => state.on_failure = Some(hook),
        }
    }

    /// Takes the function of [`on_failure`](Self::on_failure) back. It does not run any more when this returns.
    pub(super) fn forget_on_failure(&self) {
        self.shared.state().on_failure = None;
    }

    /// Returns the failure of a further call if a rank has finished.
    pub(super) fn finished(&self) -> Option<Failure> {
        self.shared.state().finished.iter().position(|has_finished| *has_finished).map(Failure::finished)
    }

    /// Ends the communicator: tells the others the reason, and closes the data connections. The first reason stays.
    pub(super) fn fail(&self, failure: Failure) -> Failure {
        self.shared.fail(failure)
    }

    /// Reads exactly as many bytes of a rank's data before a deadline.
    pub(super) fn read(&self, from: usize, buffer: &mut [u8], deadline: Instant) -> Result<(), Failure> {
        let mut done = 0;
        while done < buffer.len() {
            let Some(mut stream) = self.data(from) else {
                return Err(Failure::of(from, "it has no connection"));
            };
            let found = stream.read(&mut buffer[done..]);
            done += self.advance(from, found, deadline, "it sent nothing")?;
        }
        Ok(())
    }

    /// Writes all bytes to a rank before a deadline.
    pub(super) fn write(&self, to: usize, bytes: &[u8], deadline: Instant) -> Result<(), Failure> {
        let mut done = 0;
        while done < bytes.len() {
            let Some(mut stream) = self.data(to) else { return Err(Failure::of(to, "it has no connection")) };
            let found = stream.write(&bytes[done..]);
            done += self.advance(to, found, deadline, "it took nothing")?;
        }
        Ok(())
    }

    fn data(&self, peer: usize) -> Option<&TcpStream> {
        self.shared.connections[peer].as_ref().map(|connections| &connections.data)
    }

    /// Returns the bytes of one read or write, 0 if it is to be repeated.
    fn advance(
        &self,
        peer: usize,
        found: std::io::Result<usize>,
        deadline: Instant,
        silence: &str,
    ) -> Result<usize, Failure> {
        let error = match found {
            Ok(0) => ErrorKind::UnexpectedEof.into(),
            Ok(count) => return Ok(count),
            Err(error) => error,
        };
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        if error.kind() == ErrorKind::Interrupted || is_timeout(&error) && Instant::now() < deadline {
            return Ok(0);
        }
        if is_timeout(&error) {
            return Err(Failure::of(peer, format!("{silence} within the time-out")));
        }
        Err(self.shared.reason_of_end(peer, &error))
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::SeqCst);
        self.shared.notify(&[FINISHED]);
        for Connections { data, notices } in self.shared.connections.iter().flatten() {
            // Already closed by the other side, or by a failure.
            let _ = data.shutdown(Shutdown::Write);
            let _ = notices.shutdown(Shutdown::Both);
        }
        for watcher in self.watchers.drain(..) {
            // A watcher does not panic.
            let _ = watcher.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a notice to all others. Ranks that have ended do not get it.
    fn notify(&self, notice: &[u8]) {
        for Connections { notices, .. } in self.connections.iter().flatten() {
            let _ = (&*notices).write_all(notice);
        }
    }

    fn fail(&self, failure: Failure) -> Failure {
        {
            let mut state = self.state();
            if let Some(first) = &state.failure {
                return first.clone();
            }
            if let Some(hook) = state.on_failure.take() {
                hook(&failure);
            }
            state.failure = Some(failure.clone());
            self.changed.notify_all();
        }
        if self.is_ending.load(Ordering::SeqCst) {
            return failure;
        }
        let mut end = failure.reason.len().min(MAX_REASON);
        while !failure.reason.is_char_boundary(end) {
            end -= 1;
        }
        let reason = &failure.reason[..end];
        let mut notice = vec![GIVEN_UP];
        notice.extend_from_slice(&failure.culprit.map_or(u32::MAX, |culprit| culprit as u32).to_le_bytes());
        notice.extend_from_slice(&(reason.len() as u16).to_le_bytes());
        notice.extend_from_slice(reason.as_bytes());
        self.notify(&notice);
        for Connections { data, .. } in self.connections.iter().flatten() {
            let _ = data.shutdown(Shutdown::Both);
        }
        failure
    }

    /// Reads the notices of a rank until it ends.
    fn watch(&self, peer: usize) {
        let Some(Connections { notices, .. }) = &self.connections[peer] else { return };
        let lost = match self.notice(notices) {
            Ok(None) => {
                self.state().finished[peer] = true;
                self.changed.notify_all();
                return;
            }
            Ok(Some(failure)) => failure,
            Err(error) => {
                Failure::of(peer, format!("its connection has ended ({error}): the process is gone"))
            }
        };
        if !self.is_ending.load(Ordering::SeqCst) {
            self.fail(lost);
        }
    }

    /// Reads a notice: `None` if the rank has finished.
    fn notice(&self, mut stream: &TcpStream) -> std::io::Result<Option<Failure>> {
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        match kind[0] {
            FINISHED => Ok(None),
            GIVEN_UP => {
                let (mut culprit, mut length) = ([0; 4], [0; 2]);
                stream.read_exact(&mut culprit)?;
                stream.read_exact(&mut length)?;
                let length = usize::from(u16::from_le_bytes(length));
                let mut reason = vec![0; length.min(MAX_REASON)];
                stream.read_exact(&mut reason)?;
                let culprit = usize::try_from(u32::from_le_bytes(culprit)).ok();
                let culprit = culprit.filter(|culprit| *culprit < self.connections.len());
                Ok(Some(Failure { culprit, reason: String::from_utf8_lossy(&reason).into_owned() }))
            }
            other => Err(std::io::Error::new(ErrorKind::InvalidData, format!("a notice of kind {other}"))),
        }
    }

    /// Returns the reason for the end of a data connection: that of a notice, if one comes soon.
    fn reason_of_end(&self, peer: usize, error: &std::io::Error) -> Failure {
        let deadline = Instant::now() + NOTICE_TIME;
        let mut state = self.state();
        loop {
            if let Some(failure) = &state.failure {
                return failure.clone();
            }
            if state.finished[peer] {
                return Failure::finished(peer);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Failure::of(peer, format!("its connection has ended: {error}"));
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
