//! Makes `src/sys/*.rs` from the CUDA headers, or checks that they are what the headers give.
//!
//! The bindings are committed, so a build needs neither headers nor libclang and this does nothing unless two things hold: the
//! feature `bindgen`, and `SELVEDGE_CUDA_INCLUDE` with the header folders (docs in `src/sys/mod.rs`). Then each library's file is
//! generated into `OUT_DIR` and the build fails when one differs from the committed file; `SELVEDGE_UPDATE_BINDINGS=1` copies
//! them over instead. `src/sys/allowlist.txt` lists every bound name, so headers that grow change nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

const INCLUDE: &str = "SELVEDGE_CUDA_INCLUDE";
const UPDATE: &str = "SELVEDGE_UPDATE_BINDINGS";

/// One generated file.
struct Library {
    /// The section of the allowlist and the stem of the file.
    name: &'static str,
    /// A part of the name of the header folder that is searched first.
    headers: &'static str,
    /// Types that the header drags in and another file of `src/sys` (or nobody) defines.
    blocked: &'static [&'static str],
    /// Types beyond those that the functions name, such as the enums that go into `void *` attributes.
    types: &'static [&'static str],
    /// Constants of the header, which are macros there.
    constants: &'static [&'static str],
    /// Lines put in place of the blocked types.
    lines: &'static [&'static str],
}

const LIBRARIES: &[Library] = &[
    Library {
        name: "driver",
        headers: "",
        blocked: &[],
        types: &[
            "CUjit_option",
            "CUjit_target",
            "CUlaunchAttribute.*",
            "CUmemAllocationGranularity_flags",
            "CUmemAllocationHandleType",
            "CUlimit",
            "CUstream_flags",
            "CUevent_flags",
            "CUevent_record_flags",
            "CUevent_wait_flags",
            "CUctx_flags",
            "CUmemAttach_flags",
            "CUoccupancy_flags",
            "CUgraphInstantiate_flags",
            "CUgraphDebugDot_flags",
            "CUuserObject_flags",
            "CUuserObjectRetain_flags",
            "CUmemPool_attribute",
            "CUdriverProcAddress_flags",
            "CUipcMem_flags",
        ],
        constants: &[
            "CU_MEMHOSTALLOC_.*",
            "CU_MEMHOSTREGISTER_.*",
            "CU_TENSOR_MAP_NUM_QWORDS",
            "CU_GRAPH_KERNEL_NODE_PORT_.*",
        ],
        lines: &[],
    },
    Library { name: "nvrtc", headers: "", blocked: &[], types: &[], constants: &[], lines: &[] },
    Library {
        name: "cublas",
        headers: "",
        blocked: &[
            "cudaStream_t",
            "CUstream_st",
            "cuComplex",
            "cuFloatComplex",
            "cuDoubleComplex",
            "float2",
            "double2",
        ],
        types: &[],
        constants: &[],
        lines: &[
            "pub type cudaStream_t = super::driver::CUstream;",
            "pub type cuComplex = num_complex::Complex<f32>;",
            "pub type cuDoubleComplex = num_complex::Complex<f64>;",
        ],
    },
    Library {
        name: "cublaslt",
        headers: "",
        blocked: &[
            "cudaStream_t",
            "CUstream_st",
            "cublasStatus_t",
            "cublasComputeType_t",
            "cudaDataType.*",
            "libraryPropertyType.*",
        ],
        types: &[
            "cublasLtMatmulDescAttributes_t",
            "cublasLtMatrixLayoutAttribute_t",
            "cublasLtMatmulPreferenceAttributes_t",
            "cublasLtMatrixTransformDescAttributes_t",
            "cublasLtEpilogue_t",
            "cublasLtOrder_t",
            "cublasLtPointerMode_t",
            "cublasLtReductionScheme_t",
            "cublasLtMatmulSearch_t",
            "cublasLtMatmulMatrixScale_t",
        ],
        constants: &[],
        lines: &[
            "pub type cudaStream_t = super::driver::CUstream;",
            "pub use super::cublas::{cublasComputeType_t, cublasStatus_t, cudaDataType, cudaDataType_t, libraryPropertyType};",
        ],
    },
    Library {
        name: "nccl",
        headers: "",
        blocked: &["cudaStream_t", "CUstream_st"],
        types: &[],
        constants: &[],
        lines: &["pub type cudaStream_t = super::driver::CUstream;"],
    },
    Library {
        name: "cupti",
        headers: "cupti-cu12-12",
        blocked: CUPTI_BLOCKED,
        types: &[
            "CUpti_ActivityKernel9",
            "CUpti_ActivityMemcpy6",
            "CUpti_ActivityMemcpyPtoP4",
            "CUpti_ActivityMemset4",
            "CUpti_ActivityExternalCorrelation",
        ],
        constants: &[],
        lines: CUPTI_LINES,
    },
    // The records of CUDA 13, of which the library reads the fields that are where those of 12 are.
    Library {
        name: "cupti13",
        headers: "cupti-13",
        blocked: CUPTI_BLOCKED,
        types: &[
            "CUpti_ActivityKernel10",
            "CUpti_ActivityMemcpy6",
            "CUpti_ActivityMemcpyPtoP4",
            "CUpti_ActivityMemset4",
            "CUpti_ActivityExternalCorrelation",
        ],
        constants: &[],
        lines: CUPTI_LINES,
    },
];

