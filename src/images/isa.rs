//! Which PTX instruction set (ISA) came with which CUDA version.
//!
//! A driver assembles PTX up to the ISA of its own CUDA version and no newer; minor-version compatibility, which lets a
//! driver run machine code of any minor version of its major one, does not hold for PTX. The versions are pairs of
//! major and minor number.

type Version = (i32, i32);

/// Every CUDA version since 11.0 with its ISA. From 13.0 on the ISA is the CUDA version less four majors.
const TABLE: &[(Version, Version)] = &[
    ((11, 0), (7, 0)),
    ((11, 1), (7, 1)),
    ((11, 2), (7, 2)),
    ((11, 3), (7, 3)),
    ((11, 4), (7, 4)),
    ((11, 5), (7, 5)),
    ((11, 6), (7, 6)),
    ((11, 7), (7, 7)),
    ((11, 8), (7, 8)),
    ((12, 0), (8, 0)),
    ((12, 1), (8, 1)),
    ((12, 2), (8, 2)),
    ((12, 3), (8, 3)),
    ((12, 4), (8, 4)),
    ((12, 5), (8, 5)),
    ((12, 6), (8, 5)),
    ((12, 7), (8, 6)),
    ((12, 8), (8, 7)),
    ((12, 9), (8, 8)),
    ((13, 0), (9, 0)),
    ((13, 1), (9, 1)),
    ((13, 2), (9, 2)),
    ((13, 3), (9, 3)),
    ((13, 4), (9, 4)),
    ((13, 5), (9, 5)),
];

/// The newest PTX ISA that a driver of this CUDA version assembles.
///
/// A version newer than the table counts as the newest one that is known, which it certainly takes; one older than
/// CUDA 11.0 as ISA 6.0.
pub fn isa_of_cuda(cuda: (i32, i32)) -> (i32, i32) {
    TABLE.iter().rev().find(|(version, _)| *version <= cuda).map_or((6, 0), |(_, isa)| *isa)
}

/// The first CUDA version whose driver assembles this ISA, or `None` where that is not known.
pub fn cuda_of_isa(isa: (i32, i32)) -> Option<(i32, i32)> {
    TABLE.iter().find(|(_, known)| *known >= isa).map(|(version, _)| *version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_isas_belong_together() {
        assert!(TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
        assert_eq!(isa_of_cuda((11, 4)), (7, 4));
        assert_eq!(isa_of_cuda((12, 0)), (8, 0));
        assert_eq!(isa_of_cuda((12, 6)), (8, 5));
        assert_eq!(isa_of_cuda((13, 0)), (9, 0));
        assert_eq!(isa_of_cuda((14, 2)), (9, 5));
        assert_eq!(isa_of_cuda((10, 2)), (6, 0));
        assert_eq!(cuda_of_isa((8, 0)), Some((12, 0)));
        assert_eq!(cuda_of_isa((8, 5)), Some((12, 5)));
        assert_eq!(cuda_of_isa((99, 0)), None);
    }
}
