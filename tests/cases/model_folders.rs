//! The folders of small models in tests/data/models, for the tests of every language.

use std::io::Cursor;

/// Unpacks the cases, each into a folder of its name.
pub fn unpacked() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bytes = include_bytes!("../data/models/cases.zip");
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive");
    archive.extract(folder.path()).expect("the files of the archive");
    folder
}
