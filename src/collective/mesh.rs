//! Connects every pair of ranks, and exchanges frames between all of them.

use std::io::{ErrorKind, Result as IoResult};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::call::{Call, HEADER, Header};
use super::peers::{Connections, Failure, Peers};
use super::proof::{NONCE, PROOF, Secret, random};
use super::wire::{
    Fields, MAX_STRANGERS, Reader, may_come_again, read_message, read_until, remaining, write_message,
    write_until,
};

/// The time in which a rank that has connected must say who it is.
const HELLO_TIME: Duration = Duration::from_secs(5);
/// Frames up to these bytes are written by the calling thread: they fit the buffers of a connection.
const SMALL_FRAME: usize = 16 << 10;
/// Bytes that are read at once.
pub(super) const CHUNK: usize = 256 << 10;

/// The identity of a world: random bytes of rank 0.
pub(super) type WorldId = [u8; 16];

/// The connections of a rank and the number of its next call.
pub(super) struct Mesh {
    pub(super) peers: Arc<Peers>,
    sequence: u64,
    /// By rank, the messages sent to it and received from it.
    sent: Vec<u64>,
    received: Vec<u64>,
}

/// A world as its ranks know it before they are connected.
pub(super) struct World<'a> {
    pub(super) id: WorldId,
    pub(super) secret: &'a Secret,
    /// By rank, where it listens.
    pub(super) addresses: &'a [SocketAddr],
    pub(super) rank: usize,
    pub(super) deadline: Instant,
}

impl World<'_> {
    /// Connects to the ranks below, and is connected to by those above.
    ///
    /// # Errors
    ///
    /// A rank does not come in time, or a connection fails.
    pub(super) fn connect(&self, listener: &TcpListener) -> Result<Mesh, Failure> {
        let size = self.addresses.len();
        let mut data: Vec<Option<TcpStream>> = (0..size).map(|_| None).collect();
        let mut notices: Vec<Option<TcpStream>> = (0..size).map(|_| None).collect();
        let wanted = 2 * (size - 1 - self.rank);
        let failed = |error: std::io::Error| Failure { culprit: None, reason: error.to_string() };
        // Set when a rank below cannot be reached, so that those above are not waited for.
        let gives_up = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let accepting = scope.spawn(|| self.accept(listener, wanted, &gives_up));
            for peer in 0..self.rank {
                for (is_data, streams) in [(true, &mut data), (false, &mut notices)] {
                    streams[peer] = Some(self.reach(peer, is_data).map_err(|error| {
                        gives_up.store(true, Ordering::SeqCst);
                        Failure::of(peer, format!("it cannot be reached: {error}"))
                    })?);
                }
            }
            for (peer, is_data, stream) in
                accepting.join().unwrap_or_else(|_| Ok(Vec::new())).map_err(failed)?
            {
                if is_data { data[peer] = Some(stream) } else { notices[peer] = Some(stream) }
            }
            Ok(())
        })?;
        let mut connections = Vec::with_capacity(size);
        for (peer, pair) in data.into_iter().zip(notices).enumerate() {
            connections.push(match pair {
                _ if peer == self.rank => None,
                (Some(data), Some(notices)) => Some(Connections { data, notices }),
                _ => return Err(Failure::of(peer, "it did not connect within the time-out")),
            });
        }
        let peers = Peers::new(self.rank, connections).map_err(failed)?;
        Ok(Mesh { peers: Arc::new(peers), sequence: 0, sent: vec![0; size], received: vec![0; size] })
    }

    /// Connects to a rank, and proves to belong to its world.
    fn reach(&self, peer: usize, is_data: bool) -> IoResult<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.addresses[peer], remaining(self.deadline)?)?;
        let mut nonce = [0; NONCE];
        read_until(&stream, &mut nonce, self.deadline)?;
        let hello = Fields::default().number(self.rank).number(is_data.into()).0;
        let proof = self.secret.prove("peer", &[&self.id, &nonce, &hello]);
        write_message(&stream, &[&proof[..], &hello].concat(), self.deadline)?;
        // The answer, so that a refusal is found here.
        let mut answer = [0; 1];
        read_until(&stream, &mut answer, self.deadline)?;
        Ok(stream)
    }

    /// Accepts as many connections of ranks above. Strangers are refused, each on a thread of its own.
    fn accept(
        &self,
        listener: &TcpListener,
        wanted: usize,
        gives_up: &AtomicBool,
    ) -> IoResult<Vec<(usize, bool, TcpStream)>> {
        listener.set_nonblocking(true)?;
        let mut accepted: Vec<(usize, bool, TcpStream)> = Vec::new();
        let mut greeted = 0;
        std::thread::scope(|scope| {
            let (send, received) = mpsc::channel();
            while accepted.len() < wanted
                && Instant::now() < self.deadline
                && !gives_up.load(Ordering::SeqCst)
            {
                if greeted < wanted + MAX_STRANGERS {
                    match listener.accept() {
                        Ok((stream, _)) => {
                            let send = send.clone();
                            let greet = move || {
                                let peer = self.greet(&stream).ok();
                                // The receiver has ended after the deadline.
                                let _ = send.send(peer.map(|(rank, is_data)| (rank, is_data, stream)));
                            };
                            std::thread::Builder::new().spawn_scoped(scope, greet)?;
                            greeted += 1;
                            continue;
                        }
                        Err(error) if may_come_again(&error) => {}
                        Err(error) => return Err(error),
                    }
                }
                if let Ok(peer) = received.recv_timeout(Duration::from_millis(2)) {
                    greeted -= 1;
                    accepted.extend(peer);
                }
            }
            Ok(())
        })?;
        Ok(accepted)
    }

    /// Returns the rank of a connection and whether it is for data, after its proof.
    fn greet(&self, stream: &TcpStream) -> IoResult<(usize, bool)> {
        let deadline = self.deadline.min(Instant::now() + HELLO_TIME);
        stream.set_nonblocking(false)?;
        let nonce = random::<NONCE>()?;
        write_until(stream, &nonce, deadline)?;
        let message = read_message(stream, PROOF + 64, deadline)?;
        let refused = || std::io::Error::from(ErrorKind::PermissionDenied);
        let (proof, hello) = message.split_at_checked(PROOF).ok_or_else(refused)?;
        let mut reader = Reader(hello);
        match (reader.number(), reader.number()) {
            (Some(rank), Some(is_data @ 0..=1))
                if (self.rank + 1..self.addresses.len()).contains(&rank)
                    && self.secret.is_proven("peer", &[&self.id, &nonce, hello], proof) =>
            {
                write_until(stream, &[1], deadline)?;
                Ok((rank, is_data == 1))
            }
            _ => Err(refused()),
        }
    }
}

