//! Functions compiled for vector instructions and for the baseline.

/// Defines functions that use AVX2 and FMA if the processor has them. Rust adds no rounding of its own, so both
/// versions have the same results.
macro_rules! vectorized {
    ($(
        $(#[doc = $doc:literal])*
        pub(super) fn $name:ident<$generic:ident: $bound:ident>($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block
    )*) => {$(
        $(#[doc = $doc])*
        #[inline]
        pub(super) fn $name<$generic: $bound>($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn plain<$generic: $bound>($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn in_vectors<$generic: $bound>($($argument: $type),*) $(-> $result)? {
                    plain::<$generic>($($argument),*)
                }
                if crate::fuse::cpu::has_vectors() {
                    // SAFETY: the processor has these instructions.
                    return unsafe { in_vectors::<$generic>($($argument),*) };
                }
            }
            plain::<$generic>($($argument),*)
        }
    )*};
}

pub(in crate::fuse::cpu) use vectorized;
