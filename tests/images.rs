//! The embedded images are what their sources say, and choosing among them obeys the device, the driver and the
//! environment. Nothing here needs a GPU.

#[path = "common/mod.rs"]
mod common;
#[path = "../src/images/entries.rs"]
mod entries;

use std::fs;
use std::path::Path;
use std::process::Command;

use selvedge::Error;
use selvedge::driver::image::{ArchitectureSuffix, ImageInfo, ImageKind};
use selvedge::images::{self, Image, Overrides};

/// Families for one architecture alone.
fn is_for_hopper(family: &str) -> bool {
    let prefixes = [
        "attention_forward_",
        "attention_backward_",
        "gemm_wgmma_",
        "gemm_split_",
        "gemm_pack",
        "gemm_bulk_",
    ];
    prefixes.iter().any(|prefix| family.starts_with(prefix))
}

/// Families that have machine code for Hopper beside the PTX of older devices, because a step of decoding waits for them.
fn has_machine_code_too(family: &str) -> bool {
    family.starts_with("attention_decode_") || family.starts_with("gemm_rows_")
}

/// Families that older devices do without.
fn is_for_newer(family: &str) -> bool {
    family.starts_with("gemm_mma_") || family.starts_with("gemm_async_") || has_machine_code_too(family)
}

/// The sorted names of an image's kernels.
fn kernels_of(image: &Image) -> Vec<String> {
    let info = ImageInfo::parse(&image.bytes().unwrap()).unwrap();
    let mut names: Vec<String> = info.kernels.into_iter().map(|kernel| kernel.name).collect();
    names.sort();
    names
}

/// The `.entry` directives of PTX and the kernels' sections of cubins, each with the names that are declared and no other.
#[test]
fn images_hold_the_entries_that_the_list_declares() {
    assert_eq!(images::families(), entries::families());
    for image in images::all() {
        let declared = entries::declared(image.family(), &image.target().unwrap().to_string());
        assert!(!declared.is_empty(), "csrc/images.txt declares no entries of {image}");
        assert_eq!(kernels_of(image), declared, "{image}");
    }
}

#[test]
fn images_are_what_their_index_says() {
    for image in images::all() {
        let target = image.target().unwrap();
        assert!(target.capability >= (6, 0), "{image}");
        let bytes = image.bytes().unwrap();
        if image.kind() == ImageKind::Ptx {
            let (major, minor) = image.isa();
            let head = format!(".version {major}.{minor}\n.target {target}\n.address_size 64\n");
            let ptx = String::from_utf8(bytes).unwrap();
            assert!(ptx.starts_with(&head), "{image} starts with {:?}", ptx.lines().next());
            // A comment would name the compiler's build; a variable or a local array is an error in these kernels.
            for unwanted in ["//", ".global .align", ".local .align"] {
                assert!(!ptx.contains(unwanted), "{image} contains {unwanted}");
            }
        } else {
            assert!(bytes.starts_with(b"\x7fELF"), "{image}");
            let info = ImageInfo::parse(&bytes).unwrap();
            assert_eq!((&info.targets[..], &info.globals[..]), (&[target][..], &[][..]), "{image}");
        }
        // The oldest supported driver takes every image.
        assert!(image.isa() <= (8, 0), "{image}");
    }
}

/// PTX for one architecture alone would be dead weight: a device of that architecture always gets the machine code.
#[test]
fn kernels_of_one_architecture_are_machine_code_only() {
    for image in images::all() {
        let is_exact = image.target().unwrap().suffix == ArchitectureSuffix::Architecture;
        let is_only_exact = is_for_hopper(image.family());
        assert!(is_exact == is_only_exact || (is_exact && has_machine_code_too(image.family())), "{image}");
        assert!(!is_exact || image.kind() == ImageKind::Cubin, "{image}");
    }
    for family in images::families().into_iter().filter(|family| is_for_hopper(family)) {
        let overrides = Overrides { kind: Some(ImageKind::Ptx), ..Overrides::default() };
        let error = images::select_with(family, (9, 0), (8, 0), overrides).unwrap_err();
        assert!(matches!(error, Error::UnsupportedImage { .. }), "{error:?}");
        assert!(error.to_string().contains("SELVEDGE_IMAGE=ptx"), "{error}");
        assert!(error.to_string().contains("cubin for sm_90a"), "{error}");
    }
}

