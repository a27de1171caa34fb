//! Files that commands read and write, with errors that name the file.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use selvedge::Error;

use crate::failure::Failure;

/// The bytes that are read of a file, pipe or device at most.
const MAX_BYTES: u64 = 512 << 20;

/// A file's bytes, at most [`MAX_BYTES`]: a device or a pipe may have no end. `wanted` is what the file should be, such as `a PTX, cubin or fatbin file`.
pub fn read(path: &Path, wanted: &str) -> Result<Vec<u8>, Failure> {
    let refused = |found: String| -> Failure {
        Error::File { path: path.display().to_string(), found, wanted: wanted.to_owned() }.into()
    };
    let mut bytes = Vec::new();
    // One byte more tells a file of that size from a longer one.
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Ok(count) if count as u64 > MAX_BYTES => Err(refused(format!("more than {} MiB", MAX_BYTES >> 20))),
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(refused("no such file".to_owned())),
        Err(error) => Err(refused(format!("that it cannot be read: {error}"))),
    }
}

/// The same for a file of text.
pub fn read_text(path: &Path, wanted: &str) -> Result<String, Failure> {
    String::from_utf8(read(path, wanted)?).map_err(|error| {
        let found = format!("bytes that are no text at byte {}", error.utf8_error().valid_up_to());
        Error::File { path: path.display().to_string(), found, wanted: wanted.to_owned() }.into()
    })
}

/// A result that cannot be saved would be known only after the work.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let found = if path.is_dir() {
        "a folder"
    } else if !folder.is_dir() {
        "that its folder does not exist"
    } else {
        return Ok(());
    };
    let path = path.display().to_string();
    Err(Error::File { path, found: found.to_owned(), wanted: "a file that can be written".to_owned() }.into())
}

/// Writes a result.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    Ok(selvedge::io::write_file(path, bytes.as_ref())?)
}