/// The frames of an exchange that a rank receives.
pub(super) struct Incoming<'m> {
    peers: &'m Peers,
    deadline: Instant,
}

impl Incoming<'_> {
    /// Reads bytes of a rank's frame, whose header has been read.
    pub(super) fn read(&self, from: usize, buffer: &mut [u8]) -> Result<(), Failure> {
        self.peers.read(from, buffer, self.deadline)
    }
}

impl Mesh {
    pub(super) fn rank(&self) -> usize {
        self.peers.rank()
    }

    /// Begins a call, whose exchanges have the phases 0, 1, ….
    pub(super) fn begin(&mut self) {
        self.sequence += 1;
    }

    /// Sends a frame to every rank, and receives one of each, in the order of ranks. `outgoing` has the bytes for each rank, and
    /// `wanted` the bytes from each; this rank's own are neither sent nor received. `receive` is called for every rank, for this one too.
    ///
    /// # Errors
    ///
    /// A rank has ended, does not take part before the deadline, or makes another call.
    pub(super) fn exchange(
        &self,
        (call, phase): (&Call, u8),
        outgoing: &[&[u8]],
        wanted: &[usize],
        deadline: Instant,
        receive: &mut dyn FnMut(usize, &Incoming<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let header = |bytes| Header { call: *call, phase, sequence: self.sequence, bytes };
        let incoming = Incoming { peers: &self.peers, deadline };
        let send = |to: usize| self.write_frame(to, header(outgoing[to].len()), outgoing[to], deadline);
        std::thread::scope(|scope| {
            let mut all = || -> Result<(), Failure> {
                for to in self.peers.others() {
                    if outgoing[to].len() <= SMALL_FRAME {
                        send(to)?;
                        continue;
                    }
                    // A failure ends the communicator, so that the calling thread finds it.
                    let work = move || drop(send(to).map_err(|failure| self.peers.fail(failure)));
                    let spawned = std::thread::Builder::new().spawn_scoped(scope, work);
                    spawned.map_err(|error| Failure::of(self.rank(), error.to_string()))?;
                }
                for (from, &bytes) in wanted.iter().enumerate() {
                    if from != self.rank() {
                        self.receive_header(from, header(bytes), deadline)?;
                    }
                    receive(from, &incoming)?;
                }
                Ok(())
            };
            // Before the scope waits for its threads, whose writes the failure ends.
            all().map_err(|failure| self.peers.fail(failure))
        })?;
        self.peers.failure().map_or(Ok(()), Err)
    }

    /// Writes a frame, a short one at once.
    fn write_frame(&self, to: usize, header: Header, bytes: &[u8], deadline: Instant) -> Result<(), Failure> {
        if bytes.len() <= SMALL_FRAME {
            return self.peers.write(to, &[&header.to_bytes(), bytes].concat(), deadline);
        }
        self.peers.write(to, &header.to_bytes(), deadline)?;
        self.peers.write(to, bytes, deadline)
    }

    /// Sends a message to one rank.
    pub(super) fn send(
        &mut self,
        call: &Call,
        to: usize,
        bytes: &[u8],
        deadline: Instant,
    ) -> Result<(), Failure> {
        let header = Header { call: *call, phase: 0, sequence: self.sent[to], bytes: bytes.len() };
        self.sent[to] += 1;
        self.write_frame(to, header, bytes, deadline).map_err(|failure| self.peers.fail(failure))
    }

    /// Receives a message of one rank.
    pub(super) fn receive(
        &mut self,
        call: &Call,
        from: usize,
        bytes: &mut [u8],
        deadline: Instant,
    ) -> Result<(), Failure> {
        let header = Header { call: *call, phase: 0, sequence: self.received[from], bytes: bytes.len() };
        self.received[from] += 1;
        let result = self.receive_header(from, header, deadline);
        result
            .and_then(|()| self.peers.read(from, bytes, deadline))
            .map_err(|failure| self.peers.fail(failure))
    }

    /// Sends a message to one rank while one of another is received.
    pub(super) fn send_receive(
        &mut self,
        (sent, to, values): (&Call, usize, &[u8]),
        (wanted, from, received): (&Call, usize, &mut [u8]),
        deadline: Instant,
    ) -> Result<(), Failure> {
        let header = Header { call: *sent, phase: 0, sequence: self.sent[to], bytes: values.len() };
        let wanted = Header { call: *wanted, phase: 0, sequence: self.received[from], bytes: received.len() };
        self.sent[to] += 1;
        self.received[from] += 1;
        std::thread::scope(|scope| {
            let send = || {
                let written = self.write_frame(to, header, values, deadline);
                drop(written.map_err(|failure| self.peers.fail(failure)));
            };
            let own = |error: std::io::Error| Failure::of(self.rank(), error.to_string());
            let spawned = std::thread::Builder::new().spawn_scoped(scope, send).map(drop).map_err(own);
            let result = spawned.and_then(|()| self.receive_header(from, wanted, deadline));
            result
                .and_then(|()| self.peers.read(from, received, deadline))
                .map_err(|failure| self.peers.fail(failure))
        })?;
        self.peers.failure().map_or(Ok(()), Err)
    }

    /// Reads the header of a rank's frame, and compares it with that of this rank's own call.
    fn receive_header(&self, from: usize, wanted: Header, deadline: Instant) -> Result<(), Failure> {
        let mut bytes = [0; HEADER];
        self.peers.read(from, &mut bytes, deadline)?;
        let Some(found) = Header::from_bytes(&bytes) else {
            return Err(Failure::of(from, "it sent bytes that are no frame: its version may be another one"));
        };
        if found == wanted {
            return Ok(());
        }
        let describe = |header: Header| match header.call == wanted.call && found.call == wanted.call {
            true => {
                format!("{} as call {} with {} bytes", header.call.describe(), header.sequence, header.bytes)
            }
            false => format!("{} as call {}", header.call.describe(), header.sequence),
        };
        let reason = format!(
            "rank {from} calls {}, and rank {} calls {}: all ranks must make the same calls in the same order",
            describe(found),
            self.rank(),
            describe(wanted)
        );
        Err(Failure::of(from, reason))
    }
}