/// The instructions of a kernel's machine code, in order. An instruction has 16 bytes.
fn instructions(cubin: &[u8], kernel: &str) -> Vec<u128> {
    let number = |at: usize, size: usize| {
        cubin[at..at + size].iter().rev().fold(0, |value, byte| value << 8 | u128::from(*byte))
    };
    let offset = |at: usize, size: usize| number(at, size) as usize;
    let header = |index: usize| offset(40, 8) + 64 * index;
    let names = offset(header(offset(62, 2)) + 24, 8);
    for section in (0..offset(60, 2)).map(header) {
        let name = &cubin[names + offset(section, 4)..];
        if name.split(|byte| *byte == 0).next() == Some(format!(".text.{kernel}").as_bytes()) {
            let (start, size) = (offset(section + 24, 8), offset(section + 32, 8));
            return (start..start + size).step_by(16).map(|at| number(at, 16)).collect();
        }
    }
    panic!("{kernel} has no code");
}

/// The low 12 bits of an instruction.
fn opcode(instruction: u128) -> u16 {
    instruction as u16 & 0xfff
}

/// The index of the instruction that a branch at this index jumps to. Hopper's BRA holds the distance from the next instruction,
/// in units of 4 bytes: the low 8 bits from bit 16 on, the others from bit 34 on.
fn target(at: usize, branch: u128) -> usize {
    let high = ((branch >> 34) as i64) << 16 >> 16;
    let distance = high << 8 | (branch >> 16 & 0xff) as i64;
    assert_eq!(distance % 4, 0, "the branch {branch:#x} at {at}");
    usize::try_from(at as i64 + 1 + distance / 4).expect("a target in the kernel")
}

/// Returns what is wrong with a kernel that may begin before the kernel ahead has ended: on every path it waits for that end
/// before it accesses memory that another kernel may write.
fn wait_problem(instructions: &[u128]) -> Option<&'static str> {
    const ACQBULK: u16 = 0x82e;
    const BRA: u16 = 0x947;
    // LD, LDG, ST, STG, RED, UTMALDG, UTMASTG, UBLKCP.
    const ACCESSES: [u16; 8] = [0x980, 0x981, 0x985, 0x986, 0x98e, 0x5b4, 0x3b5, 0x3ba];
    let is_access = |instruction: &u128| ACCESSES.contains(&opcode(*instruction));
    let Some(wait) = instructions.iter().position(|instruction| opcode(*instruction) == ACQBULK) else {
        return Some("no wait");
    };
    let (before, behind) = instructions.split_at(wait);
    if before.iter().any(is_access) {
        return Some("an access before the wait");
    }
    let mut branches = before.iter().enumerate().filter(|(_, instruction)| opcode(**instruction) == BRA);
    if branches.any(|(at, branch)| target(at, *branch) > wait) {
        return Some("a branch over the wait");
    }
    (!behind.iter().any(is_access)).then_some("no access")
}

/// Families whose kernels wait for the kernel ahead. Launches of attention do not overlap it.
fn overlaps(family: &str) -> bool {
    is_for_hopper(family) && !family.starts_with("attention_")
}

#[test]
fn kernels_that_overlap_wait_first() {
    let mut kernels = 0;
    for image in images::all().iter().filter(|image| overlaps(image.family())) {
        let code = image.bytes().unwrap();
        for kernel in kernels_of(image) {
            let instructions = instructions(&code, &kernel);
            assert_eq!(wait_problem(&instructions), None, "{kernel}");
            // The encoding of branches is right if every target lies in its kernel.
            for (at, branch) in instructions.iter().enumerate().filter(|(_, one)| opcode(**one) == 0x947) {
                assert!(target(at, *branch) < instructions.len(), "{kernel}: the branch at {at}");
            }
            kernels += 1;
        }
    }
    let families = entries::families().into_iter().filter(|family| overlaps(family));
    assert_eq!(kernels, families.map(|family| entries::declared(family, "sm_90a").len()).sum::<usize>());
}

