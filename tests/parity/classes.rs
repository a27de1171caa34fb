//! Memory layouts of operands.

use selvedge::types::{Layout, Slice};

/// A name, and the layout of operand `k` (the last is the output) in its own memory.
pub struct Class {
    pub name: &'static str,
    pub layout: fn(usize, Role) -> Layout,
    /// True if special values occur in all combinations.
    pub crossed: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    Input,
    Output,
}

fn contiguous(sizes: &[usize]) -> Layout {
    Layout::contiguous(sizes).expect("a layout")
}

/// A contiguous layout that starts at element `offset`.
fn shifted(sizes: &[usize], offset: usize) -> Layout {
    let strides = contiguous(sizes);
    Layout::strided(sizes, strides.strides(), offset).expect("a layout")
}

pub const CLASSES: &[Class] = &[
    Class { name: "contiguous", layout: |_, _| contiguous(&[1003]), crossed: true },
    Class { name: "whole_vectors", layout: |_, _| contiguous(&[6, 16]), crossed: false },
    Class { name: "empty", layout: |_, _| contiguous(&[3, 0]), crossed: false },
    Class { name: "one_element", layout: |_, _| contiguous(&[]), crossed: false },
    Class { name: "n31", layout: |_, _| contiguous(&[31]), crossed: false },
    Class { name: "n32", layout: |_, _| contiguous(&[32]), crossed: false },
    Class { name: "n33", layout: |_, _| contiguous(&[33]), crossed: false },
    Class { name: "n1023", layout: |_, _| contiguous(&[1023]), crossed: false },
    Class { name: "n1024", layout: |_, _| contiguous(&[1024]), crossed: false },
    Class { name: "n1025", layout: |_, _| contiguous(&[1025]), crossed: false },
    Class { name: "misaligned", layout: |k, _| shifted(&[270], 1 + k), crossed: false },
    Class {
        name: "misaligned_output",
        layout: |_, role| shifted(&[300], usize::from(role == Role::Output)),
        crossed: false,
    },
    Class {
        name: "broadcast",
        layout: |k, role| match (role, k % 3) {
            (Role::Input, 0) => contiguous(&[5, 1]),
            (Role::Input, 1) => contiguous(&[16]),
            _ => contiguous(&[3, 5, 16]),
        },
        crossed: false,
    },
    Class {
        name: "broadcast_odd",
        layout: |k, role| match (role, k % 3) {
            (Role::Input, 0) => contiguous(&[7]),
            (Role::Input, 1) => contiguous(&[]),
            _ => contiguous(&[11, 7]),
        },
        crossed: false,
    },
    Class {
        name: "stepped",
        layout: |k, role| {
            match role {
                Role::Input => {
                    contiguous(&[4, 40]).slice(1, Slice::from(k as isize..).step(2)).expect("a view")
                }
                Role::Output => contiguous(&[4, 18]),
            }
            .narrow(1, 0, 18)
            .expect("a view")
        },
        crossed: false,
    },
    Class {
        name: "backwards",
        layout: |k, _| contiguous(&[6, 16]).flip(if k % 2 == 0 { &[1] } else { &[0] }).expect("a view"),
        crossed: false,
    },
    Class {
        name: "stepped_output",
        layout: |_, role| match role {
            Role::Input => contiguous(&[30, 11]),
            Role::Output => contiguous(&[30, 33]).slice(1, Slice::from(..).step(-3)).expect("a view"),
        },
        crossed: false,
    },
    Class {
        name: "transposed",
        layout: |k, role| match role {
            Role::Input if k % 2 == 0 => contiguous(&[37, 2, 45]).permute(&[1, 2, 0]).expect("a view"),
            _ => contiguous(&[2, 45, 37]),
        },
        crossed: false,
    },
    Class {
        name: "permuted",
        layout: |k, role| match role {
            Role::Input if k % 2 == 0 => contiguous(&[3, 8, 4, 8]).permute(&[2, 1, 0, 3]).expect("a view"),
            _ => contiguous(&[4, 8, 3, 8]),
        },
        crossed: false,
    },
    Class {
        name: "rows_apart",
        // Rows of whole vectors that start unaligned.
        layout: |k, role| match role {
            Role::Input if k % 2 == 0 => contiguous(&[5, 17]).narrow(1, 0, 16).expect("a view"),
            _ => contiguous(&[5, 16]),
        },
        crossed: false,
    },
    Class {
        name: "rows_apart_output",
        layout: |_, role| match role {
            Role::Input => contiguous(&[5, 16]),
            Role::Output => contiguous(&[5, 17]).narrow(1, 0, 16).expect("a view"),
        },
        crossed: false,
    },
];
