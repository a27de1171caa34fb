//! An interpreter of the generated PTX on the CPU, thread by thread. Assembling a kernel proves nothing about
//! its meaning.
//!
//! It implements the used subset of PTX and knows nothing of the generator. It fails on an unknown
//! instruction, a read of an unwritten register, an access that is unaligned or outside the kernel's memory,
//! and a thread that does not end. [`schedule`](super::schedule) chooses the order of threads. The
//! interpreter also fails on a thread that ends before a barrier at which others wait, on shared memory that
//! one thread writes and another accesses without a barrier between, and on uninitialized shared memory.

use std::collections::HashMap;

use super::action::action;
use super::memory::dynamic_start;
use super::pure::Function;

/// The reason for which a thread stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// At the barrier in this line.
    Barrier(usize),
    /// At the barrier of a cluster in this line.
    ClusterBarrier(usize),
    /// After the shuffle in this line.
    Shuffle(usize),
    /// At the barrier of a warp in this line.
    Warp(usize),
    /// It jumped back, like a thread that waits for another block, or others should run before it continues.
    Pause,
    End,
}

/// The blocks of a cluster.
#[derive(Debug, Clone, Copy)]
pub struct ClusterShape {
    /// The first block.
    pub first: u32,
    /// The number of blocks.
    pub cluster: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub in_block: usize,
}

/// The lane that a shuffle reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShuffleMode {
    /// So many lanes further in the warp, or its own if there is none.
    Down,
    /// The lane whose number differs in these bits.
    Butterfly,
    /// This lane of each segment, whose lanes have the same bits of the mask.
    Index,
    /// True if the value of any lane is not 0.
    Any,
}

/// The operands of a shuffle.
#[derive(Debug, Clone)]
pub struct Shuffle {
    pub result: usize,
    pub value: usize,
    pub which: Source,
    pub mode: ShuffleMode,
    pub mask: usize,
}

#[derive(Debug, Clone, Copy)]
pub enum Source {
    Register(usize),
    Immediate(u64),
    Block,
    Thread,
    /// An offset in the block's shared memory.
    Shared(usize),
}

pub(super) enum Action {
    Pure {
        result: usize,
        function: &'static dyn Function,
        operands: Vec<Source>,
    },
    Parameter {
        result: usize,
        offset: usize,
        bytes: usize,
    },
    /// (registers, base, offset, bytes of each, sign extension)
    Load {
        results: Vec<usize>,
        address: usize,
        offset: u64,
        bytes: usize,
        signed: bool,
        shared: bool,
        volatile: bool,
    },
    Store {
        shared: bool,
        volatile: bool,
        values: Vec<Source>,
        address: usize,
        offset: u64,
        bytes: usize,
    },
    /// Two registers as the halves of a register of twice the width.
    Pack {
        result: usize,
        halves: [usize; 2],
        bits: u32,
    },
    /// The halves of a register, with their width in bits.
    Unpack {
        results: [usize; 2],
        whole: usize,
        bits: u32,
    },
    Shuffle(Shuffle),
    /// Adds to memory and returns the old value.
    Add {
        result: usize,
        address: usize,
        value: Source,
    },
    /// Writes memory if it holds the expected value, and returns the old value.
    Swap {
        result: usize,
        address: usize,
        expected: Source,
        value: Source,
    },
    /// (target, source, offsets of both, bytes, bytes that are read if fewer)
    Copy {
        target: (usize, u64),
        source: (usize, u64),
        bytes: usize,
        read: Option<usize>,
    },
    /// Ends a group of asynchronous copies.
    CommitCopies,
    /// Waits for all asynchronous copies, or for those of all but so many of the last groups.
    WaitForCopies(Option<usize>),
    /// The address in another block of the cluster.
    Map {
        result: usize,
        address: usize,
        block: Source,
    },
    /// Initializes a barrier that counts bytes: (base, offset)
    InitBarrier((usize, u64)),
    /// Makes initialized barriers known to other blocks.
    FenceBarriers,
    /// Arrives at a barrier that waits for so many bytes.
    ArriveExpect {
        barrier: (usize, u64),
        bytes: Source,
    },
    /// A store to a block that its barrier counts.
    StoreAsync {
        target: (usize, u64),
        value: Source,
        bytes: usize,
        barrier: (usize, u64),
    },
    /// Tells whether the phase of a barrier with this parity has ended.
    TryWait {
        result: usize,
        barrier: (usize, u64),
        parity: Source,
    },
    Nothing,
    Jump(usize),
    /// The barrier of a block; with (result, value), also whether any of its threads has a value other than 0.
    Barrier(Option<[usize; 2]>),
    WarpBarrier,
    Arrive,
    ClusterBarrier,
    Return,
}