/// `griddepcontrol` of any kind: a kernel that has one, and is not of the families that overlap, would never be checked.
#[test]
fn other_kernels_have_no_control_of_overlap() {
    // PREEXIT, which lets the next kernel begin, and ACQBULK, which waits.
    const CONTROLS: [u16; 2] = [0x82d, 0x82e];
    for image in images::all().iter().filter(|image| !overlaps(image.family())) {
        let code = image.bytes().unwrap();
        if image.kind() == ImageKind::Ptx {
            assert!(!String::from_utf8(code).unwrap().contains("griddepcontrol"), "{image}");
            continue;
        }
        for kernel in kernels_of(image) {
            let controls = |one: &u128| CONTROLS.contains(&opcode(*one));
            assert!(!instructions(&code, &kernel).iter().any(controls), "{kernel}");
        }
    }
}

#[test]
fn a_kernel_that_accesses_memory_before_its_wait_is_found() {
    const WAIT: u128 = 0x82e;
    const LOAD: u128 = 0x981;
    const MOVE: u128 = 0x202;
    let branch = |instructions: i64| {
        let distance = 4 * instructions;
        0x947 | u128::from(distance as u8) << 16 | u128::from((distance >> 8) as u64 & 0xffff_ffff_ffff) << 34
    };
    for (distance, at) in [(0, 0), (1, 0), (63, 0), (64, 0), (-1, 5), (-100, 200), (100_000, 7)] {
        assert_eq!(target(at, branch(distance)) as i64, at as i64 + 1 + distance);
    }
    for right in [
        &[WAIT, LOAD][..],
        &[MOVE, WAIT, MOVE, LOAD],
        &[branch(1), MOVE, WAIT, LOAD],
        &[MOVE, branch(-2), WAIT, LOAD, branch(2)],
    ] {
        assert_eq!(wait_problem(right), None, "{right:x?}");
    }
    for (wrong, problem) in [
        (&[MOVE, LOAD][..], "no wait"),
        (&[LOAD, WAIT, LOAD], "an access before the wait"),
        (&[branch(1), WAIT, LOAD], "a branch over the wait"),
        (&[MOVE, branch(300), MOVE, WAIT, LOAD], "a branch over the wait"),
        (&[WAIT, MOVE], "no access"),
    ] {
        assert_eq!(wait_problem(wrong), Some(problem), "{wrong:x?}");
    }
}

#[test]
fn sm_60_has_every_family_but_those_of_one_architecture() {
    for family in images::families() {
        if is_for_hopper(family) {
            let error = images::select_with(family, (6, 0), (8, 0), Overrides::default()).unwrap_err();
            assert!(matches!(error, Error::UnsupportedImage { .. }), "{error:?}");
            // Machine code for the device goes before PTX, which the driver takes long to assemble.
            let image = images::select_with(family, (9, 0), (8, 0), Overrides::default()).unwrap();
            assert_eq!(image.kind(), ImageKind::Cubin);
            continue;
        }
        let image = images::select_with(family, (6, 0), (8, 0), Overrides::default());
        if is_for_newer(family) {
            assert!(matches!(image, Err(Error::UnsupportedImage { .. })), "{image:?}");
            let image = images::select_with(family, (8, 0), (8, 0), Overrides::default()).unwrap();
            assert_eq!(image.target().unwrap().to_string(), "sm_80");
            continue;
        }
        let image = image.unwrap();
        assert_eq!(image.target().unwrap().to_string(), "sm_60");
    }
}

#[test]
fn embedded_images_stay_small() {
    let total: usize = images::all().iter().map(|image| image.packed_length()).sum();
    println!("{} images take {total} bytes", images::all().len());
    // Decoding and products of a few rows have 0.7 MB of them.
    assert!(total < 2_600_000, "{total} bytes");
}

