//! The raw layer without a driver: tables against bindings, and the loader against libraries made for the purpose.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use selvedge::sys::{
    self, CublasApi, CublasLtApi, CuptiApi, DriverApi, NcclApi, NvrtcApi, Symbol, abi_version, codes,
};

#[path = "common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
#[path = "sys/loader.rs"]
mod loader;
#[cfg(target_os = "linux")]
#[path = "sys/made.rs"]
mod made;

const FILES: [&str; 7] = ["driver", "nvrtc", "cublas", "cublaslt", "nccl", "cupti", "cupti13"];

fn source(name: &str) -> String {
    let path = common::repository().join("src/sys").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The function types that a bindings file declares.
fn declared(file: &str) -> BTreeSet<String> {
    let text = source(&format!("{file}.rs"));
    let names = text.lines().filter_map(|line| line.strip_prefix("pub type PFN_")?.split_once(' '));
    names.map(|(name, _)| format!("PFN_{name}")).collect()
}

/// The names of each section of the allowlist.
fn allowlist() -> BTreeMap<String, BTreeSet<String>> {
    let mut sections: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut current = String::new();
    for line in source("allowlist.txt").lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            current = name.to_owned();
            sections.entry(current.clone()).or_default();
        } else if !line.is_empty() && !line.starts_with('#') {
            assert!(
                sections.entry(current.clone()).or_default().insert(line.to_owned()),
                "{line} is listed twice"
            );
        }
    }
    sections
}

fn tables() -> [(&'static str, &'static [Symbol]); 6] {
    [
        ("driver", DriverApi::SYMBOLS),
        ("nvrtc", NvrtcApi::SYMBOLS),
        ("cublas", CublasApi::SYMBOLS),
        ("cublaslt", CublasLtApi::SYMBOLS),
        ("nccl", NcclApi::SYMBOLS),
        ("cupti", CuptiApi::SYMBOLS),
    ]
}

#[test]
fn bindings_hold_exactly_the_allowlist() {
    let sections = allowlist();
    assert_eq!(sections.len(), FILES.len());
    for file in FILES {
        assert_eq!(declared(file), sections[file], "{file}.rs and [{file}] of allowlist.txt");
    }
}

#[test]
fn bindings_are_small_link_nothing_and_carry_no_comments() {
    let folder = common::repository().join("src/sys");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let lines: usize = files.map(|path| fs::read_to_string(path).unwrap().lines().count()).sum();
    assert!(lines <= 15_000, "src/sys has {lines} lines");
    for file in FILES {
        let text = source(&format!("{file}.rs"));
        assert!(!text.contains("extern \"C\" {"), "{file}.rs links a function");
        assert!(!text.contains("#[link"), "{file}.rs links a library");
        assert!(!text.contains("#[doc") && !text.contains("///"), "{file}.rs carries text of the headers");
        assert_eq!(
            text.lines().filter(|line| line.trim_start().starts_with("//")).count(),
            2,
            "{file}.rs: its heading"
        );
    }
}

#[test]
fn every_struct_has_its_size_and_alignment_asserted() {
    for file in FILES {
        let text = source(&format!("{file}.rs"));
        let dense: String = text.split_whitespace().collect();
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let named = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub union "));
            let Some(name) = named.and_then(|rest| rest.strip_suffix(" {")) else { continue };
            if lines[index + 1].contains("_unused: [u8; 0]") {
                continue; // An opaque handle, only ever behind a pointer.
            }
            for property in ["size", "align"] {
                let assertion = format!("::std::mem::{property}_of::<{name}");
                // Long ones are split over lines, with a comma behind the name.
                assert!(
                    dense.contains(&format!("{assertion}>()-"))
                        || dense.contains(&format!("{assertion},>()-")),
                    "{file}.rs: {name} has no {property}"
                );
            }
        }
    }
}

#[test]
fn tables_agree_with_the_bindings() {
    for (file, symbols) in tables() {
        let declared = declared(file);
        let mut seen = BTreeSet::new();
        for symbol in symbols {
            assert!(seen.insert(symbol.name), "{} is in the table twice", symbol.name);
            assert!(declared.contains(symbol.binding), "{} is not in {file}.rs", symbol.binding);
            let expected = match symbol.version {
                0 => format!("PFN_{}", symbol.spelling),
                version => format!("PFN_{}_v{version}", symbol.name),
            };
            assert_eq!(symbol.binding, expected, "{}", symbol.name);
            assert_eq!(symbol.version, abi_version(symbol.binding));
            assert_eq!(
                symbol.version != 0,
                file == "driver",
                "{}: only the driver has ABI versions",
                symbol.name
            );
            assert!(
                symbol.spelling.starts_with(symbol.name),
                "{} is spelled {}",
                symbol.name,
                symbol.spelling
            );
        }
    }
}

