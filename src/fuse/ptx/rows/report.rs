//! The report of an index of [`Expr::at_group`](crate::fuse::Expr::at_group) that is out of range.
//!
//! A program in one kernel checks the index of a row in its last stage. A program in several kernels computes the
//! indices of all groups and launches [`text_of_check`] on them. Both claim the device's report as `selvedge/report.cuh` does.

use crate::fuse::ptx::ENTRY;

/// Registers of a kernel that reports an index.
pub(in crate::fuse) struct ReportNames {
    /// The address of the report, 0 for none, and the code of the error.
    pub(in crate::fuse) report: String,
    pub(in crate::fuse) code: String,
    /// The index and the number of valid ones, in 64 bits.
    pub(in crate::fuse) index: String,
    pub(in crate::fuse) size: String,
    /// Two registers of 32 bits and a predicate, which are written.
    pub(in crate::fuse) taken: String,
    pub(in crate::fuse) claimed: String,
    pub(in crate::fuse) differs: String,
    /// The label after the report.
    pub(in crate::fuse) label: String,
}

impl ReportNames {
    /// Returns the instructions that claim the report, fill it in and complete it.
    pub(in crate::fuse) fn lines(&self) -> Vec<String> {
        let ReportNames { report, code, index, size, taken, claimed, differs, label } = self;
        vec![
            format!("setp.eq.u64 {differs}, {report}, 0;"),
            format!("@{differs} bra {label};"),
            format!("ld.volatile.global.u32 {taken}, [{report}+128];"),
            format!("ld.volatile.global.u32 {claimed}, [{report}];"),
            // A look before the claim: an array of nothing but errors would fill the bus otherwise.
            format!("setp.ne.u32 {differs}, {claimed}, {taken};"),
            format!("@{differs} bra {label};"),
            format!("add.u32 {claimed}, {taken}, 1;"),
            format!("atom.global.cas.b32 {claimed}, [{report}], {taken}, {claimed};"),
            format!("setp.ne.u32 {differs}, {claimed}, {taken};"),
            format!("@{differs} bra {label};"),
            format!("st.volatile.global.u32 [{report}+8], {code};"),
            // No axis.
            format!("mov.u32 {claimed}, 4294967295;"),
            format!("st.volatile.global.u32 [{report}+12], {claimed};"),
            format!("st.volatile.global.u64 [{report}+16], {index};"),
            format!("st.volatile.global.u64 [{report}+24], {size};"),
            // The host sees the words above before it sees that they are complete.
            "membar.sys;".to_owned(),
            format!("add.u32 {taken}, {taken}, 1;"),
            format!("st.volatile.global.u32 [{report}+4], {taken};"),
        ]
    }
}

/// Returns the text of the kernel that checks one index of each group, in blocks of so many threads.
pub(in crate::fuse) fn text_of_check(threads: u32) -> String {
    let name = str::to_owned;
    let names = ReportNames {
        report: name("%rd1"),
        code: name("%r1"),
        index: name("%rd2"),
        size: name("%rd3"),
        taken: name("%r2"),
        claimed: name("%r3"),
        differs: name("%p1"),
        label: name("$end"),
    };
    let report = names.lines().join("\n");
    format!(
        ".version 8.0\n.target sm_60\n.address_size 64\n.visible .entry {ENTRY}(\n.param .u64 {ENTRY}_read_0,\n\
         .param .align 8 .b8 block[32]\n)\n.maxntid {threads}\n{{\n.reg .pred %p<2>;\n.reg .b32 %r<6>;\n\
         .reg .b64 %rd<8>;\nmov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %tid.x;\ncvt.u64.u32 %rd4, %r4;\n\
         cvt.u64.u32 %rd5, %r5;\nmad.lo.u64 %rd4, %rd4, {threads}, %rd5;\nld.param.u64 %rd5, [block+24];\n\
         setp.ge.u64 %p1, %rd4, %rd5;\n@%p1 bra $end;\nld.param.u64 %rd6, [{ENTRY}_read_0];\n\
         mad.lo.u64 %rd6, %rd4, 8, %rd6;\nld.global.u64 %rd2, [%rd6];\nld.param.u64 %rd3, [block+16];\n\
         setp.lt.u64 %p1, %rd2, %rd3;\n@%p1 bra $end;\nld.param.u64 %rd1, [block];\nld.param.u32 %r1, [block+8];\n\
         {report}\n$end:\nret;\n}}\n"
    )
}
