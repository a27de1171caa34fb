//! Faults injected into the kernels of products: the tests of the parent module must find each of them.

use half::bf16;

use super::super::children;
use super::super::products::cases::Case;
use super::super::support::Fake;
use super::super::variant::Variant;
use super::build::Family;
use super::{
    BULK_F32, MANY, Outcome, PERSISTENT_BF16, SIMT, SPLIT_K_BF16, emulate, passes, with_every_algorithm,
    with_seeds,
};
use crate::common::suite::{Test, detail};

/// Faults that a reader overlooks easily: a kernel with any of them must not pass.
const FAULTS: [(Family, (&str, &str)); 17] = [
    // A stage is released while it is multiplied.
    (SPLIT_K_BF16, ("barrier_arrive(empty + 8 * last)", "barrier_arrive(empty + 8 * state.stage)")),
    // Too few arrivals, or too many bytes, are waited for.
    (
        SPLIT_K_BF16,
        (
            "barrier_initialise(empty + 8 * stage, Storage::consumers)",
            "barrier_initialise(empty + 8 * stage, 1)",
        ),
    ),
    (
        SPLIT_K_BF16,
        (
            "barrier_expect(full_stage, Storage::p_bytes + Storage::q_bytes)",
            "barrier_expect(full_stage, Storage::p_bytes)",
        ),
    ),
    // Writes are not published to the copies, or copies read the memory of a block that has ended.
    (SPLIT_K_BF16, ("        publish_to_copies();\n", "")),
    (SPLIT_K_BF16, ("    if (parameters.splits > 1) cluster_barrier();\n}", "}")),
    // The wrong part of the other blocks' sums.
    (SPLIT_K_BF16, ("sent + (block - (block > sums.rank)) * place", "sent + block * place")),
    // The thread that copies does not wait for the kernels ahead; one reads before it waits; a block ends without waiting.
    (SPLIT_K_BF16, ("    wait_for_earlier();\n", "    if (warpgroup != 0) wait_for_earlier();\n")),
    (
        SPLIT_K_BF16,
        (
            "    wait_for_earlier();\n",
            "    const u16 early = *(const u16*)c;\n    wait_for_earlier();\n    if (early != *(const u16*)c) return;\n",
        ),
    ),
    (SPLIT_K_BF16, ("    wait_for_earlier();\n", "    if (tile.p > 0) return;\n    wait_for_earlier();\n")),
    // A stage is released while it is multiplied, in persistent clusters too, or by one warpgroup for both.
    (
        PERSISTENT_BF16,
        (
            "        release(state.previous());\n        state.advance();",
            "        release(state.stage);\n        state.advance();",
        ),
    ),
    (PERSISTENT_BF16, ("empty + 8 * stage, consumers * cluster_size)", "empty + 8 * stage, cluster_size)")),
    // Parts of a tile are stored after steps alone, of which there may be fewer.
    (
        PERSISTENT_BF16,
        (
            "last_tile.store(part, staging);\n                if (multiplies)",
            "if (multiplies) last_tile.store(part, staging);\n                if (multiplies)",
        ),
    ),
    // The cluster that adds the partials has the lowest number, so it waits for clusters that start later.
    (
        PERSISTENT_BF16,
        (
            "const i32 own = blockIdx.x / ClusterSize;",
            "const i32 own = (gridDim.x - 1 - blockIdx.x) / ClusterSize;",
        ),
    ),
    // A block ends while TMA reads its staging buffers.
    (PERSISTENT_BF16, ("    if (thread == 0) stores_read<0>();\n", "")),
    // The next data overwrites the transpose buffer while others read it.
    (BULK_F32, ("                named_barrier(producers_barrier, Sizes::producers);\n", "")),
    // A stage is full when one warp has transposed its part, or empty when one has read it.
    (BULK_F32, ("(bytes_transposed > 0 ? Sizes::producers / 32 : 0)", "(bytes_transposed > 0)")),
    (
        BULK_F32,
        (
            "barrier_initialise(empty + 8 * stage, Sizes::consumers / 32)",
            "barrier_initialise(empty + 8 * stage, 1)",
        ),
    ),
];

/// Child: products with one of the faults: split-K, persistent clusters whose tiles take fewer steps than they have parts, stream-K,
/// and large tiles of `f32` that use each stage more than once.
pub(super) fn faulty(fake: &Fake, number: &str) -> Outcome {
    let (family, fault) = *FAULTS.get(number.parse::<usize>()?).ok_or("no such fault")?;
    emulate(fake, &[Family { fault: Some(fault), ..family }])?;
    if family.source == BULK_F32.source {
        let case = Case { multiple: 4, batch: MANY, ..Case::new(8, 68, 108) };
        return with_seeds(20, |stream| passes(case.check::<f32, f32>(stream, SIMT)));
    }
    let (size, algorithm) = if fault.0.contains("ClusterSize") {
        ((16, 256, 66 * 64), "persistent/64/stream-k")
    } else if family.source == PERSISTENT_BF16.source {
        ((16, 67 * 256, 130), "persistent/256")
    } else {
        ((150, 136, 1500), "split-k/128x64x2/swapped")
    };
    with_seeds(20, |stream| {
        let case = Case { multiple: 8, ..Case::new(size.0, size.1, size.2) };
        with_every_algorithm::<bf16, bf16>(stream, case, &[algorithm])
    })
}

/// A test for each fault: it is found.
pub fn faults() -> Vec<Test> {
    let test = |number: usize| {
        let fault = FAULTS[number].1;
        Test::new(format!("emulated::faults::{number}"), move || {
            let arguments = ["faulty".to_owned(), number.to_string()];
            let ended = children::spawn(&Variant::new(12040), "emulated", &arguments, &[])?;
            if ended.success || ended.text.contains("is not in") {
                return Err(format!("{fault:?} was not found: {}", ended.text).into());
            }
            detail(|| format!("{fault:?}: {}", ended.text));
            Ok(())
        })
    };
    (0..FAULTS.len()).map(test).collect()
}
