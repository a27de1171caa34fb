//! Reading and writing on TCP with a deadline, and texts of bounded length.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The longest message of a rank that asks for the others.
pub(super) const MAX_MESSAGE: usize = 4096;
/// The longest answer: the addresses of all ranks.
pub(super) const MAX_ANSWER: usize = 1 << 22;

/// The most strangers that say who they are at the same time. More wait in the system's queue.
pub(super) const MAX_STRANGERS: usize = 64;

/// Returns whether an error of accepting a connection concerns that one alone, or none has come.
pub(super) fn may_come_again(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
}

/// Reads exactly as many bytes before a deadline.
pub(super) fn read_until(mut stream: &TcpStream, buffer: &mut [u8], deadline: Instant) -> Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        stream.set_read_timeout(Some(remaining(deadline)?))?;
        match stream.read(&mut buffer[done..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if is_timeout(&error) => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all bytes before a deadline.
pub(super) fn write_until(mut stream: &TcpStream, buffer: &[u8], deadline: Instant) -> Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        stream.set_write_timeout(Some(remaining(deadline)?))?;
        match stream.write(&buffer[done..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if is_timeout(&error) => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes a message with its length before it.
pub(super) fn write_message(stream: &TcpStream, message: &[u8], deadline: Instant) -> Result<()> {
    let mut bytes = (message.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(message);
    write_until(stream, &bytes, deadline)
}

/// Reads a message of at most `limit` bytes.
pub(super) fn read_message(stream: &TcpStream, limit: usize, deadline: Instant) -> Result<Vec<u8>> {
    let mut length = [0; 4];
    read_until(stream, &mut length, deadline)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > limit {
        return Err(Error::new(
            ErrorKind::InvalidData,
            format!("a message of {length} bytes, of at most {limit}"),
        ));
    }
    let mut message = vec![0; length];
    read_until(stream, &mut message, deadline)?;
    Ok(message)
}

/// Returns whether an error of a socket means that its time-out has passed.
pub(super) fn is_timeout(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Returns the time until a deadline, or the error that it has passed.
pub(super) fn remaining(deadline: Instant) -> Result<Duration> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    // A time-out of 0 would be none.
    if remaining.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(remaining) }
}

/// The fields of a message, written one after another.
#[derive(Default)]
pub(super) struct Fields(pub(super) Vec<u8>);

impl Fields {
    pub(super) fn number(mut self, number: usize) -> Fields {
        self.0.extend_from_slice(&(number as u64).to_le_bytes());
        self
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Fields {
        let mut fields = self.number(bytes.len());
        fields.0.extend_from_slice(bytes);
        fields
    }
}

/// Reads the fields of a message; `None` if it ends early.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn number(&mut self) -> Option<usize> {
        let (first, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        usize::try_from(u64::from_le_bytes(*first)).ok()
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        self.bytes().and_then(|bytes| String::from_utf8(bytes.to_vec()).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (one, listener.accept().unwrap().0)
    }

    #[test]
    fn messages_arrive_whole_and_bounded() {
        let (one, other) = pair();
        let deadline = Instant::now() + Duration::from_secs(5);
        write_message(&one, b"hello", deadline).unwrap();
        assert_eq!(read_message(&other, 5, deadline).unwrap(), b"hello");
        write_message(&one, b"hello", deadline).unwrap();
        assert_eq!(read_message(&other, 4, deadline).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_silent_side_is_given_up_at_the_deadline() {
        let (_one, other) = pair();
        let start = Instant::now();
        let error = read_until(&other, &mut [0], start + Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(start.elapsed() >= Duration::from_millis(50));
    }

    #[test]
    fn fields_are_read_as_they_were_written() {
        let fields = Fields::default().number(7).bytes(b"name");
        let mut reader = Reader(&fields.0);
        assert_eq!((reader.number(), reader.text().as_deref()), (Some(7), Some("name")));
        assert_eq!(reader.number(), None);
        // A length beyond the message.
        assert_eq!(Reader(&Fields::default().number(9).0).bytes(), None);
    }
}
