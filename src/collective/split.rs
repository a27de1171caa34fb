//! New worlds of the ranks of a communicator.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Instant;

use super::call::{Call, Operation};
use super::communicator::Communicator;
use super::mesh::WorldId;
use super::proof::random;
use super::rendezvous::Found;
use crate::error::{Error, Result};
use crate::types::DType;

impl Communicator {
    /// Divides the ranks into new worlds: those of one color are together, in the order of their keys, and of their ranks for equal
    /// keys. A rank without a color is in none of them.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce), and those of connecting the ranks of a new world.
    pub fn split(&self, color: Option<usize>, key: i64) -> Result<Option<Communicator>> {
        let failed = |error: std::io::Error| {
            Error::invalid("split", error, "a system with ports for every pair of ranks")
        };
        let listener = TcpListener::bind((self.address.ip(), 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let id: WorldId = random().map_err(failed)?;
        // For each rank: whether it has a color, the color, the key, the port, the halves of the identity and the address.
        const FIELDS: usize = 9;
        let half = |at: usize| u64::from_le_bytes(*id[at..].first_chunk().unwrap_or(&[0; 8]));
        let (is_v6, address) = match self.address.ip() {
            IpAddr::V4(address) => (0, address.to_ipv6_mapped().octets()),
            IpAddr::V6(address) => (1, address.octets()),
        };
        let word = |at: usize| u64::from_le_bytes(*address[at..].first_chunk().unwrap_or(&[0; 8]));
        let own: [u64; FIELDS] = [
            color.is_some().into(),
            color.unwrap_or_default() as u64,
            key as u64,
            port.into(),
            half(0),
            half(8),
            is_v6,
            word(0),
            word(8),
        ];
        let mut all = vec![0u64; FIELDS * self.world_size()];
        let call = Call::new(Operation::Split, DType::U64, 0);
        let bytes: &[u8] = bytemuck::cast_slice(&own);
        let counts = vec![bytes.len(); self.world_size()];
        self.exchange_parts(
            call,
            &vec![bytes; self.world_size()],
            bytemuck::cast_slice_mut(&mut all),
            &counts,
        )?;
        let of_ranks: Vec<&[u64]> = all.chunks(FIELDS).collect();
        let mut members: Vec<usize> =
            (0..self.world_size()).filter(|rank| of_ranks[*rank][..2] == own[..2]).collect();
        if color.is_none() {
            return Ok(None);
        }
        members.sort_by_key(|rank| (of_ranks[*rank][2] as i64, *rank));
        let address_of = |rank: &usize| {
            let fields = of_ranks[*rank];
            let octets: [u8; 16] = bytemuck::cast([fields[7], fields[8]]);
            let address = Ipv6Addr::from(octets);
            let ip = match (fields[6], address.to_ipv4_mapped()) {
                (0, Some(address)) => address.into(),
                _ => address.into(),
            };
            SocketAddr::new(ip, fields[3] as u16)
        };
        let addresses = members.iter().map(address_of).collect();
        // The identity of the new world is that of its first rank.
        let first = of_ranks[members[0]];
        let found = Found { id: bytemuck::cast([first[4], first[5]]), addresses };
        let rank = members.iter().position(|rank| *rank == self.rank()).unwrap_or_default();
        let deadline = Instant::now() + self.timeout();
        Self::of_world((found, &listener), rank, self.secret.clone(), self.timeout(), deadline).map(Some)
    }
}
