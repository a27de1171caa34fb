/* sum[i] = x[i] + y[i] for i < n, as PTX. A program embeds the PTX or the fatbin of its own compiler in the same way. */

#ifndef SELVEDGE_EXAMPLES_VECTOR_ADD_PTX_H
#define SELVEDGE_EXAMPLES_VECTOR_ADD_PTX_H

static const char vector_add_ptx[] =
    ".version 7.0\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry vector_add(.param .u64 x, .param .u64 y, .param .u64 sum, .param .u32 n)\n"
    "{\n"
    "    .reg .pred %outside;\n"
    "    .reg .b32 %block, %threads, %thread, %i, %n;\n"
    "    .reg .f32 %x, %y;\n"
    "    .reg .b64 %px, %py, %psum, %offset;\n"
    "    mov.u32 %block, %ctaid.x;\n"
    "    mov.u32 %threads, %ntid.x;\n"
    "    mov.u32 %thread, %tid.x;\n"
    "    mad.lo.u32 %i, %block, %threads, %thread;\n"
    "    ld.param.u32 %n, [n];\n"
    "    setp.ge.u32 %outside, %i, %n;\n"
    "    @%outside ret;\n"
    "    ld.param.u64 %px, [x];\n"
    "    ld.param.u64 %py, [y];\n"
    "    ld.param.u64 %psum, [sum];\n"
    "    cvta.to.global.u64 %px, %px;\n"
    "    cvta.to.global.u64 %py, %py;\n"
    "    cvta.to.global.u64 %psum, %psum;\n"
    "    mul.wide.u32 %offset, %i, 4;\n"
    "    add.u64 %px, %px, %offset;\n"
    "    add.u64 %py, %py, %offset;\n"
    "    add.u64 %psum, %psum, %offset;\n"
    "    ld.global.f32 %x, [%px];\n"
    "    ld.global.f32 %y, [%py];\n"
    "    add.f32 %x, %x, %y;\n"
    "    st.global.f32 [%psum], %x;\n"
    "    ret;\n"
    "}\n";

#endif
