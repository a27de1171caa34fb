//! The locations of the libraries: their file names, newest first, and the folders that installers use.
//!
//! This module only lists candidates; [`super::loader`] opens them. The driver belongs to the system. It is searched by
//! its linker name and at a few fixed paths, never as the bare `libcuda.so`, which in a toolkit's folder is a stub. The
//! other libraries come from Python wheels, conda or a toolkit. A release is offered only if the driver is new enough
//! for it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::loader::How;

/// A candidate, or the reason why it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) how: How,
    /// The source of the candidate.
    pub(super) source: String,
    /// The library that must be opened first, from the same folder (`cublasLt` for `cublas`).
    pub(super) companion: Option<How>,
    /// The reason why it is not opened, if it is refused.
    pub(super) refused: Option<String>,
    /// True if the user named it, so that no other may replace it.
    pub(super) explicit: bool,
}

impl Candidate {
    fn new(how: How, source: impl Into<String>) -> Candidate {
        Candidate { how, source: source.into(), companion: None, refused: None, explicit: false }
    }
}

/// A release line of a library: all versions with the same file name.
#[derive(Debug)]
pub(super) struct Release {
    /// The CUDA major version; 0 if the library does not follow CUDA's.
    major: i32,
    unix: &'static str,
    windows: &'static str,
    /// The companion's file names; empty if there is none.
    companion: (&'static str, &'static str),
}

impl Release {
    fn file(&self) -> &'static str {
        if cfg!(windows) { self.windows } else { self.unix }
    }

    fn companion(&self) -> &'static str {
        if cfg!(windows) { self.companion.1 } else { self.companion.0 }
    }
}

/// A library other than the driver.
#[derive(Debug)]
pub(super) struct Family {
    /// The name in errors.
    pub(super) name: &'static str,
    /// The environment variable that names a file, or `none`.
    pub(super) variable: &'static str,
    /// Its folder under `site-packages/nvidia` before CUDA 13, which has one folder for all.
    wheel: &'static str,
    /// A folder of its own in a toolkit; empty if there is none.
    toolkit: &'static str,
    releases: &'static [Release],
}

const fn release(major: i32, unix: &'static str, windows: &'static str) -> Release {
    Release { major, unix, windows, companion: ("", "") }
}

pub(super) const NVRTC: Family = Family {
    name: "NVRTC",
    variable: "SELVEDGE_LIBNVRTC",
    wheel: "cuda_nvrtc",
    toolkit: "",
    releases: &[
        release(13, "libnvrtc.so.13", "nvrtc64_130_0.dll"),
        release(12, "libnvrtc.so.12", "nvrtc64_120_0.dll"),
        release(11, "libnvrtc.so.11.2", "nvrtc64_112_0.dll"),
    ],
};

pub(super) const CUBLAS: Family = Family {
    name: "cuBLAS",
    variable: "SELVEDGE_LIBCUBLAS",
    wheel: "cublas",
    toolkit: "",
    releases: &[
        Release {
            major: 13,
            unix: "libcublas.so.13",
            windows: "cublas64_13.dll",
            companion: ("libcublasLt.so.13", "cublasLt64_13.dll"),
        },
        Release {
            major: 12,
            unix: "libcublas.so.12",
            windows: "cublas64_12.dll",
            companion: ("libcublasLt.so.12", "cublasLt64_12.dll"),
        },
        Release {
            major: 11,
            unix: "libcublas.so.11",
            windows: "cublas64_11.dll",
            companion: ("libcublasLt.so.11", "cublasLt64_11.dll"),
        },
    ],
};

/// NVIDIA has no build for Windows; the name is that of a custom build.
pub(super) const NCCL: Family = Family {
    name: "NCCL",
    variable: "SELVEDGE_LIBNCCL",
    wheel: "nccl",
    toolkit: "",
    releases: &[release(0, "libnccl.so.2", "nccl.dll")],
};

/// On Windows the file's name has the release of the profiling tools.
pub(super) const CUPTI: Family = Family {
    name: "CUPTI",
    variable: "SELVEDGE_LIBCUPTI",
    wheel: "cuda_cupti",
    toolkit: "extras/CUPTI/lib64",
    releases: &[
        release(13, "libcupti.so.13", "cupti64_2025.3.1.dll"),
        release(12, "libcupti.so.12", "cupti64_2025.2.1.dll"),
    ],
};

/// The environment, as a function so that tests can replace it.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The value of an override variable.
pub(super) enum Override {
    /// The variable is not set.
    Unset,
    /// `none`: treat the library as absent.
    Absent,
    /// Use only this file.
    File(PathBuf),
    /// A relative path, which is refused because it would depend on the current folder.
    Relative(String),
}

