//! Rank 0: waits for the others at its address, and gives them the list.

use std::io::{ErrorKind, Result as IoResult};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use super::super::proof::{NONCE, PROOF, Secret, random};
use super::super::wire::{
    MAX_MESSAGE, MAX_STRANGERS, may_come_again, read_message, write_message, write_until,
};
use super::super::world::WorldOptions;
use super::{Answer, Found, GREETING, Hello, answer_to_bytes, failed, listen};
use crate::error::{Error, Result};

/// The time in which a new connection must say who it is.
pub(super) const HELLO_TIME: Duration = Duration::from_secs(5);
/// The time for an answer: a rank that takes none has ended.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// A rank that has proved the secret.
struct Arrival {
    hello: Hello,
    stream: TcpStream,
    /// The address at which the rank listens.
    address: SocketAddr,
}

/// As [`find`](super::find), of rank 0.
pub(in crate::collective) fn serve(
    options: &WorldOptions,
    addresses: &[SocketAddr],
    secret: &Secret,
    deadline: Instant,
) -> Result<(Found, TcpListener)> {
    let server = bind(addresses)?;
    let unusable =
        |error: std::io::Error| failed(options, None, format!("its address cannot be used: {error}"));
    let here = server.local_addr().map_err(unusable)?;
    if here.ip().is_loopback() && options.local_size < options.world_size {
        log::warn!(
            "collective: rank 0 waits at {here}, which other hosts do not reach: MASTER_ADDR must name an address of the network"
        );
    }
    log::debug!("collective: rank 0 waits at {here} for {} ranks", options.world_size - 1);
    let listener = listen(options, here.ip())?;
    let mut arrivals: Vec<Option<Arrival>> = (0..options.world_size).map(|_| None).collect();
    let own = listener.local_addr().map_err(unusable)?;
    let gathered = gather(options, &server, secret, deadline, &mut arrivals).map_err(unusable)?;
    let answer: Answer = match gathered {
        Err(absence) => Err(absence),
        Ok(()) => {
            let addresses =
                arrivals.iter().map(|arrival| arrival.as_ref().map_or(own, |arrival| arrival.address));
            let addresses = addresses.collect();
            random()
                .map(|id| Found { id, addresses })
                .map_err(|error| (Some(0), format!("it has no random bytes: {error}")))
        }
    };
    let bytes = answer_to_bytes(&answer);
    let until = Instant::now() + ANSWER_TIME;
    std::thread::scope(|scope| {
        for arrival in arrivals.iter().flatten() {
            let bytes = &bytes;
            let proof = secret.prove("server", &[&arrival.hello.nonce, bytes]);
            let send = move || write_message(&arrival.stream, &[&proof[..], bytes].concat(), until);
            // A rank that does not take the answer is found when the ranks connect.
            let _ = std::thread::Builder::new().spawn_scoped(scope, send);
        }
    });
    match answer {
        Ok(found) => Ok((found, listener)),
        Err((culprit, reason)) => Err(failed(options, culprit, reason)),
    }
}

/// Listens at the first of the host's addresses that is one of this machine.
fn bind(addresses: &[SocketAddr]) -> Result<TcpListener> {
    let mut reasons = Vec::new();
    for address in addresses {
        match TcpListener::bind(address) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                let found = format!(
                    "port {} of {} in use by another program or another world",
                    address.port(),
                    address.ip()
                );
                return Err(Error::invalid("connect", found, "a free port: set SELVEDGE_PORT on every rank"));
            }
            Err(error) => reasons.push(format!("{address} ({error})")),
        }
    }
    let found = format!("rank 0 on a machine that does not have {}", reasons.join(", "));
    Err(Error::invalid("connect", found, "rank 0 on the host that MASTER_ADDR names"))
}