pub(super) struct Line {
    pub(super) guard: Option<(usize, bool)>,
    pub(super) action: Action,
}

/// A parsed kernel.
pub struct Kernel {
    pub(super) lines: Vec<Line>,
    pub(super) registers: usize,
    pub parameter_bytes: usize,
    pub shared_bytes: usize,
    pub most_threads: u32,
    /// It has dynamic shared memory, and barriers of clusters.
    pub is_dynamic: bool,
    pub has_clusters: bool,
}

/// Returns the offsets of the parameters in one block, as the text declares them.
fn parameters(header: &str) -> (HashMap<String, usize>, usize) {
    let (mut places, mut end) = (HashMap::new(), 0usize);
    for declaration in header.split(".param").skip(1) {
        let words: Vec<&str> = declaration.trim().trim_end_matches(',').split_whitespace().collect();
        let (name, bytes) = match words[..] {
            [".u64", name] => (name, 8),
            [".align", "8", ".b8", array] => {
                let (name, length) = array.trim_end_matches(']').split_once('[').expect("an array");
                (name, length.parse().expect("a length"))
            }
            _ => panic!("parameter '{declaration}'"),
        };
        end = end.next_multiple_of(8);
        places.insert(name.to_owned(), end);
        end += bytes;
    }
    (places, end)
}

#[derive(Default)]
pub(super) struct Reader {
    /// Names by scope, innermost last.
    scopes: Vec<HashMap<String, usize>>,
    registers: usize,
    /// The name and size of the variable in shared memory.
    shared: Option<(String, usize)>,
    /// The name of dynamic shared memory.
    dynamic: Option<String>,
}

impl Reader {
    fn declare(&mut self, name: &str) {
        let scope = self.scopes.last_mut().expect("a scope");
        assert!(scope.insert(name.to_owned(), self.registers).is_none(), "{name} is declared twice");
        self.registers += 1;
    }

    pub(super) fn register(&self, name: &str) -> usize {
        *self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(name))
            .unwrap_or_else(|| panic!("register {name}"))
    }

    pub(super) fn source(&self, text: &str) -> Source {
        match text {
            "%ctaid.x" => Source::Block,
            "%tid.x" => Source::Thread,
            _ if self.shared.as_ref().is_some_and(|(name, _)| name == text) => Source::Shared(0),
            _ if self.dynamic.as_deref() == Some(text) => {
                Source::Shared(dynamic_start(self.shared.as_ref().map_or(0, |(_, bytes)| *bytes)))
            }
            _ if text.starts_with('%') => Source::Register(self.register(text)),
            _ if text.starts_with("0f") => {
                Source::Immediate(u64::from(u32::from_str_radix(&text[2..], 16).expect("a float")))
            }
            _ if text.starts_with("0d") => {
                Source::Immediate(u64::from_str_radix(&text[2..], 16).expect("a float"))
            }
            _ => Source::Immediate(text.parse::<i64>().unwrap_or_else(|_| panic!("operand '{text}'")) as u64),
        }
    }
}

/// Splits operands at commas, and keeps `{…}` and `[…]` whole.
pub(super) fn operands(text: &str) -> Vec<String> {
    let (mut found, mut depth, mut current) = (Vec::new(), 0, String::new());
    for letter in text.chars() {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        if letter == ',' && depth == 0 {
            found.push(std::mem::take(&mut current).trim().to_owned());
        } else {
            current.push(letter);
        }
    }
    found.push(current.trim().to_owned());
    found
}

pub(super) fn list(text: &str) -> Vec<&str> {
    text.trim_matches(['{', '}']).split(',').map(str::trim).collect()
}

