//! Loads of members of the kernel's structures, from where this kernel has them.

use aya_obj::generated::{BPF_B, BPF_DW, BPF_H, BPF_LDX, BPF_MEM, BPF_W, bpf_insn};
use tscap_common::kernel_field::{KernelField, Want};

use super::btf::Btf;
use super::{KERNEL_TYPES, NoKfunc, unreadable};
use crate::hook::call::set_r0;

/// Members, and where each is, bytes from the start of its structure.
#[derive(Clone, Debug)]
pub(super) struct Fields(Vec<(KernelField, i16)>);

impl Fields {
    /// Looks for `wanted` in the types of the kernel.
    ///
    /// # Errors
    /// When the kernel does not have one of them, or not in bytes.
    pub fn find(types: &Btf<'_>, wanted: &[KernelField]) -> Result<Self, NoKfunc> {
        let steps = || {
            let all = wanted.iter().enumerate();
            all.flat_map(|(index, field)| field.path().iter().map(move |step| (index, *step)))
        };
        let names: Vec<_> = steps().map(|(_, step)| step).collect();
        let members = types.members(&names).map_err(unreadable(KERNEL_TYPES))?;
        let mut fields: Vec<_> = wanted.iter().map(|field| (*field, 0_i16)).collect();
        for ((index, (structure, member)), found) in steps().zip(members) {
            let of_bytes = found.filter(|it| it.bits == 0 && it.bit.is_multiple_of(8));
            let offset = of_bytes.and_then(|it| i16::try_from(it.bit / 8).ok());
            let before = &mut fields[index].1;
            let offset = offset.and_then(|offset| before.checked_add(offset));
            *before = offset.ok_or(NoKfunc::NoMember { structure, member })?;
        }
        Ok(Self(fields))
    }

    /// What stands in the place of a call with this marker, if it is of one of them.
    pub fn code(&self, marker: u32) -> Option<bpf_insn> {
        let (field, offset) = self.0.iter().find(|(field, _)| field.call() == marker)?;
        let Want::Bytes(bytes) = field.want() else {
            return Some(set_r0((*offset).into()));
        };
        let width = match bytes {
            8 => BPF_DW,
            4 => BPF_W,
            2 => BPF_H,
            _ => BPF_B,
        };
        let mut load = set_r0(0);
        load.code = (BPF_LDX | BPF_MEM | width) as u8;
        load.set_src_reg(1);
        load.off = *offset;
        Some(load)
    }

    /// All of them at the start of their structures.
    #[cfg(test)]
    pub fn anywhere(wanted: &[KernelField]) -> Self {
        Self(wanted.iter().map(|field| (*field, 0)).collect())
    }
}
