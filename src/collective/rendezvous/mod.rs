//! How ranks find each other: rank 0 listens, every other rank says who it is and where it listens itself, and all get the list.
//!
//! The server sends a nonce. A rank answers with its [`Hello`] and a proof of the secret for both. When all ranks have come, or the
//! time is over, the server sends each the world's identity and the addresses, or the reason why there is no world, again with a
//! proof. A stranger gets a nonce and nothing else: what it sends is at most [`MAX_MESSAGE`](super::wire::MAX_MESSAGE) bytes and
//! [`HELLO_TIME`](server::HELLO_TIME), on a thread of its own, so that it keeps nobody waiting.

mod client;
mod server;

use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::time::Instant;

pub(super) use client::ask;
pub(super) use server::serve;

use super::mesh::WorldId;
use super::peers::Failure;
use super::proof::{NONCE, Secret};
use super::wire::{Fields, Reader};
use super::world::WorldOptions;
use crate::error::{Error, Result};

/// The first bytes of a server, with the version of this protocol.
const GREETING: &[u8; 8] = b"selvedg1";

/// The ranks of a world: its identity, and by rank the addresses at which they listen.
pub(super) struct Found {
    pub(super) id: WorldId,
    pub(super) addresses: Vec<SocketAddr>,
}

/// The description of a rank, by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hello {
    /// The version of the library.
    version: String,
    /// The run, as the launcher names it.
    run: String,
    rank: usize,
    world_size: usize,
    /// The port at which the rank listens, on the address that it comes from.
    port: u16,
    nonce: [u8; NONCE],
}

impl Hello {
    fn to_bytes(&self) -> Vec<u8> {
        Fields::default()
            .bytes(self.version.as_bytes())
            .bytes(self.run.as_bytes())
            .number(self.rank)
            .number(self.world_size)
            .number(self.port.into())
            .bytes(&self.nonce)
            .0
    }

    fn from_bytes(bytes: &[u8]) -> Option<Hello> {
        let mut reader = Reader(bytes);
        Some(Hello {
            version: reader.text()?,
            run: reader.text()?,
            rank: reader.number()?,
            world_size: reader.number()?,
            port: reader.number()?.try_into().ok()?,
            nonce: reader.bytes()?.try_into().ok()?,
        })
    }
}

/// The server's answer: the ranks, or the reason why there is no world, with the rank at fault if it is one.
type Answer = std::result::Result<Found, (Option<usize>, String)>;

fn answer_to_bytes(answer: &Answer) -> Vec<u8> {
    match answer {
        Ok(found) => {
            found
                .addresses
                .iter()
                .fold(
                    Fields::default().number(0).bytes(&found.id).number(found.addresses.len()),
                    |fields, address| fields.bytes(address.to_string().as_bytes()),
                )
                .0
        }
        Err((culprit, reason)) => {
            Fields::default().number(1).number(culprit.map_or(0, |rank| rank + 1)).bytes(reason.as_bytes()).0
        }
    }
}

fn answer_from_bytes(bytes: &[u8], world_size: usize) -> Option<Answer> {
    let mut reader = Reader(bytes);
    if reader.number()? != 0 {
        let culprit = reader.number()?.checked_sub(1);
        return Some(Err((culprit, reader.text()?)));
    }
    let id = reader.bytes()?.try_into().ok()?;
    let count = reader.number().filter(|count| *count == world_size)?;
    let address = |_| reader.text().and_then(|text| text.parse().ok());
    Some(Ok(Found { id, addresses: (0..count).map(address).collect::<Option<_>>()? }))
}

/// Returns the error of a rank that finds no world.
fn failed(options: &WorldOptions, culprit: Option<usize>, reason: impl Into<String>) -> Error {
    Failure { culprit, reason: reason.into() }.into_error(options.rank, options.world_size, "connect")
}

/// Returns the addresses of the host of rank 0.
fn addresses_of(options: &WorldOptions) -> Result<Vec<SocketAddr>> {
    let (host, port) = options.address();
    // `[::1]`, as in an address with a port.
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match (host, port).to_socket_addrs().map(Vec::from_iter) {
        Ok(addresses) if !addresses.is_empty() => Ok(addresses),
        found => {
            let reason = found.map_or_else(|error| error.to_string(), |_| "no address".to_owned());
            let found = format!("{host} as the host of rank 0 ({reason})");
            Err(Error::invalid(
                "connect",
                found,
                "a name or an address of a host, such as MASTER_ADDR=10.0.0.1",
            ))
        }
    }
}

/// Listens on any port of an address.
fn listen(options: &WorldOptions, address: IpAddr) -> Result<TcpListener> {
    TcpListener::bind((address, 0))
        .map_err(|error| failed(options, None, format!("no port of {address} can be listened at: {error}")))
}

/// Finds the ranks of a world: serves as rank 0, and asks as another one. Returns them with the listener of this rank.
///
/// # Errors
///
/// [`Error::Collective`] if a rank does not come in time, or the ranks do not belong together; the address cannot be used.
pub(super) fn find(
    options: &WorldOptions,
    secret: &Secret,
    deadline: Instant,
) -> Result<(Found, TcpListener)> {
    let addresses = addresses_of(options)?;
    let is_local = addresses.iter().all(|address| address.ip().is_loopback());
    if options.rank == 0 && options.secret.is_empty() && !is_local && options.world_size > 1 {
        log::warn!(
            "collective: ranks come from other hosts and prove no secret: anybody who reaches {} can take part; \
             set SELVEDGE_SECRET to the same value on every rank",
            options.host
        );
    }
    match options.rank {
        0 => serve(options, &addresses, secret, deadline),
        _ => ask(options, &addresses, secret, deadline),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_and_answers_are_read_as_they_were_written() {
        let hello = Hello {
            version: "0.1.0".to_owned(),
            run: "job 7".to_owned(),
            rank: 3,
            world_size: 4,
            port: 40_000,
            nonce: [7; NONCE],
        };
        assert_eq!(Hello::from_bytes(&hello.to_bytes()), Some(hello.clone()));
        assert_eq!(Hello::from_bytes(&hello.to_bytes()[..20]), None);
        let addresses: Vec<SocketAddr> = vec!["127.0.0.1:1".parse().unwrap(), "[::1]:65535".parse().unwrap()];
        let bytes = answer_to_bytes(&Ok(Found { id: [9; 16], addresses: addresses.clone() }));
        let found = answer_from_bytes(&bytes, 2).unwrap().unwrap();
        assert_eq!((found.id, found.addresses), ([9; 16], addresses));
        assert!(answer_from_bytes(&bytes, 3).is_none());
        for culprit in [None, Some(1)] {
            let refused = answer_from_bytes(&answer_to_bytes(&Err((culprit, "no".to_owned()))), 2).unwrap();
            assert_eq!(refused.err(), Some((culprit, "no".to_owned())));
        }
    }
}
