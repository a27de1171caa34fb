//! The interpreter of generated PTX itself: the order of a warp's threads, and races of shared memory.

use std::panic::catch_unwind;

use ptx_interpreter::{Kernel, Memory, Schedule};

use crate::common::suite::Test;

const WARP: usize = 32;

pub fn tests() -> Vec<Test> {
    let one = |name: &str, run: fn()| {
        Test::new(format!("interpreter::{name}"), move || {
            run();
            Ok(())
        })
    };
    vec![
        one("a_thread_reads_what_the_threads_before_it_wrote", exchanges),
        one("a_thread_does_not_read_what_later_threads_write", later),
        one("a_race_of_shared_memory_is_found", races),
    ]
}

/// Returns the words of memory after a block of some threads runs these lines. `%a` is the address of the thread's word, `%t`
/// its number.
fn run(lines: &str, schedule: Schedule, threads: usize) -> Vec<u32> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry test(\n.param .u64 words\n)\n\
         .maxntid 64\n{{\n.reg .pred %p;\n.reg .b32 %t, %x, %y, %s;\n.reg .b64 %a;\n\
         .shared .align 128 .b8 shared[256];\n\
         ld.param.u64 %a, [words];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %a, %t, 4, %a;\n{lines}\nret;\n}}\n"
    );
    let mut memory = Memory::default();
    let words = memory.add(vec![0; 4 * (threads + 2)]);
    Kernel::read(&text).run_as(schedule, 1, threads as u32, &words.to_le_bytes(), &mut memory);
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
    memory.bytes(words).chunks_exact(4).map(word).collect()
}

const ORDERS: [Schedule; 2] = [Schedule::IN_ORDER, Schedule { resident: 1, seed: Some(5) }];
/// Odd and even threads take two paths.
const TWO_PATHS: &str =
    "and.b32 %y, %t, 1;\nsetp.eq.u32 %p, %y, 0;\n@%p bra $even;\nadd.u32 %x, %x, 1;\n$even:\n";

/// Kernels that need the order show it to tests of operands that share memory.
fn exchanges() {
    let (load, store) = ("ld.global.u32 %x, [%a];\nadd.u32 %x, %x, 1;\n", "st.global.u32 [%a+4], %x;");
    // Two warps have one order without a seed alone.
    let [in_order, seeded] = ORDERS;
    for (schedule, threads) in
        [(in_order, WARP), (in_order, 7), (in_order, 2 * WARP), (seeded, WARP), (seeded, 7)]
    {
        let found = run(&format!("{load}{store}"), schedule, threads);
        assert!((0..=threads).all(|at| found[at] == at as u32), "{threads} in {schedule:?}: {found:?}");
        // Each thread adds 1, and each odd one another.
        let found = run(&format!("{load}{TWO_PATHS}{store}"), schedule, threads);
        assert!(
            (0..=threads).all(|at| found[at] == (at + at / 2) as u32),
            "{threads} in {schedule:?}: {found:?}"
        );
    }
}

fn later() {
    let (store, load) = ("add.u32 %x, %t, 9;\nst.global.u32 [%a+4], %x;\n", "ld.global.u32 %y, [%a+8];\n");
    let out = "st.global.u32 [%a], %y;";
    for schedule in ORDERS {
        for path in ["", TWO_PATHS] {
            let found = run(&format!("{store}{path}{load}{out}"), schedule, WARP);
            assert_eq!(found[..WARP], [0; WARP], "{schedule:?}, {path}");
        }
    }
}

fn races() {
    let address = "mov.u32 %s, shared;\nmad.lo.u32 %s, %t, 4, %s;\nst.shared.u32 [%s], %t;\n";
    let neighbour = "xor.b32 %y, %t, 1;\nmov.u32 %s, shared;\nmad.lo.u32 %s, %y, 4, %s;\nld.shared.u32 %x, [%s];\n\
                     st.global.u32 [%a], %x;\n";
    let again = "st.shared.u32 [%s], %t;";
    for (barrier, second, is_race) in [
        ("bar.sync 0;\n", "", false),
        ("bar.warp.sync -1;\n", "", false),
        ("", "", true),
        // The thread that reads a word may write it, but not the others.
        ("bar.sync 0;\n", again, false),
        ("bar.sync 0;\n", "mov.u32 %s, shared;\nst.shared.u32 [%s], %t;", true),
    ] {
        for schedule in ORDERS {
            for threads in [WARP, 2 * WARP] {
                let lines = format!("{address}{barrier}{neighbour}{second}");
                let found = catch_unwind(|| run(&lines, schedule, threads));
                assert_eq!(found.is_err(), is_race, "{threads} threads in {schedule:?}:\n{lines}");
                if let Ok(found) = found {
                    assert!((0..threads).all(|at| found[at] == at as u32 ^ 1), "{found:?}");
                }
            }
        }
    }
}