impl Kernel {
    pub fn read(text: &str) -> Kernel {
        let (header, rest) = text.split_once(")\n").expect("an entry");
        let (limit, body) = rest.split_once("{\n").expect("a body");
        let most_threads = limit.lines().find_map(|line| line.strip_prefix(".maxntid "));
        let most_threads = most_threads.map_or(1024, |limit| limit.parse().expect("a number"));
        let is_of_clusters = header.starts_with(".version 8.1\n.target sm_90\n");
        assert!(is_of_clusters || header.starts_with(".version 8.0\n.target sm_"), "{header}");
        let (places, parameter_bytes) = parameters(header);
        let mut reader = Reader::default();
        let extern_line = header.lines().find_map(|line| line.strip_prefix(".extern .shared .align 16 .b8 "));
        reader.dynamic = extern_line.map(|name| name.trim_end_matches("[];").to_owned());
        reader.scopes.push(HashMap::new());
        let mut labels = HashMap::new();
        let mut jumps: Vec<(usize, String)> = Vec::new();
        let mut lines: Vec<Line> = Vec::new();
        for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line {
                // For the assembler alone.
                ".pragma \"nounroll\";" => {}
                "{" => reader.scopes.push(HashMap::new()),
                "}" => drop(reader.scopes.pop().expect("an open scope")),
                _ if line.ends_with(':') => {
                    let old = labels.insert(line.trim_end_matches(':').to_owned(), lines.len());
                    assert!(old.is_none(), "label {line} twice");
                }
                _ => {
                    let line = line.strip_suffix(';').unwrap_or_else(|| panic!("'{line}' has no end"));
                    if let Some(declaration) = line.strip_prefix(".shared .align 128 .b8 ") {
                        let (name, length) =
                            declaration.trim_end_matches(']').split_once('[').expect("an array");
                        let length: usize = length.parse().expect("a length");
                        assert!(length <= 48 << 10, "{length} bytes of shared memory");
                        assert!(reader.shared.replace((name.to_owned(), length)).is_none(), "one array");
                        continue;
                    }
                    if let Some(declaration) = line.strip_prefix(".reg .") {
                        let (_, names) = declaration.split_once(' ').expect("names");
                        for name in names.split(',').map(str::trim) {
                            match name.trim_end_matches('>').split_once('<') {
                                Some((prefix, count)) => {
                                    let count: usize = count.parse().expect("a count");
                                    (0..count).for_each(|index| reader.declare(&format!("{prefix}{index}")));
                                }
                                None => reader.declare(name),
                            }
                        }
                        continue;
                    }
                    let (guard, line) = match line.strip_prefix('@') {
                        Some(guarded) => {
                            let (name, rest) = guarded.split_once(' ').expect("a guarded instruction");
                            let (name, wanted) =
                                name.strip_prefix('!').map_or((name, true), |name| (name, false));
                            (Some((reader.register(name), wanted)), rest)
                        }
                        None => (None, line),
                    };
                    let (mnemonic, rest) = line.split_once(' ').unwrap_or((line, ""));
                    if mnemonic == "bra" {
                        jumps.push((lines.len(), rest.to_owned()));
                    }
                    lines.push(Line { guard, action: action(&reader, &places, mnemonic, rest) });
                }
            }
        }
        for (line, label) in jumps {
            lines[line].action = Action::Jump(labels[&label]);
        }
        let shared_bytes = reader.shared.map_or(0, |(_, bytes)| bytes);
        let has = |wanted: fn(&Action) -> bool| lines.iter().any(|line| wanted(&line.action));
        let has_clusters = has(|action| matches!(action, Action::ClusterBarrier));
        assert_eq!(has_clusters, is_of_clusters, "the version of a text for clusters");
        assert!(!has(|action| matches!(action, Action::Copy { .. })) || !header.contains(".target sm_60\n"));
        Kernel {
            lines,
            registers: reader.registers,
            parameter_bytes,
            shared_bytes,
            most_threads,
            is_dynamic: reader.dynamic.is_some(),
            has_clusters,
        }
    }

    /// Returns the bytes of shared memory of a block.
    pub fn shared_in_block(&self, dynamic: u32) -> usize {
        match self.is_dynamic {
            true => dynamic_start(self.shared_bytes) + dynamic as usize,
            false => self.shared_bytes,
        }
    }

    /// Returns whether the threads of a block synchronize.
    pub fn meets(&self) -> bool {
        self.lines.iter().any(|line| {
            matches!(line.action, Action::Barrier(_) | Action::Shuffle(_) | Action::ClusterBarrier)
        })
    }

    /// Returns the shuffle in this line.
    pub fn shuffle(&self, at: usize) -> &Shuffle {
        let Action::Shuffle(shuffle) = &self.lines[at].action else { panic!("a shuffle") };
        shuffle
    }
}
