//! The counter of this CPU. Each architecture has one read, in order: after all loads before it.

#[cfg(target_arch = "x86_64")]
mod native {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};

    /// Which counter it is, as a page names it.
    pub const KIND: u64 = crate::layout::COUNTER_TSC;

    /// Reads it.
    #[inline]
    pub fn read() -> u64 {
        // SAFETY: every x86-64 CPU has LFENCE (SSE2) and RDTSC; Linux lets user space read the
        // counter unless a process has forbidden it to itself.
        unsafe {
            _mm_lfence();
            _rdtsc()
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod native {
    use std::arch::asm;

    /// Which counter it is, as a page names it.
    pub const KIND: u64 = crate::layout::COUNTER_CNTVCT;

    /// Reads it.
    #[inline]
    pub fn read() -> u64 {
        let count: u64;
        // SAFETY: ISB and a read of CNTVCT_EL0 change no memory and no flags; Linux lets user
        // space read the counter, as its vDSO does.
        unsafe {
            asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack, preserves_flags));
        }
        count
    }
}

pub use native::{KIND, read};

#[cfg(test)]
mod tests {
    #[test]
    fn it_counts_up() {
        let first = super::read();
        assert!(super::read() >= first && first > 0);
    }
}
