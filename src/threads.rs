//! Threads of the CPU, for work that those that there are take piece by piece.

use std::sync::OnceLock;

/// Threads that the machine runs at one time.
pub(crate) fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Does the work in so many threads, of which the caller's is one, and returns when all have done it. (Not generic: it is
/// compiled once, whatever the work.)
pub(crate) fn in_threads(threads: usize, work: &(dyn Fn() + Sync)) {
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // A thread that cannot be had is done without: the others take its part.
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}