/// Waits for all ranks. The inner error is the reason why there is no world, with the rank at fault if it is one.
fn gather(
    options: &WorldOptions,
    server: &TcpListener,
    secret: &Secret,
    deadline: Instant,
    arrivals: &mut [Option<Arrival>],
) -> IoResult<std::result::Result<(), (Option<usize>, String)>> {
    server.set_nonblocking(true)?;
    let (send, arrived) = mpsc::channel();
    let mut strangers = 0;
    std::thread::scope(|scope| {
        while arrivals.iter().skip(1).any(Option::is_none) {
            if Instant::now() >= deadline {
                return Ok(Err(absent(options, arrivals)));
            }
            if strangers < MAX_STRANGERS {
                match server.accept() {
                    Ok((stream, from)) => {
                        let send: Sender<Option<Arrival>> = send.clone();
                        let greet = move || {
                            let arrival = greet(stream, from, secret, deadline).inspect_err(|error| {
                                log::debug!("collective: {from} is no rank: {error}");
                            });
                            // The receiver has ended after a failure.
                            let _ = send.send(arrival.ok());
                        };
                        std::thread::Builder::new().spawn_scoped(scope, greet)?;
                        strangers += 1;
                        continue;
                    }
                    Err(error) if may_come_again(&error) => {}
                    Err(error) => return Err(error),
                }
            }
            let Ok(arrival) = arrived.recv_timeout(Duration::from_millis(2)) else { continue };
            strangers -= 1;
            let Some(arrival) = arrival else { continue };
            let rank = arrival.hello.rank;
            if let Err((is_of_this_world, reason)) = check(options, &arrival, arrivals) {
                refuse(&arrival, secret, &reason);
                if is_of_this_world {
                    return Ok(Err((Some(rank), reason)));
                }
                continue;
            }
            arrivals[rank] = Some(arrival);
        }
        Ok(Ok(()))
    })
}

/// Names the ranks that have not come.
fn absent(options: &WorldOptions, arrivals: &[Option<Arrival>]) -> (Option<usize>, String) {
    const SHOWN: usize = 8;
    let ranks: Vec<usize> = (1..arrivals.len()).filter(|rank| arrivals[*rank].is_none()).collect();
    let shown: Vec<String> = ranks.iter().take(SHOWN).map(usize::to_string).collect();
    let more = if ranks.len() > SHOWN { format!(" and {} more", ranks.len() - SHOWN) } else { String::new() };
    let (host, port) = options.address();
    let reason = format!(
        "rank {}{more} of {} did not come to {host}:{port} within {:.1} s: look at its output, and whether it reaches that address",
        shown.join(", "),
        options.world_size,
        options.timeout.as_secs_f64()
    );
    (ranks.first().copied(), reason)
}

/// Checks that a rank belongs to this world. The error says whether the world fails with it.
fn check(
    options: &WorldOptions,
    arrival: &Arrival,
    arrivals: &[Option<Arrival>],
) -> std::result::Result<(), (bool, String)> {
    let Hello { version, run, rank, world_size, .. } = &arrival.hello;
    if *run != options.run {
        return Err((
            false,
            format!("this is a rank of the run '{run}', and the port serves the run '{}'", options.run),
        ));
    }
    if version != env!("CARGO_PKG_VERSION") {
        let wanted = env!("CARGO_PKG_VERSION");
        return Err((
            true,
            format!("rank {rank} has selvedge {version}, and rank 0 has {wanted}: use one version"),
        ));
    }
    if *world_size != options.world_size {
        let wanted = options.world_size;
        return Err((
            true,
            format!("rank {rank} is of a world of {world_size}, and rank 0 of one of {wanted}"),
        ));
    }
    match arrivals.get(*rank) {
        Some(None) if *rank > 0 => Ok(()),
        _ => Err((
            true,
            format!("two processes are rank {rank} of {world_size}: each needs a number of its own"),
        )),
    }
}

/// Tells a rank why it is refused.
fn refuse(arrival: &Arrival, secret: &Secret, reason: &str) {
    let bytes = answer_to_bytes(&Err((Some(arrival.hello.rank), reason.to_owned())));
    let proof = secret.prove("server", &[&arrival.hello.nonce, &bytes]);
    // A rank that does not take the answer has ended.
    let _ = write_message(&arrival.stream, &[&proof[..], &bytes].concat(), Instant::now() + ANSWER_TIME);
}

/// Learns who has connected.
fn greet(stream: TcpStream, from: SocketAddr, secret: &Secret, deadline: Instant) -> IoResult<Arrival> {
    let deadline = deadline.min(Instant::now() + HELLO_TIME);
    stream.set_nonblocking(false)?;
    let nonce = random::<NONCE>()?;
    write_until(&stream, &[&GREETING[..], &nonce].concat(), deadline)?;
    let message = read_message(&stream, MAX_MESSAGE, deadline)?;
    let refused = |text: &str| std::io::Error::new(ErrorKind::InvalidData, text.to_owned());
    let (proof, hello) =
        message.split_at_checked(PROOF).ok_or_else(|| refused("a message without a proof"))?;
    if !secret.is_proven("rank", &[&nonce, hello], proof) {
        return Err(refused("a wrong secret: SELVEDGE_SECRET must be the same on every rank"));
    }
    let hello = Hello::from_bytes(hello).ok_or_else(|| refused("a message of another version"))?;
    let address = SocketAddr::new(from.ip(), hello.port);
    Ok(Arrival { hello, stream, address })
}
