//! Reads of a file's next bytes by several threads: one thread copies a fifth of what a bus or the memory takes.

use std::fs::File;
use std::io::{self, Read};

/// Fewer bytes are read by one thread.
#[cfg(all(unix, feature = "tensor"))]
const MIN_BYTES: usize = 4 << 20;
/// The bytes that a thread reads at a time, few enough that all threads end together.
#[cfg(all(unix, feature = "tensor"))]
const UNIT: usize = 512 << 10;

/// Fills `bytes` with the file's next bytes.
///
/// # Errors
///
/// As [`Read::read_exact`]. The position in the file is then not known.
pub(super) fn read_exact(file: &mut File, bytes: &mut [u8]) -> io::Result<()> {
    #[cfg(all(unix, feature = "tensor"))]
    {
        let threads = crate::threads::thread_count().min(bytes.len() / UNIT);
        if bytes.len() >= MIN_BYTES && threads > 1 {
            return read_units(file, bytes, threads);
        }
    }
    file.read_exact(bytes)
}

#[cfg(all(unix, feature = "tensor"))]
fn read_units(file: &mut File, bytes: &mut [u8], threads: usize) -> io::Result<()> {
    use std::io::{Seek, SeekFrom};
    use std::os::unix::fs::FileExt;
    use std::sync::OnceLock;

    let start = file.stream_position()?;
    let end = start + bytes.len() as u64;
    let (shared, failure): (&File, OnceLock<io::Error>) = (file, OnceLock::new());
    crate::threads::in_units(threads, UNIT, bytes, |first, unit| {
        // After a failure nobody reads the rest.
        if failure.get().is_none()
            && let Err(error) = shared.read_exact_at(unit, start + first as u64)
        {
            let _ = failure.set(error);
        }
    });
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    file.seek(SeekFrom::Start(end)).map(drop)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

    #[test]
    fn threads_read_what_one_reads_and_go_on_behind_it() {
        let path = std::env::temp_dir().join(format!("selvedge-parallel-read-{}", std::process::id()));
        let written: Vec<u8> = (0..(9 << 20) + 123).map(|at: usize| (at * 7 + at / 251) as u8).collect();
        File::create(&path).unwrap().write_all(&written).unwrap();
        let mut file = File::open(&path).unwrap();
        file.seek(SeekFrom::Start(5)).unwrap();
        let mut bytes = vec![0; (8 << 20) + 17];
        read_exact(&mut file, &mut bytes).unwrap();
        assert!(bytes == written[5..5 + bytes.len()]);
        let mut rest = vec![0; 100];
        read_exact(&mut file, &mut rest).unwrap();
        assert_eq!(rest, written[5 + bytes.len()..][..100]);
        file.seek(SeekFrom::Start(2 << 20)).unwrap();
        let error = read_exact(&mut file, &mut bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        std::fs::remove_file(&path).unwrap();
    }
}
