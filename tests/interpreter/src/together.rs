//! The threads of a warp, instruction by instruction, as long as they take one path.
//!
//! A step of the schedule runs each thread of a warp up to its next stop, one after another. If no thread reads
//! global memory that another writes within the step, the threads give the same memory side by side, which takes
//! a fraction of the time. [`together`](Kernel::together) reports global memory that was read and written, and
//! the schedule then runs the whole grid again, thread by thread. Shared memory finds accesses without a barrier
//! between in any order.

use super::kernel::{Action, Kernel, Source};
use super::memory::Accesses;
use super::pure::LANES;
use super::registers::Registers;
use super::thread::{MAX_STEPS, Spaces, Thread};

/// The values of an operand that an instruction does not have.
static NONE: [u64; LANES] = [0; LANES];

/// The point up to which threads ran together.
pub enum Together {
    /// They run on, each on its own: at a stop, at an access that other blocks see, or at two paths. They have made
    /// these accesses of global memory since the last stop.
    Apart(Accesses),
    /// They jumped back.
    Back,
    /// They read and wrote the same global memory, so their order may matter.
    Exchanged,
}

impl Kernel {
    /// Runs the threads of a warp, which are all at one line. Shuffles are no stop if `shuffles`.
    pub fn together(
        &self,
        threads: &mut [Thread],
        registers: &mut Registers,
        spaces: &mut Spaces<'_>,
        shuffles: bool,
    ) -> Together {
        let all = u32::MAX >> (LANES - threads.len());
        let mut at = threads[0].at;
        let mut constants = [NONE; 4];
        spaces.memory.forget_accesses();
        for _ in 0..MAX_STEPS {
            let line = &self.lines[at];
            let active = match line.guard {
                Some((register, wanted)) => {
                    let holds = |lane: &usize| (registers.get(register, *lane) != 0) == wanted;
                    (0..threads.len()).filter(holds).fold(0u32, |mask, lane| mask | 1 << lane)
                }
                None => all,
            };
            let action = &line.action;
            match action {
                Action::Jump(target) if active == all => {
                    let back = *target <= at;
                    at = *target;
                    if back {
                        threads.iter_mut().for_each(|thread| thread.at = at);
                        return Together::Back;
                    }
                    continue;
                }
                Action::Shuffle(shuffle) if shuffles && active == u32::MAX => {
                    self.exchange(shuffle, registers);
                    spaces.memory.forget_accesses();
                }
                Action::Pure { result, function, operands } if active == u32::MAX => {
                    let mut values = [&NONE; 4];
                    for ((value, into), source) in values.iter_mut().zip(&mut constants).zip(operands) {
                        *value = match source {
                            Source::Register(register) => registers.get_all(*register),
                            source => {
                                match source {
                                    Source::Immediate(bits) => into.fill(*bits),
                                    source => threads.iter().zip(&mut *into).enumerate().for_each(
                                        |(lane, (thread, bits))| {
                                            *bits = thread.read(registers, lane, *source)
                                        },
                                    ),
                                }
                                into
                            }
                        };
                    }
                    let results = function.of_all(values);
                    registers.set_all(*result, results);
                }
                _ if active != 0 && (action.stops() || (active != all && action.parts())) => {
                    threads.iter_mut().for_each(|thread| thread.at = at);
                    return Together::Apart(spaces.memory.accesses());
                }
                _ => {
                    for (lane, thread) in threads.iter_mut().enumerate() {
                        if active >> lane & 1 == 0 {
                            Thread::pass(action, registers, lane);
                        } else {
                            let stop = thread.act(action, (registers, lane), spaces, &mut || false);
                            assert!(stop.is_none(), "a stop of threads that run together");
                        }
                    }
                    if spaces.memory.accesses().are_exchanged() {
                        return Together::Exchanged;
                    }
                }
            }
            at += 1;
        }
        panic!("a thread does not end");
    }
}

impl Action {
    /// Returns whether other threads may run after it.
    fn stops(&self) -> bool {
        match self {
            Action::Load { volatile, .. } | Action::Store { volatile, .. } => *volatile,
            Action::Add { .. }
            | Action::Swap { .. }
            | Action::Shuffle(_)
            | Action::Barrier(_)
            | Action::WarpBarrier
            | Action::ClusterBarrier
            | Action::Return => true,
            _ => false,
        }
    }

    /// Returns whether threads whose guards differ take two paths.
    fn parts(&self) -> bool {
        matches!(self, Action::Jump(_))
    }
}
