//! Files as they are written: permissions, links, devices and pipes, and errors that leave what a path held.
#![cfg(unix)]

use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use selvedge::io::npz::{NpzFile, NpzWriter};
use selvedge::io::safetensors::{SafetensorsFile, SafetensorsWriter};
use selvedge::io::{HostArray, npy, write_file};
use selvedge::types::DType;
use selvedge::{Error, Result};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("selvedge-writing-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn npy(path: &Path) -> Result<()> {
    npy::write(path, &HostArray::zeros(DType::F32, &[1000])?)
}

fn npz(path: &Path) -> Result<()> {
    let mut file = NpzWriter::compressed(path)?;
    for name in ["x", "y"] {
        file.begin(name, DType::U8, &[3000])?;
        file.write(&[7; 3000])?;
    }
    file.finish()
}

fn safetensors(path: &Path) -> Result<()> {
    let mut file = SafetensorsWriter::create(path, &[("x", DType::U8, &[3000])], &[])?;
    file.begin("x")?;
    file.write(&[7; 3000])?;
    file.finish()
}

fn bytes(path: &Path) -> Result<()> {
    write_file(path, &[7; 3000])
}

type Writer = fn(&Path) -> Result<()>;
const WRITERS: [(&str, Writer); 4] =
    [("npy", npy), ("npz", npz), ("safetensors", safetensors), ("bytes", bytes)];

#[test]
fn a_replaced_file_keeps_its_permissions_and_links_are_followed() {
    for (name, write) in WRITERS {
        let folder = Folder::new(&format!("links-{name}"));
        let [target, link, chain] = ["target", "link", "chain"].map(|name| folder.0.join(name));
        symlink("target", &link).unwrap();
        symlink(&link, &chain).unwrap();
        // A link to nothing makes its target.
        write(&chain).unwrap();
        let wanted = std::fs::read(&target).unwrap();
        for mode in [0o600, 0o640, 0o755] {
            std::fs::write(&target, "old").unwrap();
            std::fs::set_permissions(&target, PermissionsExt::from_mode(mode)).unwrap();
            write(&chain).unwrap();
            let found = std::fs::symlink_metadata(&target).unwrap();
            assert_eq!((found.is_file(), found.mode() & 0o7777), (true, mode), "{name}");
            assert!(std::fs::read(&target).unwrap() == wanted, "{name}");
        }
        assert!(link.is_symlink() && chain.is_symlink(), "{name}");
        assert_eq!(folder.names(), ["chain", "link", "target"], "{name}");
    }
}

#[test]
fn an_error_names_the_file_and_leaves_what_the_path_held() {
    for (name, write) in WRITERS {
        let folder = Folder::new(&format!("errors-{name}"));
        let [inside, a, b] = ["folder", "a", "b"].map(|name| folder.0.join(name));
        std::fs::create_dir_all(&inside).unwrap();
        symlink(&a, &b).unwrap();
        symlink(&b, &a).unwrap();
        for path in [inside, a, folder.0.join("none/file"), Path::new("/sys/selvedge").to_owned()] {
            match write(&path) {
                Err(Error::FileNotWritten { path: found, .. }) => {
                    assert_eq!(found, path.display().to_string())
                }
                other => panic!("{name} to {}: {other:?}", path.display()),
            }
        }
        assert_eq!(folder.names(), ["a", "b", "folder"], "{name}");
    }
    let folder = Folder::new("dropped");
    let path = folder.0.join("file");
    std::fs::write(&path, "old").unwrap();
    let mut file = NpzWriter::create(&path).unwrap();
    file.begin("x", DType::U8, &[3000]).unwrap();
    drop(file);
    drop(SafetensorsWriter::create(&path, &[("x", DType::U8, &[3000])], &[]).unwrap());
    drop(npy::NpyWriter::create(&path, DType::U8, &[3000]).unwrap());
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(folder.names(), ["file"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_is_written_through() {
    for (name, write) in WRITERS {
        write(Path::new("/dev/null")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let error = write(Path::new("/dev/full")).unwrap_err();
        assert!(matches!(error, Error::FileNotWritten { .. }), "{name}: {error}");
        assert!(error.to_string().contains("No space left"), "{name}: {error}");
        for device in ["/dev/null", "/dev/full"] {
            assert!(std::fs::metadata(device).unwrap().file_type().is_char_device(), "{name}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_gets_the_bytes_in_order() {
    let folder = Folder::new("pipe");
    for (name, write) in WRITERS {
        let [pipe, copy, plain] =
            ["pipe", "copy", "plain"].map(|part| folder.0.join(format!("{name}-{part}")));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut bytes = Vec::new();
                std::fs::File::open(pipe).unwrap().read_to_end(&mut bytes).unwrap();
                bytes
            }
        });
        write(&pipe).unwrap();
        let found = reader.join().unwrap();
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo(), "{name}");
        write(&plain).unwrap();
        // An archive has the sizes of its members behind them.
        assert!(name == "npz" || found == std::fs::read(&plain).unwrap(), "{name}");
        std::fs::write(&copy, found).unwrap();
        match name {
            "npz" => {
                let mut file = NpzFile::open(&copy).unwrap();
                assert_eq!(file.names(), ["x", "y"]);
                assert!(file.array("y").unwrap().read().unwrap().as_bytes().iter().all(|byte| *byte == 7));
            }
            "safetensors" => assert_eq!(SafetensorsFile::open(&copy).unwrap().names(), ["x"]),
            _ => {}
        }
    }
}
