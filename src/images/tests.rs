//! The choice among images that the embedded ones do not show yet: several targets, `a` targets, machine code.

use super::select::select_among;
use super::*;

const fn image(family: &'static str, target_name: &'static str, isa: (i32, i32), kind: ImageKind) -> Image {
    Image { family, target_name, isa, kind, reference: None, packed: &[] }
}

static CATALOGUE: &[Image] = &[
    image("copy", "sm_60", (8, 0), ImageKind::Ptx),
    image("matmul", "sm_60", (8, 0), ImageKind::Ptx),
    image("matmul", "sm_80", (8, 0), ImageKind::Ptx),
    image("matmul", "sm_80", (8, 0), ImageKind::Cubin),
    image("matmul", "sm_90", (8, 0), ImageKind::Ptx),
    image("matmul", "sm_90", (8, 0), ImageKind::Cubin),
    image("matmul", "sm_90a", (8, 0), ImageKind::Ptx),
    image("matmul", "sm_90a", (8, 0), ImageKind::Cubin),
    image("recent", "sm_60", (7, 4), ImageKind::Ptx),
    image("recent", "sm_80", (8, 7), ImageKind::Ptx),
    image("wide", "sm_90a", (8, 0), ImageKind::Cubin),
];

fn choose(
    family: &str,
    capability: (i32, i32),
    driver_isa: (i32, i32),
    architecture: &str,
    kind: &str,
) -> Result<(&'static str, ImageKind)> {
    let overrides = Overrides::parse(Some(architecture), Some(kind))?;
    select_among(CATALOGUE, family, capability, driver_isa, overrides)
        .map(|image| (image.target_name, image.kind))
}

#[test]
fn the_best_target_wins_and_machine_code_before_text() {
    use ImageKind::{Cubin, Ptx};
    let table = [
        ((9, 0), "", "", "sm_90a", Cubin),
        ((9, 0), "", "ptx", "sm_90a", Ptx),
        ((9, 0), "sm_90a", "auto", "sm_90a", Cubin),
        ((9, 0), "sm_90", "", "sm_90", Cubin),
        ((9, 0), "sm_90", "ptx", "sm_90", Ptx),
        // Machine code for sm_80 does not run on a 9.0, its text does.
        ((9, 0), "sm_80", "", "sm_80", Ptx),
        ((9, 0), "sm_89", "auto", "sm_80", Ptx),
        ((9, 0), "sm_70", "", "sm_60", Ptx),
        ((8, 9), "", "", "sm_80", Cubin),
        ((8, 6), "sm_75", "", "sm_60", Ptx),
        ((7, 5), "", "", "sm_60", Ptx),
        // Code for sm_90a runs on no newer device, and machine code on no other major.
        ((10, 0), "", "", "sm_90", Ptx),
        ((12, 0), "", "", "sm_90", Ptx),
    ];
    for (capability, architecture, kind, target, expected) in table {
        let chosen = choose("matmul", capability, (8, 0), architecture, kind).unwrap();
        assert_eq!(
            chosen,
            (target, expected),
            "{capability:?} SELVEDGE_ARCH={architecture} SELVEDGE_IMAGE={kind}"
        );
    }
}

#[test]
fn an_older_driver_gets_the_older_image() {
    assert_eq!(choose("recent", (9, 0), (9, 0), "", "").unwrap(), ("sm_80", ImageKind::Ptx));
    assert_eq!(choose("recent", (9, 0), (8, 6), "", "").unwrap(), ("sm_60", ImageKind::Ptx));
    let error = choose("recent", (9, 0), (7, 0), "", "").unwrap_err();
    assert!(matches!(error, Error::UnsupportedImage { .. }));
    assert!(error.to_string().contains("PTX 7.4") && error.to_string().contains("up to 7.0"), "{error}");
}

#[test]
fn what_cannot_work_says_what_is_there() {
    let text = |result: Result<(&str, ImageKind)>| match result {
        Err(error @ Error::UnsupportedImage { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let old_driver = text(choose("copy", (8, 0), (7, 4), "", ""));
    for part in ["'copy'", "PTX 8.0 (CUDA 12.0)", "up to 7.4 (CUDA 11.4)"] {
        assert!(old_driver.contains(part), "{old_driver}");
    }
    let old_device = text(choose("copy", (5, 2), (8, 0), "", ""));
    assert!(old_device.contains("PTX for sm_60") && old_device.contains("5.2"), "{old_device}");
    let no_cubin = text(choose("copy", (9, 0), (8, 0), "", "cubin"));
    assert!(no_cubin.contains("SELVEDGE_IMAGE=cubin"), "{no_cubin}");
    let lowered = text(choose("wide", (9, 0), (8, 0), "sm_90", ""));
    assert!(lowered.contains("SELVEDGE_ARCH=sm_90") && lowered.contains("cubin for sm_90a"), "{lowered}");
    let cubin_driver = text(choose("wide", (9, 0), (7, 8), "", ""));
    assert!(cubin_driver.contains("cubin") && cubin_driver.contains("CUDA 12.0"), "{cubin_driver}");
}

#[test]
fn bad_arguments_are_named() {
    let text = |result: Result<(&str, ImageKind)>| match result {
        Err(error @ Error::InvalidArgument { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    for (architecture, kind, parts) in [
        ("ampere", "", ["SELVEDGE_ARCH", "'ampere'", "sm_80"]),
        ("", "fatbin", ["SELVEDGE_IMAGE", "'fatbin'", "ptx, cubin or auto"]),
        ("sm_100", "", ["SELVEDGE_ARCH", "sm_100", "sm_90"]),
        ("sm_80a", "", ["SELVEDGE_ARCH", "sm_80a", "sm_90"]),
    ] {
        let error = text(choose("copy", (9, 0), (8, 0), architecture, kind));
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let unknown = text(choose("sort", (9, 0), (8, 0), "", ""));
    assert!(unknown.contains("'sort'") && unknown.contains("copy, matmul, recent, wide"), "{unknown}");
}

#[test]
fn damage_is_an_error() {
    let unpacked = |packed: &[u8]| Image { packed: packed.to_vec().leak(), ..CATALOGUE[0] }.bytes();
    let zeros = vec![0; 3000];
    // The image between 3 bytes before it and nothing after it.
    let mut whole = b"\x28\xb5\x2f\xfd\x60\xb8\x0a\xc1\x5d\x00".to_vec();
    whole.extend(&zeros);
    assert!(unpacked(&whole).unwrap() == zeros);
    let mut other_length = whole.clone();
    other_length[5] += 1;
    let mut no_memory = whole.clone();
    no_memory.splice(4..7, [0xe0].into_iter().chain([0x7f; 8]));
    for damaged in [&[][..], &[0xff; 9], &whole[1..], &whole[..100], &other_length, &no_memory] {
        let error = unpacked(damaged).unwrap_err();
        assert!(matches!(error, Error::DamagedImage { kind: "PTX", .. }), "{error:?}");
    }
    assert!(image("copy", "ampere", (8, 0), ImageKind::Ptx).target().is_err());
}
