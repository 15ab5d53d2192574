//! What the programs of layers behind the interface need of the kernel.

use aya_obj::generated::bpf_insn;
use tscap_common::config::{DYNPTR_CALL, KERNEL_CONTEXT_CALL};
use tscap_common::hook::Hook;
use tscap_common::kernel_field::KernelField;

use super::btf::Btf;
use super::fields::Fields;
use super::{KERNEL_TYPES, NoKfunc, call_in, types, unreadable};
use crate::hook::call::{Call, call_of, set_r0};
use tscap_base::kernel_files::KernelFiles;

/// What attaches programs to netfilter, since Linux 6.4 (CONFIG_NETFILTER_BPF_LINK).
const NETFILTER_LINK: &str = "bpf_nf_link_attach";
/// What takes a UDP packet from a socket.
const TAKES: &str = "__skb_recv_udp";

/// Where the kernel has what the program of a hook reads and calls.
#[derive(Clone, Debug)]
pub struct LayerKernel {
    /// Of the function at whose end it runs, its id in the BTF of the kernel.
    pub(crate) function: u32,
    /// What it calls, each with its marker.
    calls: Vec<Call>,
    fields: Fields,
}

impl LayerKernel {
    /// Looks for what programs at `hook` need.
    ///
    /// # Errors
    /// When the kernel lacks any of it, with the reason.
    pub fn find(hook: Hook, files: &KernelFiles) -> Result<Self, NoKfunc> {
        let bytes = types(files, KERNEL_TYPES)?.ok_or(NoKfunc::NoKernelTypes)?;
        let types = Btf::parse(&bytes).map_err(unreadable(KERNEL_TYPES))?;
        let (mut function, mut calls) = (0, Vec::new());
        let wanted = match hook {
            Hook::Netfilter => {
                call_in(&types, NETFILTER_LINK, 0)?;
                calls.push(call_in(&types, "bpf_dynptr_from_skb", DYNPTR_CALL)?);
                KernelField::AT_NETFILTER
            }
            Hook::Cgroup => {
                // Since Linux 6.2.
                calls.extend(call_in(&types, "bpf_cast_to_kern_ctx", KERNEL_CONTEXT_CALL).ok());
                KernelField::AT_CGROUP
            }
            _ => {
                function = call_in(&types, TAKES, 0)?.btf_id;
                KernelField::AT_APPLICATION
            }
        };
        Ok(Self {
            function,
            calls,
            fields: Fields::find(&types, wanted)?,
        })
    }

    /// What stands in the place of a call with this marker, if it is one of these.
    pub(crate) fn code(&self, marker: u32) -> Option<bpf_insn> {
        let call = self.calls.iter().find(|call| call.marker == marker);
        match (call, marker) {
            (Some(call), _) => Some(call_of(call)),
            (None, KERNEL_CONTEXT_CALL) => Some(set_r0(0)),
            (None, marker) => self.fields.code(marker),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::btf::tests::{Built, structures};
    use super::*;
    use tscap_base::recorded::Recorded;

    /// A kernel with all members in bytes 8 times their number, and these functions.
    fn kernel(functions: &[&'static str]) -> Recorded {
        let mut all: Vec<(&str, Vec<(&str, u32)>)> = Vec::new();
        for (number, field) in (0..).zip(KernelField::ALL) {
            for (structure, member) in field.path() {
                let place = (*member, 8 * number);
                match all.iter_mut().find(|(name, _)| name == structure) {
                    Some((_, members)) => members.push(place),
                    None => all.push((structure, vec![place])),
                }
            }
        }
        let functions: Vec<_> = functions.iter().map(|it| Built::Function(it)).collect();
        let machine = Recorded::veth();
        machine.put_bytes("sys/kernel/btf/vmlinux", &structures(&all, &functions));
        machine
    }

    #[test]
    fn what_a_kernel_lacks_is_named() {
        let none = kernel(&["bpf_dynptr_from_skb"]);
        let said = |hook| {
            LayerKernel::find(hook, &none.files)
                .unwrap_err()
                .to_string()
        };
        assert!(said(Hook::Netfilter).contains(NETFILTER_LINK));
        assert!(said(Hook::Application).contains(TAKES));
        // Before Linux 6.2 a program of a cgroup does without.
        let found = LayerKernel::find(Hook::Cgroup, &none.files).expect("it has members");
        let context = found.code(KERNEL_CONTEXT_CALL).expect("a constant");
        assert_eq!((context.code, context.imm), (0xb7, 0));
    }

    #[test]
    fn each_hook_gets_its_calls_and_members() {
        let all = kernel(&[
            NETFILTER_LINK,
            "bpf_dynptr_from_skb",
            "bpf_cast_to_kern_ctx",
            TAKES,
        ]);
        let find = |hook| LayerKernel::find(hook, &all.files).expect("it has all");
        let is_call =
            |it: Option<bpf_insn>| it.is_some_and(|it| (it.code, it.src_reg()) == (0x85, 2));
        assert!(is_call(find(Hook::Netfilter).code(DYNPTR_CALL)));
        assert!(is_call(find(Hook::Cgroup).code(KERNEL_CONTEXT_CALL)));
        let taken = find(Hook::Application);
        assert!(taken.function > 0 && taken.code(DYNPTR_CALL).is_none());
        let namespace = taken
            .code(KernelField::SocketNamespace.call())
            .expect("a member");
        // Of a structure inside another: 8 times its number, twice.
        assert_eq!((namespace.code, namespace.off), (0x79, 2 * 8 * 16));
    }
}