/// Reads an override variable.
pub(super) fn override_of(variable: &str, environment: Environment<'_>) -> Override {
    match environment(variable) {
        None => Override::Unset,
        Some(value) if value.is_empty() => Override::Unset,
        Some(value) if value == "none" => Override::Absent,
        Some(value) if Path::new(&value).is_absolute() => Override::File(value.into()),
        Some(value) => Override::Relative(value.to_string_lossy().into_owned()),
    }
}

/// The driver's linker name.
pub(super) const DRIVER_FILE: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

/// The candidates for the driver without an override.
pub(super) fn driver_candidates() -> Vec<Candidate> {
    let mut candidates = vec![
        Candidate::new(How::AlreadyLoaded(DRIVER_FILE.to_owned()), "already loaded"),
        Candidate::new(How::Linker(DRIVER_FILE.to_owned()), "the linker"),
    ];
    if cfg!(target_os = "linux") {
        let folders: &[(&str, &str)] = &[
            ("/usr/lib/wsl/lib", "WSL"),
            #[cfg(target_arch = "x86_64")]
            ("/usr/lib/x86_64-linux-gnu", "system"),
            #[cfg(target_arch = "aarch64")]
            ("/usr/lib/aarch64-linux-gnu", "system"),
            ("/usr/lib64", "system"),
            ("/usr/lib", "system"),
            ("/run/opengl-driver/lib", "NixOS"),
        ];
        for (folder, source) in folders {
            candidates.push(Candidate::new(How::File(Path::new(folder).join(DRIVER_FILE)), *source));
        }
    }
    candidates
}

/// The oldest driver for a CUDA major version: its CUDA version and its own number on Linux.
fn oldest_driver(major: i32) -> (i32, &'static str) {
    match major {
        13.. => (13000, "580"),
        12 => (12000, "525"),
        11 => (11000, "450"),
        _ => (0, ""),
    }
}

/// Returns the reason why a release cannot run on this driver, if any. Without a driver everything is offered, because
/// NVRTC needs none.
fn too_new(release: &Release, driver: Option<i32>) -> Option<String> {
    let (needed, number) = oldest_driver(release.major);
    let driver = driver.filter(|version| *version < needed)?;
    Some(format!(
        "refused: CUDA {} needs driver {number} or newer, this driver is CUDA {}",
        release.major,
        super::cuda_version(driver)
    ))
}

/// The candidates for a library without an override, in order.
pub(super) fn candidates(
    family: &Family,
    driver: Option<i32>,
    environment: Environment<'_>,
) -> Vec<Candidate> {
    let mut list = Vec::new();
    for release in family.releases {
        let mut candidate = Candidate::new(How::AlreadyLoaded(release.file().to_owned()), "already loaded");
        candidate.companion = companion(release, |file| How::AlreadyLoaded(file.to_owned()));
        candidate.refused = too_new(release, driver);
        // A refusal is listed only if the library could have been used.
        if candidate.refused.is_none() {
            list.push(candidate);
        }
    }
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        if let Some(prefix) = folder_in(variable, environment, &mut list) {
            let folders = environment_folders(&prefix, family);
            if folders.is_empty() {
                let mut candidate = Candidate::new(How::File(prefix), format!("${variable}"));
                candidate.refused = Some(format!("has no folder in which {} could be", family.name));
                list.push(candidate);
            }
            for folder in folders {
                files_in(&folder, &format!("${variable}"), family, driver, &mut list);
            }
        }
    }
    for release in family.releases {
        let mut candidate = Candidate::new(How::Linker(release.file().to_owned()), "the linker");
        candidate.companion = companion(release, |file| How::Linker(file.to_owned()));
        candidate.refused = too_new(release, driver);
        list.push(candidate);
    }
    for variable in ["CUDA_PATH", "CUDA_HOME"] {
        if let Some(root) = folder_in(variable, environment, &mut list) {
            for folder in toolkit_folders(&root, family) {
                files_in(&folder, &format!("${variable}"), family, driver, &mut list);
            }
        }
    }
    if cfg!(unix) {
        for folder in toolkit_folders(Path::new("/usr/local/cuda"), family) {
            files_in(&folder, "toolkit", family, driver, &mut list);
        }
    }
    list
}

