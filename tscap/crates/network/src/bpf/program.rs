//! Programs by the `bpf` system call: aya passes no BTF of modules, which
//! calls of their functions need.

use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use aya_obj::generated::{bpf_func_info, bpf_insn};

use super::stack::BPF_NETFILTER;
use super::{BPF_TRACE_FENTRY, BPF_TRACE_FEXIT, BPF_TRACE_RAW_TP, BPF_XDP, bpf, owned};
use tscap_filter::ebpf::Instruction;

/// `enum bpf_cmd` in include/uapi/linux/bpf.h.
const BPF_PROG_LOAD: c_int = 5;
const BPF_PROG_TEST_RUN: c_int = 10;
/// `enum bpf_prog_type`.
const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_PROG_TYPE_CGROUP_SKB: u32 = 8;
const BPF_PROG_TYPE_TRACING: u32 = 26;
const BPF_PROG_TYPE_NETFILTER: u32 = 32;
/// The program takes frames in several fragments.
const BPF_F_XDP_HAS_FRAGS: u32 = 1 << 5;
/// The program runs on one device only, whose metadata of frames it may read.
const BPF_F_XDP_DEV_BOUND_ONLY: u32 = 1 << 6;
/// Frames of a test run are real.
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;
/// `BPF_OBJ_NAME_LEN`, with the zero at its end.
const NAME_LEN: usize = 16;
/// `struct bpf_func_info`, bytes.
const FUNC_INFO: u32 = 8;
/// The verifier's log of a refused program.
const LOG_BYTES: usize = 4 << 20;

/// The `BPF_PROG_LOAD` member of `union bpf_attr`, up to `fd_array`.
#[repr(C)]
#[derive(Default)]
struct Load {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; NAME_LEN],
    prog_ifindex: u32,
    expected_attach_type: u32,
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info: [u32; 4],
    attach_btf_id: u32,
    attach_prog_fd: u32,
    core_relo_cnt: u32,
    fd_array: u64,
}

const _: () = assert!(std::mem::offset_of!(Load, func_info) == 80);
const _: () = assert!(std::mem::offset_of!(Load, attach_btf_id) == 108);
const _: () = assert!(std::mem::offset_of!(Load, fd_array) == 120);
const _: () = assert!(size_of::<bpf_func_info>() == FUNC_INFO as usize);

/// The `test` member of `union bpf_attr`.
#[repr(C)]
#[derive(Default)]
struct TestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

/// What a test run gives a program beside the bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestContext {
    /// To an XDP program.
    Xdp {
        /// So many of the first bytes are metadata.
        metadata: u32,
        /// So many, these among them, are in one piece. Kernels that can't cut a frame
        /// (6.1) refuse (EINVAL) fewer than all.
        linear: u32,
    },
    /// To a tc program, with the whole frame in one piece.
    Tc {
        /// `mark` of the packet.
        mark: u32,
    },
}

impl TestContext {
    /// The first members of `struct xdp_md` or of `struct __sk_buff`.
    fn words(self) -> [u32; 6] {
        match self {
            // data, data_end
            Self::Xdp { metadata, linear } => [metadata, linear, 0, 0, 0, 0],
            // len, pkt_type, mark
            Self::Tc { mark } => [0, 0, mark, 0, 0, 0],
        }
    }
}

/// What a program is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// XDP.
    Xdp {
        /// Whether it takes frames in several fragments.
        frags: bool,
        /// The interface, of this thread's network namespace, that it is bound to.
        bound_to: Option<u32>,
    },
    /// tcx or clsact.
    Tc,
    /// A tracepoint.
    Tracepoint {
        /// Its id in the BTF of the kernel.
        btf_id: u32,
    },
    /// The entry of another program.
    Entry,
    /// The end of a function of the kernel.
    Exit {
        /// Its id in the BTF of the kernel.
        btf_id: u32,
    },
    /// What a socket receives.
    SocketFilter,
    /// What the sockets of a control group receive.
    Cgroup,
    /// A hook of netfilter.
    Netfilter,
}

impl Kind {
    /// XDP on any interface, frames in several fragments too.
    pub const XDP: Self = Self::Xdp {
        frags: true,
        bound_to: None,
    };

    fn program_type(self) -> u32 {
        match self {
            Self::Xdp { .. } => BPF_PROG_TYPE_XDP,
            Self::Tc => BPF_PROG_TYPE_SCHED_CLS,
            Self::SocketFilter => BPF_PROG_TYPE_SOCKET_FILTER,
            Self::Cgroup => BPF_PROG_TYPE_CGROUP_SKB,
            Self::Netfilter => BPF_PROG_TYPE_NETFILTER,
            Self::Tracepoint { .. } | Self::Entry | Self::Exit { .. } => BPF_PROG_TYPE_TRACING,
        }
    }

