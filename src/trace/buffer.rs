//! The events of each thread, until the recorder's thread writes them.
//!
//! A thread appends to its own list, whose lock only the writer takes beside it, ten times a second.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::event::{Event, Track};
use super::state::{ON, STATE, wake};

/// The most events of a thread that wait to be written.
pub(super) const MAX_WAITING: usize = 1 << 16;

/// The events of a thread.
pub(super) struct ThreadBuffer {
    pub(super) track: Track,
    pub(super) name: String,
    events: Mutex<Vec<Event>>,
}

impl ThreadBuffer {
    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static BUFFERS: Mutex<Vec<Arc<ThreadBuffer>>> = Mutex::new(Vec::new());
static NEXT_THREAD: AtomicU64 = AtomicU64::new(1);
/// Events that no buffer took since the trace began.
pub(super) static DROPPED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static BUFFER: OnceCell<Arc<ThreadBuffer>> = const { OnceCell::new() };
}

fn register() -> Arc<ThreadBuffer> {
    let thread = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
    let name = std::thread::current().name().map_or_else(|| format!("thread {thread}"), str::to_owned);
    let buffer = Arc::new(ThreadBuffer { track: Track::host(thread), name, events: Mutex::default() });
    BUFFERS.lock().unwrap_or_else(PoisonError::into_inner).push(buffer.clone());
    buffer
}

/// Records an event. Counts it as dropped if the thread's buffer is full or the thread is ending.
#[cold]
pub(crate) fn record(event: Event) {
    if STATE.load(Ordering::Relaxed) != ON {
        return;
    }
    let waiting = BUFFER.try_with(|buffer| {
        let mut events = buffer.get_or_init(register).lock();
        if events.len() < MAX_WAITING {
            events.push(event);
            Some(events.len())
        } else {
            None
        }
    });
    match waiting {
        Ok(Some(waiting)) if waiting == MAX_WAITING / 4 => wake(),
        Ok(Some(_)) => {}
        Ok(None) | Err(_) => drop(DROPPED.fetch_add(1, Ordering::Relaxed)),
    }
}

/// The track of this thread; `None` while it ends.
pub(crate) fn current_track() -> Option<Track> {
    BUFFER.try_with(|buffer| buffer.get_or_init(register).track).ok()
}

/// Removes the waiting events of every thread, and forgets threads that have ended.
pub(super) fn drain(mut use_events: impl FnMut(&ThreadBuffer, Vec<Event>)) {
    let buffers = BUFFERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for buffer in buffers {
        let events = std::mem::take(&mut *buffer.lock());
        if !events.is_empty() {
            use_events(&buffer, events);
        }
    }
    let mut buffers = BUFFERS.lock().unwrap_or_else(PoisonError::into_inner);
    buffers.retain(|buffer| Arc::strong_count(buffer) > 1 || !buffer.lock().is_empty());
}