/// The file that an override names.
pub(super) fn explicit(family: &Family, path: &Path) -> Candidate {
    let mut candidate = Candidate::new(How::File(path.to_owned()), family.variable);
    candidate.explicit = true;
    if family.releases.iter().any(|release| !release.companion().is_empty()) {
        let file = path.file_name().map(|name| name.to_string_lossy().replacen("cublas", "cublasLt", 1));
        candidate.companion = file.map(|file| How::File(path.with_file_name(file)));
    }
    candidate
}

fn companion(release: &Release, how: impl FnOnce(&str) -> How) -> Option<How> {
    (!release.companion().is_empty()).then(|| how(release.companion()))
}

/// The folder that a variable names. A relative one is refused, as for an override.
fn folder_in(variable: &str, environment: Environment<'_>, list: &mut Vec<Candidate>) -> Option<PathBuf> {
    let value = environment(variable).filter(|value| !value.is_empty())?;
    let path = PathBuf::from(value);
    if path.is_absolute() {
        return Some(path);
    }
    let mut candidate = Candidate::new(How::File(path), format!("${variable}"));
    candidate.refused = Some("refused: the path is relative".to_owned());
    list.push(candidate);
    None
}

/// The folders with libraries in a Python or conda environment.
fn environment_folders(prefix: &Path, family: &Family) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for packages in site_packages(prefix) {
        let nvidia = packages.join("nvidia");
        if cfg!(windows) {
            let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x86_64" };
            folders.push(nvidia.join("cu13").join("bin").join(machine));
            folders.push(nvidia.join(family.wheel).join("bin"));
        } else {
            folders.push(nvidia.join("cu13").join("lib"));
            folders.push(nvidia.join(family.wheel).join("lib"));
        }
    }
    if cfg!(windows) {
        folders.push(prefix.join("Library").join("bin").join("x64"));
        folders.push(prefix.join("Library").join("bin"));
    } else {
        folders.push(prefix.join("lib"));
        folders.extend(TARGETS.iter().map(|target| prefix.join("targets").join(target).join("lib")));
    }
    folders.retain(|folder| folder.is_dir());
    folders
}

/// The `site-packages` of every Python in an environment, newest name first.
fn site_packages(prefix: &Path) -> Vec<PathBuf> {
    if cfg!(windows) {
        return vec![prefix.join("Lib").join("site-packages")];
    }
    let mut found = Vec::new();
    for lib in ["lib", "lib64"] {
        let Ok(entries) = std::fs::read_dir(prefix.join(lib)) else { continue };
        let pythons =
            entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
        found.extend(pythons.map(|entry| entry.path().join("site-packages")).filter(|path| path.is_dir()));
    }
    found.sort_by_key(|path| {
        let name = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let minor = name.and_then(|name| name.strip_prefix("python3.")?.parse::<u32>().ok());
        (std::cmp::Reverse(minor.unwrap_or(0)), path.clone())
    });
    // lib64 is often a link to lib.
    let mut seen = Vec::new();
    found.retain(|path| {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let new = !seen.contains(&real);
        seen.push(real);
        new
    });
    found
}

#[cfg(target_arch = "aarch64")]
const TARGETS: &[&str] = &["sbsa-linux", "aarch64-linux"];
#[cfg(not(target_arch = "aarch64"))]
const TARGETS: &[&str] = &["x86_64-linux"];

/// The folders with libraries in a toolkit.
fn toolkit_folders(root: &Path, family: &Family) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if !family.toolkit.is_empty() {
        folders.push(root.join(family.toolkit));
    }
    if cfg!(windows) {
        folders.push(root.join("bin").join("x64"));
        folders.push(root.join("bin"));
    } else {
        folders.push(root.join("lib64"));
        folders.push(root.join("lib"));
        folders.extend(TARGETS.iter().map(|target| root.join("targets").join(target).join("lib")));
    }
    folders
}

/// The candidates in a folder: one for each release if the folder exists, else one for the folder.
fn files_in(folder: &Path, source: &str, family: &Family, driver: Option<i32>, list: &mut Vec<Candidate>) {
    let there =
        family.releases.iter().filter(|release| folder.join(release.file()).exists()).collect::<Vec<_>>();
    if there.is_empty() {
        let mut candidate = Candidate::new(How::File(folder.to_owned()), source);
        candidate.refused = Some(match folder.is_dir() {
            true => format!(
                "holds none of {}",
                family.releases.iter().map(Release::file).collect::<Vec<_>>().join(", ")
            ),
            false => "no such folder".to_owned(),
        });
        list.push(candidate);
    }
    for release in there {
        let mut candidate = Candidate::new(How::File(folder.join(release.file())), source);
        candidate.companion = companion(release, |file| How::File(folder.join(file)));
        candidate.refused = too_new(release, driver);
        list.push(candidate);
    }
}