    /// Of a tc program any: its link decides. A socket's has none, and what a cgroup's sockets
    /// receive is number 0.
    fn attach_type(self) -> u32 {
        match self {
            Self::Xdp { .. } => BPF_XDP,
            Self::Tc | Self::SocketFilter | Self::Cgroup => 0,
            Self::Netfilter => BPF_NETFILTER,
            Self::Tracepoint { .. } => BPF_TRACE_RAW_TP,
            Self::Entry => BPF_TRACE_FENTRY,
            Self::Exit { .. } => BPF_TRACE_FEXIT,
        }
    }

    fn attach_btf_id(self) -> u32 {
        match self {
            Self::Tracepoint { btf_id } | Self::Exit { btf_id } => btf_id,
            _ => 0,
        }
    }

    fn bound_to(self) -> Option<u32> {
        match self {
            Self::Xdp { bound_to, .. } => bound_to,
            _ => None,
        }
    }

    fn flags(self) -> u32 {
        let frags = matches!(self, Self::Xdp { frags: true, .. });
        let bound = self.bound_to().map_or(0, |_| BPF_F_XDP_DEV_BOUND_ONLY);
        if frags {
            BPF_F_XDP_HAS_FRAGS | bound
        } else {
            bound
        }
    }
}

/// Instructions of a translated filter, as a program's code has them.
pub fn code_of(filter: &[Instruction]) -> Vec<bpf_insn> {
    let instruction = |it: &Instruction| bpf_insn {
        code: it.code,
        _bitfield_align_1: [],
        _bitfield_1: bpf_insn::new_bitfield_1(it.dst(), it.src()),
        off: it.off,
        imm: it.imm,
    };
    filter.iter().map(instruction).collect()
}

/// What to load.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its licence.
    pub license: &'a CStr,
    /// Its code, relocated.
    pub code: &'a [bpf_insn],
    /// What it is attached to.
    pub kind: Kind,
    /// The BTF of the module whose functions it calls with `off` 1; those of the
    /// kernel have 0.
    pub module: Option<BorrowedFd<'a>>,
    /// What its functions are, without which none may be called back.
    pub functions: Option<Functions<'a>>,
    /// At whose entry it runs, with [`Kind::Entry`].
    pub entry_of: Option<Entered<'a>>,
}

/// A program at whose entry another one runs.
#[derive(Clone, Copy, Debug)]
pub struct Entered<'a> {
    /// The program.
    pub program: BorrowedFd<'a>,
    /// The id of its function in its own BTF.
    pub function: u32,
}

/// The functions of a program.
#[derive(Clone, Copy, Debug)]
pub struct Functions<'a> {
    /// Their types.
    pub types: BorrowedFd<'a>,
    /// Where each begins, and its type.
    pub info: &'a [bpf_func_info],
}

/// Has the kernel verify and load a program; a refusal comes with the
/// verifier's log.
pub fn load(program: &Program<'_>) -> Result<OwnedFd, (io::Error, String)> {
    // Most are taken; the log is for the others.
    try_load(program, &mut []).or_else(|error| {
        let mut log = vec![0; LOG_BYTES];
        // Of the two refusals the first is not about the log.
        try_load(program, &mut log).map_err(|_| {
            let length = log.iter().position(|byte| *byte == 0);
            log.truncate(length.unwrap_or(LOG_BYTES));
            (error, String::from_utf8_lossy(&log).into_owned())
        })
    })
}

fn try_load(program: &Program<'_>, log: &mut [u8]) -> io::Result<OwnedFd> {
    let module = program.module.map(|fd| fd.as_raw_fd());
    // The first one is that of the kernel, which is never looked up here.
    let modules: [c_int; 2] = [0, module.unwrap_or(0)];
    let mut attr = Load {
        prog_type: program.kind.program_type(),
        insn_cnt: u32::try_from(program.code.len()).map_err(io::Error::other)?,
        insns: program.code.as_ptr().expose_provenance() as u64,
        license: program.license.as_ptr().expose_provenance() as u64,
        prog_flags: program.kind.flags(),
        prog_ifindex: program.kind.bound_to().unwrap_or(0),
        expected_attach_type: program.kind.attach_type(),
        attach_btf_id: program.kind.attach_btf_id(),
        fd_array: match module {
            Some(_) => modules.as_ptr().expose_provenance() as u64,
            None => 0,
        },
        ..Load::default()
    };
    if let Some(functions) = program.functions {
        attr.prog_btf_fd = functions.types.as_raw_fd().cast_unsigned();
        attr.func_info_rec_size = FUNC_INFO;
        attr.func_info = functions.info.as_ptr().expose_provenance() as u64;
        attr.func_info_cnt = u32::try_from(functions.info.len()).map_err(io::Error::other)?;
    }
    if let Some(entered) = program.entry_of {
        attr.attach_btf_id = entered.function;
        attr.attach_prog_fd = entered.program.as_raw_fd().cast_unsigned();
    }
    let name = program.name.as_bytes();
    let name = &name[..name.len().min(NAME_LEN - 1)];
    attr.prog_name[..name.len()].copy_from_slice(name);
    if !log.is_empty() {
        attr.log_level = 1;
        attr.log_size = u32::try_from(log.len()).map_err(io::Error::other)?;
        attr.log_buf = log.as_mut_ptr().expose_provenance() as u64;
    }
    owned(bpf(BPF_PROG_LOAD, &mut attr)?)
}

