//! A guess at the format of bytes that are not a kernel image, for the error message.

use super::cubin::{ELF_MAGIC, EM_CUDA, read_u16};

/// Initial bytes of files that are mistaken for kernel images.
const BEGINNINGS: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "gzip data: decompress it first"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data: decompress it first"),
    (b"\xfd7zXZ\0", "xz data: decompress it first"),
    (b"BZh", "bzip2 data: decompress it first"),
    (b"PK\x03\x04", "a zip archive"),
    (b"MZ", "a Windows program or library (PE)"),
    (b"BC\xc0\xde", "LLVM bitcode: compile it to PTX first"),
    (b"\xde\xc0\x17\x0b", "LLVM bitcode: compile it to PTX first"),
    (b"\xed\x43\x4e\x7f", "LTO intermediate code of NVRTC or NVCC: link it with nvJitLink first"),
    (b"\xb1\x43\x62\x46", "the wrapper that host programs keep around a fatbin, without the fatbin"),
    (b"!<arch>\n", "a static library (ar archive)"),
    (b"\xcf\xfa\xed\xfe", "a macOS program or library (Mach-O)"),
    (b"\x03\x02\x23\x07", "SPIR-V"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8"),
    (b"version https://git-lfs", "a pointer of Git LFS: fetch the file itself"),
];

/// Words that identify the language of a text, in search order.
const WORDS: &[(&[u8], &str)] = &[
    (b"__global__", CUDA),
    (b"__device__", CUDA),
    (b"#include", CUDA),
    (b"extern \"C\"", CUDA),
    (b"; ModuleID", "LLVM IR: compile it to PTX first"),
    (b"target triple", "LLVM IR: compile it to PTX first"),
    (b"@triton.jit", "Triton source: compile it first"),
    (b"__kernel ", "OpenCL C source"),
    (b"<html", "an HTML page"),
    (b"<!DOCTYPE", "an HTML page"),
    (b".version", "text that has something before its .version, which PTX must begin with"),
    (b".entry", "PTX without the .version that it must begin with"),
];
const CUDA: &str = "CUDA C++ source: compile it first";

/// The part of a text that is searched.
const WINDOW: usize = 64 * 1024;

/// Describes the bytes, to follow "found".
pub(super) fn describe(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "nothing (0 bytes)".to_owned();
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return format!("{} bytes of zero", bytes.len());
    }
    if bytes.starts_with(ELF_MAGIC) {
        return describe_elf(bytes);
    }
    if let Some((_, what)) = BEGINNINGS.iter().find(|(beginning, _)| bytes.starts_with(beginning)) {
        return format!("what looks like {what}");
    }
    let window = bytes.get(..WINDOW).unwrap_or(bytes);
    let text = window.split(|byte| *byte == 0).next().unwrap_or_default();
    let printable = |byte: &u8| *byte >= 0x20 || byte.is_ascii_whitespace();
    if text.is_empty()
        || !text.iter().all(printable)
        || std::str::from_utf8(text.get(..64).unwrap_or(text)).is_err()
    {
        let first: Vec<String> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        return format!("{} bytes that begin with {}", bytes.len(), first.join(" "));
    }
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    if let Some((_, what)) = WORDS.iter().find(|(word, _)| has(word)) {
        return format!("what looks like {what}");
    }
    let shown: String =
        String::from_utf8_lossy(text).trim().chars().take(40).flat_map(char::escape_debug).collect();
    format!("text that is no PTX, beginning with '{shown}'")
}

fn describe_elf(bytes: &[u8]) -> String {
    let machine = match read_u16(bytes, 18) {
        None => return format!("the first {} bytes of an ELF file", bytes.len()),
        Some(EM_CUDA) => {
            return "a cubin of 32 bits or of big-endian order, which no driver takes any more".to_owned();
        }
        Some(62) => "x86-64".to_owned(),
        Some(183) => "AArch64".to_owned(),
        Some(3) => "x86".to_owned(),
        Some(224) => "AMD GPUs".to_owned(),
        Some(247) => "BPF".to_owned(),
        Some(other) => format!("machine {other}"),
    };
    format!(
        "an ELF file for {machine}, not for CUDA (a program or object may hold a fatbin: extract it with cuobjdump)"
    )
}