/// How the driver exports each ABI of a name that has more than one, as suffix, version and names.
///
/// A wrong one is memory corruption: the plain `cuMemAlloc` takes a 32-bit address.
const SPELLINGS: &[(&str, i32, &str)] = &[
    ("", 2000, "cuEventElapsedTime"),
    ("", 8000, "cuMemPrefetchAsync cuMemAdvise"),
    ("", 9020, "cuDeviceGetUuid"),
    ("", 11030, "cuGetProcAddress"),
    ("", 12020, "cuGraphAddNode"),
    ("", 12080, "cuMemcpyBatchAsync cuMemcpy3DBatchAsync"),
    (
        "_v2",
        3020,
        "cuMemAlloc cuMemFree cuMemGetInfo cuMemGetAddressRange cuMemAllocHost cuMemAllocPitch cuMemHostGetDevicePointer \
         cuMemcpyHtoD cuMemcpyDtoH cuMemcpyDtoD cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyDtoDAsync cuMemcpy2D \
         cuMemcpy2DAsync cuMemcpy3D cuMemcpy3DAsync cuMemsetD8 cuMemsetD16 cuMemsetD32 cuMemsetD2D8 cuMemsetD2D16 \
         cuMemsetD2D32 cuModuleGetGlobal cuDeviceTotalMem",
    ),
    ("_v2", 4000, "cuCtxDestroy cuCtxPopCurrent cuCtxPushCurrent cuStreamDestroy cuEventDestroy"),
    ("_v2", 6050, "cuLinkCreate cuLinkAddData cuLinkAddFile cuMemHostRegister"),
    ("_v2", 10010, "cuStreamBeginCapture"),
    (
        "_v2",
        11000,
        "cuIpcOpenMemHandle cuDevicePrimaryCtxRelease cuDevicePrimaryCtxReset cuDevicePrimaryCtxSetFlags",
    ),
    ("_v2", 11030, "cuStreamGetCaptureInfo"),
    ("_v2", 11040, "cuDeviceGetUuid"),
    (
        "_v2",
        11070,
        "cuStreamBatchMemOp cuStreamWaitValue32 cuStreamWaitValue64 cuStreamWriteValue32 cuStreamWriteValue64",
    ),
    (
        "_v2",
        12000,
        "cuGetProcAddress cuGraphExecUpdate cuGraphAddKernelNode cuGraphKernelNodeGetParams cuGraphKernelNodeSetParams \
         cuGraphExecKernelNodeSetParams",
    ),
    ("_v2", 12020, "cuMemPrefetchAsync cuMemAdvise"),
    (
        "_v2",
        12030,
        "cuGraphAddNode cuGraphGetEdges cuGraphAddDependencies cuGraphRemoveDependencies cuGraphNodeGetDependencies \
         cuGraphNodeGetDependentNodes cuStreamUpdateCaptureDependencies",
    ),
    ("_v2", 12080, "cuEventElapsedTime"),
    ("_v2", 13000, "cuMemcpyBatchAsync cuMemcpy3DBatchAsync"),
    ("_v3", 12030, "cuStreamGetCaptureInfo"),
];

/// The entries of a name.
fn named<'a>(name: &'a str) -> impl Iterator<Item = &'static (&'static str, i32, &'static str)> + 'a {
    SPELLINGS.iter().filter(move |entry| entry.2.split(' ').any(|known| known == name))
}

#[test]
fn renamed_functions_are_spelled_as_their_abi_is_exported() {
    for symbol in DriverApi::SYMBOLS {
        let suffix = match named(symbol.name).find(|entry| entry.1 == symbol.version) {
            Some(entry) => entry.0,
            None => {
                assert_eq!(named(symbol.name).count(), 0, "{} of version {}", symbol.name, symbol.version);
                ""
            }
        };
        assert_eq!(symbol.spelling, format!("{}{suffix}", symbol.name));
    }
    // A name with two ABIs in the bindings must be known here before a table uses it.
    let mut versions: BTreeMap<String, usize> = BTreeMap::new();
    for binding in declared("driver") {
        let (name, _) = binding["PFN_".len()..].rsplit_once("_v").unwrap();
        *versions.entry(name.to_owned()).or_default() += 1;
    }
    for (name, count) in versions.iter().filter(|(_, count)| **count > 1) {
        assert!(named(name).count() > 0, "{name} has {count} ABIs, and SPELLINGS says nothing of it");
    }
}

/// The oldest driver that the layer works with is that of CUDA 11.4.
#[test]
fn required_functions_are_in_every_supported_driver_and_only_they_are_required() {
    for symbol in DriverApi::SYMBOLS {
        let version = sys::cuda_version(symbol.version);
        assert_eq!(symbol.required, symbol.version <= 11040, "{} is of CUDA {version}", symbol.name);
    }
}

#[test]
fn versions_are_read_from_the_names() {
    assert_eq!(abi_version("PFN_cuMemAlloc_v3020"), 3020);
    assert_eq!(abi_version("PFN_cuMemcpyBatchAsync_v13000"), 13000);
    assert_eq!(abi_version("PFN_cublasSgemm_v2"), 0);
    assert_eq!(abi_version("PFN_nvrtcVersion"), 0);
    assert_eq!(abi_version(""), 0);
    assert_eq!(abi_version("2000"), 0);
    assert_eq!(sys::cuda_version(12040), "12.4");
    assert_eq!(sys::cuda_version(3020), "3.2");
    assert_eq!(sys::cuda_version(0), "");
}

#[test]
fn codes_are_those_of_the_header_in_order() {
    let text: String = source("driver.rs").split_whitespace().collect();
    for pair in codes::all().windows(2) {
        assert!(pair[0].0 < pair[1].0, "{} and {}", pair[0].1, pair[1].1);
    }
    for &(code, name, meaning) in codes::all() {
        let result = sys::driver::CUresult(code);
        let constant = format!("pubconst{name}:cudaError_enum=cudaError_enum({code}");
        assert!(text.contains(&constant), "{name} is not {code} in the header");
        assert!(!meaning.is_empty());
        assert_eq!(codes::by_name(name), Some(result));
        assert_eq!(codes::name(result), Some(name));
        assert_eq!(codes::describe(result), (name.to_owned(), meaning.to_owned()));
    }
    assert_eq!(
        text.matches(":cudaError_enum=").count(),
        codes::all().len(),
        "a code of the header is not in the table"
    );
    assert_eq!(codes::name(sys::driver::CUresult(98765)), None);
    assert!(codes::describe(sys::driver::CUresult(98765)).0.contains("98765"));
}