/// Runs an XDP program `repeat` times on one frame; returns the mean duration, ns.
/// With a `batch` on live frames, which go where it sends them; the kernel makes so
/// many at a time, and tells no duration.
pub fn run(
    program: BorrowedFd<'_>,
    frame: &[u8],
    repeat: u32,
    batch: Option<u32>,
) -> io::Result<u32> {
    let mut attr = TestRun {
        flags: batch.map_or(0, |_| BPF_F_TEST_XDP_LIVE_FRAMES),
        batch_size: batch.unwrap_or(0),
        prog_fd: program.as_raw_fd().cast_unsigned(),
        data_size_in: u32::try_from(frame.len()).map_err(io::Error::other)?,
        data_in: frame.as_ptr().expose_provenance() as u64,
        repeat,
        ..TestRun::default()
    };
    bpf(BPF_PROG_TEST_RUN, &mut attr)?;
    Ok(attr.duration)
}

/// Runs a program once on a frame; returns what the program returns.
pub fn returned(program: BorrowedFd<'_>, frame: &[u8], context: TestContext) -> io::Result<u32> {
    let context = context.words();
    let mut attr = TestRun {
        prog_fd: program.as_raw_fd().cast_unsigned(),
        data_size_in: u32::try_from(frame.len()).map_err(io::Error::other)?,
        data_in: frame.as_ptr().expose_provenance() as u64,
        ctx_size_in: size_of_val(&context) as u32,
        ctx_in: (&raw const context).expose_provenance() as u64,
        repeat: 1,
        ..TestRun::default()
    };
    bpf(BPF_PROG_TEST_RUN, &mut attr)?;
    Ok(attr.retval)
}

#[cfg(test)]
mod tests {
    use aya_obj::generated as header;
    use tscap_filter::ebpf::CONSTANTS;

    use super::*;

    /// The constants of these names, as aya's bindings of `<linux/bpf.h>` have them.
    macro_rules! of_the_header {
        ($($name:ident)*) => {
            [$((stringify!($name), header::$name),)*]
        };
    }

    #[test]
    fn the_filter_s_constants_are_those_of_the_kernel_s_header() {
        let expected = of_the_header!(
            BPF_LDX BPF_ST BPF_STX BPF_ALU BPF_JMP BPF_JMP32 BPF_ALU64
            BPF_W BPF_H BPF_B BPF_DW BPF_MEM BPF_K BPF_X
            BPF_ADD BPF_SUB BPF_MUL BPF_DIV BPF_OR BPF_AND BPF_LSH BPF_RSH BPF_NEG BPF_MOD
            BPF_XOR BPF_MOV BPF_ARSH BPF_END
            BPF_JA BPF_JEQ BPF_JGT BPF_JGE BPF_JSET BPF_JNE BPF_JLT BPF_JLE BPF_CALL BPF_EXIT
        );
        let ours = CONSTANTS.iter().map(|(name, it)| (*name, u32::from(*it)));
        assert_eq!(ours.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_filter_s_instructions_have_the_kernel_s_layout() {
        assert_eq!(size_of::<Instruction>(), size_of::<bpf_insn>());
        assert_eq!(align_of::<Instruction>(), align_of::<bpf_insn>());
        let ours = Instruction::new(0x7b, 10, 3, -0x1234, 0x5678_9abc);
        let code = code_of(&[ours]);
        let [it] = code[..] else {
            panic!("one instruction");
        };
        assert_eq!((it.code, it.dst_reg(), it.src_reg()), (0x7b, 10, 3));
        assert_eq!((it.off, it.imm), (-0x1234, 0x5678_9abc));
        let expected = [0x7b, 0x3a, 0xcc, 0xed, 0xbc, 0x9a, 0x78, 0x56];
        assert_eq!(ours.to_bytes(), expected);
        // SAFETY: it has 8 bytes without padding.
        let memory: [u8; 8] = unsafe { std::mem::transmute(it) };
        assert_eq!(memory, expected);
    }
}
