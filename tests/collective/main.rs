//! Collective operations on the CPU: their values, the ranks as threads and as processes, and everything that goes wrong.

mod failures;
#[cfg(all(unix, feature = "cli"))]
mod launched;
mod operations;
mod processes;
mod programs;
mod rendezvous;

use selvedge::collective::Communicator;

/// Runs every rank of a world in a thread of its own, and returns the results in the order of ranks.
fn with_ranks<R: Send>(world_size: usize, work: impl Fn(&Communicator) -> R + Sync) -> Vec<R> {
    run(Communicator::in_process(world_size).unwrap(), work)
}

/// Runs each of these ranks in a thread of its own.
fn run<R: Send>(ranks: Vec<Communicator>, work: impl Fn(&Communicator) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let work = &work;
        let start = |rank: Communicator| scope.spawn(move || work(&rank));
        let threads: Vec<_> = ranks.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Returns a port that nobody listens at, as nobody does at the next one. Ports that the system gives to others are above.
fn free_port() -> u16 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let is_free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    loop {
        let number = std::process::id() * 64 + NEXT.fetch_add(2, Ordering::Relaxed);
        let port = 20_000 + (number % 12_000) as u16;
        if is_free(port) && is_free(port + 1) {
            return port;
        }
    }
}
