//! The other ranks: ask rank 0 for the list.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::super::proof::{NONCE, PROOF, Secret, random};
use super::super::wire::{MAX_ANSWER, read_message, read_until, remaining, write_message};
use super::super::world::WorldOptions;
use super::{Found, GREETING, Hello, answer_from_bytes, failed, listen};
use crate::error::Result;

/// The time between two attempts to reach rank 0, which may not have started.
const RETRY: Duration = Duration::from_millis(20);
/// The longest time of an attempt, so that the next address of a host has its turn.
const ATTEMPT: Duration = Duration::from_secs(3);

/// As [`find`](super::find), of a rank other than 0.
pub(in crate::collective) fn ask(
    options: &WorldOptions,
    addresses: &[SocketAddr],
    secret: &Secret,
    deadline: Instant,
) -> Result<(Found, TcpListener)> {
    let (host, port) = options.address();
    let at = format!("{host}:{port}");
    let stream = reach(addresses, deadline).map_err(|error| {
        let seconds = options.timeout.as_secs_f64();
        failed(options, Some(0), format!("it was not reached at {at} within {seconds:.1} s: {error}"))
    })?;
    let lost = |error: std::io::Error| {
        let reason = match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
                format!(
                    "{at} closed the connection: its secret (SELVEDGE_SECRET) is another one, or rank 0 has ended"
                )
            }
            ErrorKind::TimedOut => {
                format!("{at} gave no answer within {:.1} s", options.timeout.as_secs_f64())
            }
            _ => format!("the connection to {at} failed: {error}"),
        };
        failed(options, Some(0), reason)
    };
    let mut greeting = [0; GREETING.len() + NONCE];
    read_until(&stream, &mut greeting, deadline).map_err(lost)?;
    let (name, nonce) = greeting.split_at(GREETING.len());
    if name != GREETING {
        let reason =
            format!("{at} is no rank 0 of this version of selvedge: another program may use the port");
        return Err(failed(options, Some(0), reason));
    }
    let here = stream.local_addr().map_err(lost)?;
    let listener = listen(options, here.ip())?;
    let hello = Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        run: options.run.clone(),
        rank: options.rank,
        world_size: options.world_size,
        port: listener.local_addr().map_err(lost)?.port(),
        nonce: random().map_err(lost)?,
    };
    let bytes = hello.to_bytes();
    let proof = secret.prove("rank", &[nonce, &bytes]);
    write_message(&stream, &[&proof[..], &bytes].concat(), deadline).map_err(lost)?;
    // The server's own time-out comes first, so that its reason is read.
    let answer = read_message(&stream, MAX_ANSWER, deadline + ATTEMPT).map_err(lost)?;
    let strange = || failed(options, Some(0), format!("{at} gave an answer without a proof of the secret"));
    let (proof, answer) = answer.split_at_checked(PROOF).ok_or_else(strange)?;
    if !secret.is_proven("server", &[&hello.nonce, answer], proof) {
        return Err(strange());
    }
    match answer_from_bytes(answer, options.world_size) {
        Some(Ok(found)) => Ok((found, listener)),
        Some(Err((culprit, reason))) => Err(failed(options, culprit, reason)),
        None => Err(failed(options, Some(0), format!("{at} gave an answer of another version of selvedge"))),
    }
}

/// Connects to the first address that answers, again and again until the deadline.
fn reach(addresses: &[SocketAddr], deadline: Instant) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::from(ErrorKind::TimedOut);
    loop {
        for address in addresses {
            let Ok(remaining) = remaining(deadline) else { return Err(last) };
            match TcpStream::connect_timeout(address, remaining.min(ATTEMPT)) {
                // On the loopback, a socket that asks for its own port may be connected with itself.
                Ok(stream) if stream.local_addr().ok() == stream.peer_addr().ok() => drop(stream),
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        std::thread::sleep(RETRY);
    }
}
