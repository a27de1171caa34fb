//! Faults injected into the kernels of products and of attention: the tests of the parent module must find each of them.

use half::bf16;

use super::super::children;
use super::super::products::cases::Case;
use super::super::support::Fake;
use super::super::variant::Variant;
use super::attention::{self, FAULTY_BACKWARD, FAULTY_FORWARD, FAULTY_WIDE};
use super::build::Family;
use super::{
    BULK_F32, MANY, Outcome, PERSISTENT_BF16, SIMT, SPLIT_K_BF16, decode, emulate, passes,
    with_every_algorithm, with_seeds,
};
use crate::common::suite::{Test, detail};

/// Faults that a reader overlooks easily: a kernel with any of them must not pass.
const FAULTS: [(Family, (&str, &str)); 43] = [
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
    // Attention multiplies keys before they are there, or masks one key too few.
    (
        FAULTY_FORWARD,
        (
            "            wait_for_k();\n            wait_for_turn();\n            issue_scores();\n            wait_for_v();",
            "            wait_for_turn();\n            issue_scores();\n            wait_for_v();",
        ),
    ),
    (FAULTY_FORWARD, ("i / 2 * 8 + i % 2 < end ? score", "i / 2 * 8 + i % 2 <= end ? score")),
    // A stage is released while it is multiplied, and registers of an operand change meanwhile.
    (
        FAULTY_FORWARD,
        (
            "            wgmma_wait<0>();\n            pin(o);\n            finish_v();",
            "            finish_v();\n            wgmma_wait<0>();\n            pin(o);",
        ),
    ),
    (
        FAULTY_FORWARD,
        (
            "            softmax(false, masks_ends || masks_beginnings);\n",
            "            softmax(false, masks_ends || masks_beginnings);\n            round_probabilities();\n",
        ),
    ),
    // The staging buffer is overwritten while the last store reads it.
    (
        FAULTY_FORWARD,
        (
            "        if (thread == 0) stores_read<0>();\n        synchronize_warps();",
            "        synchronize_warps();",
        ),
    ),
    // The only buffer of Q, in which O is staged, is overwritten while a store reads it, or while warps do.
    (FAULTY_WIDE, ("            if (thread == 0) stores_read<0>();\n", "")),
    (
        FAULTY_WIDE,
        (
            "            if (Which == is_varied) synchronize_warps();  // Threads of all warps may have stored O.\n",
            "",
        ),
    ),
    // A consumer skips a key block and keeps its turn.
    (
        FAULTY_FORWARD,
        ("        wait_for_turn();\n        end_turn();\n        finish_k();", "        finish_k();"),
    ),
    // A stage is released before all warps of a consumer that skips it have waited for it.
    (FAULTY_FORWARD, ("        synchronize_warps();\n        finish_v();", "        finish_v();")),
    // A value behind the end of a sequence stays, or its 0 is not published to the tensor cores.
    (FAULTY_FORWARD, ("u32 chunk = 8 * count + lane", "u32 chunk = 8 * count + 8 + lane")),
    (
        FAULTY_FORWARD,
        (
            "                publish_to_copies();\n            }\n            barrier_arrive",
            "            }\n            barrier_arrive",
        ),
    ),
    // An addition does not wait for its predecessor, is counted before the device sees it, or waits for a block that starts later.
    (
        FAULTY_BACKWARD,
        (
            "        while (predecessors > 0 && load_acquire(p.progress + walk.at) < predecessors) continue;\n",
            "",
        ),
    ),
    (FAULTY_BACKWARD, ("        fence_device();\n", "")),
    (FAULTY_BACKWARD, ("const u32 number = atomicAdd(p.progress, 1);", "const u32 number = blockIdx.x;")),
    // A buffer of dS is overwritten while the other consumer multiplies it, and so are K and V.
    (FAULTY_BACKWARD, ("buffer = buffer == 2 ? 0 : buffer + 1;", "buffer = buffer == 1 ? 0 : buffer + 1;")),
    (FAULTY_BACKWARD, ("    named_barrier(1, 256);\n    if (!adds)", "    if (!adds)")),
    // A block behind the last key of a sequence adds too.
    (FAULTY_BACKWARD, ("        if (key >= of.keys || of.queries == 0) return work;\n", "")),
    // Keys or gradients of the result behind the end of a sequence stay.
    (FAULTY_BACKWARD, ("if (work.key + block_keys > work.band.keys) {", "if (false) {")),
    (FAULTY_BACKWARD, ("const i32 rows = work.band.queries - block * Rows;", "const i32 rows = Rows;")),
    // The random bits of queries and keys change places, and a soft cap has the slope of 1.
    (FAULTY_BACKWARD, ("random[i] = transposed(random[i]);", "random[i] = random[i];")),
    (FAULTY_BACKWARD, ("is_capped ? fmaxf(", "false ? fmaxf(")),
    // Decoding multiplies a stage before its copies have ended, or while others still read the one that is copied to.
    (
        decode::FAULTY,
        ("        copies_wait<stages - 2>();\n        __syncthreads();", "        __syncthreads();"),
    ),
    (
        decode::FAULTY,
        (
            "        copies_wait<stages - 2>();\n        __syncthreads();\n        copy_next();",
            "        copies_wait<stages - 2>();\n        copy_next();\n        __syncthreads();",
        ),
    ),
    // A key before the window counts, a row has the sums of another warp, and the last block leaves its arrivals.
    (decode::FAULTY, ("key >= first && key < end ? score", "key >= first - 1 && key < end ? score")),
    (decode::FAULTY, ("later.sum += sums[w * block_rows + 16", "later.sum += sums[0 * block_rows + 16")),
    (decode::FAULTY, ("    if (threadIdx.x == 0) *arrivals = 0;\n", "")),
];

/// Child: products with one of the faults: split-K, persistent clusters whose tiles take fewer steps than they have parts, stream-K,
/// large tiles of `f32` that use each stage more than once, and attention.
pub(super) fn faulty(fake: &Fake, number: &str) -> Outcome {
    let (family, fault) = *FAULTS.get(number.parse::<usize>()?).ok_or("no such fault")?;
    let faulty = Family { fault: Some(fault), ..family };
    if [FAULTY_FORWARD, FAULTY_WIDE, FAULTY_BACKWARD].contains(&family) {
        return attention::faulty(fake, faulty);
    }
    if family == decode::FAULTY {
        return decode::faulty(fake, faulty);
    }
    emulate(fake, &[faulty])?;
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