/// FNV-1a of 64 bits, as `selvedge build-images` has it.
fn hash(bytes: &[u8]) -> String {
    let step = |value: u64, byte: &u8| (value ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

fn file_names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn images_fit_their_sources() {
    let kernels = common::repository().join("csrc/kernels");
    let ptx = common::repository().join("ptx");
    let manifest = fs::read_to_string(ptx.join("manifest")).unwrap();
    let mut files = vec!["manifest".to_owned(), "references".to_owned()];
    let mut compiled = Vec::new();
    for line in manifest.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split(' ').collect();
        let [family, target, _isa, kind, source_hash, image_hash, _compiler, options, sources] = columns[..]
        else {
            panic!("not a line of an image: {line}");
        };
        let mut content = options.replace(',', " ").into_bytes();
        for source in sources.split(',') {
            content.push(0);
            content.extend(source.bytes());
            content.push(0);
            content.extend(fs::read(kernels.join(source)).unwrap());
            compiled.push(source.to_owned());
        }
        let file = format!("{family}.{target}.{kind}");
        assert_eq!(
            hash(&content),
            source_hash,
            "{file} is older than its sources: run scripts/build_images.py"
        );
        let of_file = |image: &&images::Image| {
            image.family() == family
                && image.target().unwrap().to_string() == target
                && image.kind().to_string().eq_ignore_ascii_case(kind)
        };
        let embedded = images::all().iter().find(of_file).unwrap_or_else(|| panic!("{file} is not embedded"));
        let bytes = embedded.bytes().unwrap();
        assert_eq!(hash(&bytes), image_hash, "{file} was changed by hand: run scripts/build_images.py");
        files.push(format!("{file}.zst"));
    }
    files.sort();
    assert_eq!(file_names(&ptx), files, "ptx/ holds what its manifest lists");
    // The headers for programs (csrc/include) are used by kernels too.
    compiled.retain(|source| !source.starts_with("../include/"));
    compiled.sort();
    compiled.dedup();
    assert_eq!(file_names(&kernels), compiled, "every kernel source is part of an image");
    assert_eq!(images::all().len(), files.len() - 2);
}

#[test]
fn an_older_driver_is_refused_with_both_versions() {
    let error = images::select_with("gather_32", (8, 0), (7, 4), Overrides::default()).unwrap_err();
    assert!(matches!(error, Error::UnsupportedImage { .. }), "{error:?}");
    for part in ["'gather_32'", "PTX 8.0 (CUDA 12.0)", "PTX up to 7.4 (CUDA 11.4)"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let error = images::select_with("gather_32", (5, 2), (8, 0), Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("5.2"), "{error}");
}

/// Runs [`prints_what_is_selected`] in a child process with these values of the two variables.
fn select_in_child(architecture: Option<&str>, image: Option<&str>) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "prints_what_is_selected", "--ignored", "--nocapture"]);
    for (name, value) in [("SELVEDGE_ARCH", architecture), ("SELVEDGE_IMAGE", image)] {
        match value {
            Some(value) => child.env(name, value),
            None => child.env_remove(name),
        };
    }
    let output = String::from_utf8(child.output().unwrap().stdout).unwrap();
    let line = output.lines().find_map(|line| line.split_once("selected: "));
    line.unwrap_or_else(|| panic!("the child said: {output}")).1.to_owned()
}

#[test]
#[ignore = "the child of the_environment_overrides_the_choice"]
fn prints_what_is_selected() {
    match images::select("gather_32", (9, 0), (8, 0)) {
        Ok(image) => println!("selected: {image}"),
        Err(error) => println!("selected: {error}"),
    }
}

#[test]
fn the_environment_overrides_the_choice() {
    let gather = "gather_32 for sm_60 (PTX)";
    assert_eq!(select_in_child(None, None), gather);
    assert_eq!(select_in_child(Some(""), Some("")), gather);
    assert_eq!(select_in_child(Some("sm_80"), Some("auto")), gather);
    assert_eq!(select_in_child(Some("sm_60"), Some("ptx")), gather);
    for (architecture, image, parts) in [
        (Some("sm_50"), None, ["SELVEDGE_ARCH=sm_50", "PTX for sm_60"]),
        (Some("volta"), None, ["SELVEDGE_ARCH", "'volta'"]),
        (Some("sm_120"), None, ["SELVEDGE_ARCH", "sm_90"]),
        (None, Some("cubin"), ["SELVEDGE_IMAGE=cubin", "PTX for sm_60"]),
        (None, Some("spirv"), ["SELVEDGE_IMAGE", "'spirv'"]),
    ] {
        let error = select_in_child(architecture, image);
        assert!(parts.iter().all(|part| error.contains(part)), "{architecture:?} {image:?}: {error}");
    }
}