/// The driver's types, and a union of bit fields whose methods take a page.
const CUPTI_BLOCKED: &[&str] = &[
    "CUaccess.*",
    "CUctx_st",
    "CUcontext",
    "CUstream_st",
    "CUstream",
    "CUpti_ActivityKernel.*__bindgen_ty_.*",
];
const CUPTI_LINES: &[&str] = &[
    "pub use super::driver::{CUaccessPolicyWindow, CUcontext};",
    "pub type CUpti_ActivityKernel9__bindgen_ty_1 = u8;",
    "pub type CUpti_ActivityKernel10__bindgen_ty_1 = u8;",
];

/// Generates and compares, or does nothing; see the module's text.
pub fn run() {
    println!("cargo:rerun-if-env-changed={INCLUDE}");
    println!("cargo:rerun-if-env-changed={UPDATE}");
    println!("cargo:rerun-if-changed=build/bindings.rs");
    let Some(include) = env::var_os(INCLUDE) else { return };
    println!("cargo:rerun-if-changed=wrapper.h");
    println!("cargo:rerun-if-changed=src/sys");

    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let update = env::var_os(UPDATE).is_some_and(|value| value == "1");
    let arguments: Vec<String> =
        env::split_paths(&include).map(|folder| format!("-I{}", folder.display())).collect();
    let list =
        fs::read_to_string(root.join("src/sys/allowlist.txt")).expect("src/sys/allowlist.txt is readable");

    let mut stale = Vec::new();
    for library in LIBRARIES {
        let text = generate(library, &root, &arguments, &section(&list, library.name));
        let file = format!("{}.rs", library.name);
        fs::write(out.join(&file), &text).expect("OUT_DIR is writable");
        let committed = root.join("src/sys").join(&file);
        if fs::read_to_string(&committed).is_ok_and(|found| found == text) {
            continue;
        }
        if update {
            fs::write(&committed, &text).expect("src/sys is writable");
        } else {
            stale.push(file);
        }
    }
    assert!(
        stale.is_empty(),
        "src/sys is not what {INCLUDE} generates: {} differ (generated copies are in {}); set {UPDATE}=1 to take them over",
        stale.join(", "),
        out.display()
    );
}

/// The names under `[name]` in the allowlist.
fn section(list: &str, name: &str) -> Vec<String> {
    let head = format!("[{name}]");
    let names = list.lines().map(str::trim).skip_while(|line| *line != head).skip(1);
    names
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

fn generate(library: &Library, root: &Path, arguments: &[String], functions: &[String]) -> String {
    let wrapper = root.join("wrapper.h");
    let mut header = fs::read_to_string(&wrapper).expect("wrapper.h is readable");
    if library.name != "driver" {
        for function in functions {
            let symbol = function.strip_prefix("PFN_").unwrap_or(function);
            writeln!(header, "typedef __typeof__({symbol}) *{function};").expect("a String takes writes");
        }
    }
    let mut arguments = arguments.to_vec();
    arguments.sort_by_key(|folder| !folder.contains(library.headers));
    let mut builder = bindgen::Builder::default()
        .header_contents("wrapper.h", &header)
        .clang_arg(format!("-DSELVEDGE_BIND_{}", library.name.to_uppercase()))
        .clang_args(&arguments)
        .clang_arg("--target=x86_64-unknown-linux-gnu")
        .rust_target(bindgen::RustTarget::stable(85, 0).unwrap_or_default())
        .disable_header_comment()
        .generate_comments(false)
        .layout_tests(true)
        .derive_default(true)
        .derive_debug(true)
        .default_enum_style(bindgen::EnumVariation::NewType { is_bitfield: false, is_global: false })
        .ignore_functions()
        .formatter(bindgen::Formatter::Prettyplease);
    for name in functions {
        builder = builder.allowlist_type(format!("^{name}$"));
    }
    for name in library.types {
        builder = builder.allowlist_type(name);
    }
    for name in library.constants {
        builder = builder.allowlist_var(name);
    }
    for name in library.blocked {
        builder = builder.blocklist_type(name);
    }
    for line in library.lines {
        builder = builder.raw_line(*line);
    }
    let text = builder.generate().unwrap_or_else(|error| panic!("{}: {error}", library.name)).to_string();
    format!("{}\n{}", heading(library.name), tidy(&text))
}

/// The first lines of a generated file.
fn heading(name: &str) -> String {
    format!(
        "// Generated from wrapper.h and the [{name}] names of src/sys/allowlist.txt by build/bindings.rs; do not edit. Again with:\n\
         // python3 scripts/build_bindings.py\n"
    )
}

/// Removes text that no option of bindgen removes: an `impl` block for each constant of an enum, which needs one alone, and an
/// assertion for each field, for which the struct's size and alignment say enough.
fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept: Vec<&str> = Vec::with_capacity(lines.len());
    let mut open_impl = None;
    let mut index = 0;
    while index < lines.len() {
        let line = lines[index];
        if line.trim_start().starts_with("[\"Offset of field") {
            index += 1;
        } else if line == "    ["
            && lines.get(index + 1).is_some_and(|next| next.trim_start().starts_with("\"Offset of field"))
        {
            while !lines[index].ends_with(';') {
                index += 1;
            }
            index += 1;
        } else if line.starts_with("impl ") && line.ends_with(" {") && !line.contains(" for ") {
            if open_impl == Some(line) && kept.last() == Some(&"}") {
                kept.pop();
            } else {
                kept.push(line);
            }
            open_impl = Some(line);
            index += 1;
        } else {
            kept.push(line);
            index += 1;
        }
    }
    kept.join("\n") + "\n"
}
