//! Files that commands read and write, with errors that name the file.

use std::io::ErrorKind;
use std::path::Path;

use selvedge::Error;

use crate::failure::Failure;

/// A file's bytes. `wanted` is what the file should be, such as `a PTX, cubin or fatbin file`.
pub fn read(path: &Path, wanted: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        let found = match error.kind() {
            ErrorKind::NotFound => "no such file".to_owned(),
            _ => format!("that it cannot be read: {error}"),
        };
        Error::File { path: path.display().to_string(), found, wanted: wanted.to_owned() }.into()
    })
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
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::failed(format!("{} cannot be written: {error}", path.display())))
}
