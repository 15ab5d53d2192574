//! What programs at the tracepoint `net_dev_start_xmit` need of the kernel: the tracepoint,
//! the members of its structures, and a kfunc for the bytes of a frame.

use aya_obj::generated::bpf_insn;
use tscap_common::config::DYNPTR_CALL;
use tscap_common::kernel_field::KernelField;

use super::btf::Btf;
use super::fields::Fields;
use super::{KERNEL_TYPES, NoKfunc, call_in, types, unreadable};
use crate::hook::call::{Call, call_of};
use tscap_base::kernel_files::KernelFiles;

const TRACEPOINT: &str = "net_dev_start_xmit";

/// Where the kernel has what a program at the tracepoint reads.
#[derive(Clone, Debug)]
pub struct TransmitKernel {
    /// The tracepoint's id in the BTF of the kernel.
    pub(crate) tracepoint: u32,
    /// Makes a dynptr of a socket buffer: since Linux 6.4, and for programs at tracepoints
    /// since 6.12.
    dynptr: Call,
    /// The members that it reads.
    fields: Fields,
}

impl TransmitKernel {
    /// Looks for all of it.
    ///
    /// # Errors
    /// When the kernel lacks any of it, with the reason.
    pub fn find(files: &KernelFiles) -> Result<Self, NoKfunc> {
        let bytes = types(files, KERNEL_TYPES)?.ok_or(NoKfunc::NoKernelTypes)?;
        let types = Btf::parse(&bytes).map_err(unreadable(KERNEL_TYPES))?;
        let tracepoint = types.tracepoint(TRACEPOINT);
        let tracepoint = tracepoint.map_err(unreadable(KERNEL_TYPES))?;
        Ok(Self {
            tracepoint: tracepoint.ok_or(NoKfunc::NoTracepoint { name: TRACEPOINT })?,
            dynptr: call_in(&types, "bpf_dynptr_from_skb", DYNPTR_CALL)?,
            fields: Fields::find(&types, KernelField::BEFORE_DRIVER)?,
        })
    }

    /// What stands in the place of a call with this marker, if it is one of these.
    pub(crate) fn code(&self, marker: u32) -> Option<bpf_insn> {
        match marker {
            DYNPTR_CALL => Some(call_of(&self.dynptr)),
            marker => self.fields.code(marker),
        }
    }
}

#[cfg(test)]
impl TransmitKernel {
    /// Of no kernel.
    pub fn anywhere() -> Self {
        Self {
            tracepoint: 1,
            dynptr: Call {
                marker: DYNPTR_CALL,
                btf_id: 2,
                module: None,
            },
            fields: Fields::anywhere(KernelField::BEFORE_DRIVER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::btf::tests::{Built, structures};
    use super::*;
    use tscap_base::recorded::Recorded;

    /// A kernel that has all of it, each member in bytes 16 times its number, but for what
    /// `lacks` says.
    fn kernel(lacks: impl Fn(&str) -> bool) -> Vec<u8> {
        let mut all = vec![("net", vec![("ns", 24)]), ("ns_common", vec![("inum", 8)])];
        for (number, field) in (0..).zip(KernelField::BEFORE_DRIVER) {
            let &[(structure, member)] = field.path() else {
                continue;
            };
            match all.iter_mut().find(|(name, _)| *name == structure) {
                Some((_, members)) => members.push((member, 16 * number)),
                None => all.push((structure, vec![(member, 16 * number)])),
            }
        }
        for (_, members) in &mut all {
            members.retain(|(member, _)| !lacks(member));
        }
        let mut more = vec![Built::Typedef("btf_trace_net_dev_start_xmit")];
        more.push(Built::Function("bpf_dynptr_from_skb"));
        more.retain(|it| !lacks(it.name()));
        structures(&all, &more)
    }

    fn find(kernel: &[u8]) -> Result<TransmitKernel, NoKfunc> {
        let machine = Recorded::veth();
        machine.put_bytes("sys/kernel/btf/vmlinux", kernel);
        TransmitKernel::find(&machine.files)
    }

    #[test]
    fn each_member_is_loaded_from_where_this_kernel_has_it() {
        let found = find(&kernel(|_| false)).expect("all that it needs");
        let code = |field: KernelField| {
            let it = found.code(field.call()).expect("one of these");
            (it.code, it.src_reg(), it.off, it.imm)
        };
        assert_eq!(code(KernelField::Length), (0x61, 1, 0, 0));
        assert_eq!(code(KernelField::VlanControl), (0x69, 1, 32, 0));
        assert_eq!(code(KernelField::Head), (0x79, 1, 48, 0));
        assert_eq!(code(KernelField::SegmentSize), (0xb7, 0, 0, 80));
        // Of a structure inside another.
        assert_eq!(code(KernelField::Inode), (0x61, 1, 24 + 8, 0));
        assert!(found.code(4711).is_none());
        let call = found.code(DYNPTR_CALL).expect("a call");
        assert_eq!((call.code, call.src_reg()), (0x85, 2));
    }

    #[test]
    fn what_the_kernel_lacks_is_named() {
        for (lacking, reported) in [
            ("btf_trace_net_dev_start_xmit", "net_dev_start_xmit"),
            ("bpf_dynptr_from_skb", "bpf_dynptr_from_skb"),
            ("vlan_tci", "sk_buff.vlan_tci"),
            ("inum", "ns_common.inum"),
        ] {
            let error = find(&kernel(|it| it == lacking)).unwrap_err().to_string();
            assert!(error.contains(reported), "{error}");
        }
        let none = TransmitKernel::find(&Recorded::veth().files);
        assert!(matches!(none, Err(NoKfunc::NoKernelTypes)));
    }
}
